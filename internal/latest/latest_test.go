package latest_test

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice/internal/latest"
)

func TestTheOldestIsForgottenFirst(t *testing.T) {
	var m latest.Map[int]
	if m.Get("a") != 0 || m.Len() != 0 {
		t.Error("the zero value is not empty")
	}
	m.Drop("a")
	const most = 4
	for i := range 3 * most {
		m.Put(fmt.Sprint(i), i+1, most)
		m.Put(fmt.Sprint(i), i+1, most) // a known key takes no further place
		if m.Len() != min(i+1, most) || m.Get(fmt.Sprint(i)) != i+1 {
			t.Fatalf("after %d: %d keys", i, m.Len())
		}
		if m.Get(fmt.Sprint(i-most)) != 0 {
			t.Fatalf("after %d: %d is still there", i, i-most)
		}
	}
	m.Drop("11")
	if m.Get("11") != 0 || m.Len() != most-1 {
		t.Errorf("a dropped key is still there: %d keys", m.Len())
	}
	for i := range most {
		m.Put(fmt.Sprint("new", i), 1, most)
		if m.Len() > most {
			t.Fatalf("%d keys", m.Len())
		}
	}
	if m.Len() != most {
		t.Errorf("%d keys, want %d", m.Len(), most)
	}
}
