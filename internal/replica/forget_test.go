package replica

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// A process that knows of an earlier log says so before it opens the pool. The pool then counts short windows as spent.
func TestALostLogIsHeeded(t *testing.T) {
	t.Parallel()
	spec := placesSpec(10)
	spec.Limits = []store.Limit{{Name: "places", Kind: store.Rolling, Unit: "requests", Size: 10, Window: time.Minute}}
	for _, test := range []struct {
		name  string
		after time.Duration
		want  store.State
	}{
		{"at once", 0, store.Refused},
		{"within a minute", 50 * time.Second, store.Refused},
		{"after all that counts is over", 11 * time.Minute, store.Granted},
	} {
		w := newWorld(t)
		a := w.join(1)
		a.do(Request{Kind: Forget})
		w.pass(test.after, a)
		restored, err := Restore(a.replica.AppendSnapshot(nil))
		if err != nil {
			t.Fatal(err)
		}
		a.replica = restored
		if err := a.open(1, spec); err != nil {
			t.Fatal(err)
		}
		if got := a.ask(0).State; got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		b := w.join(2)
		b.catchUp()
		w.alike()
	}
}

// A loss that is noticed while the pool is open is heeded too.
func TestALossWithAPoolIsHeeded(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	a.catchUp()
	b.catchUp()
	b.do(Request{Kind: Forget})
	a.catchUp()
	if got := a.ask(0).State; got != store.Refused {
		t.Errorf("%v right after a loss", got)
	}
	w.alike()
}
