package through_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// Somebody who uses the same key and does not pass the gate is noticed by what answers say is left, is subtracted, and shown; and
// the fleet is not turned away because of it.
func TestSomebodyElseUsesTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perMinute = 60
		f := begin(t, perMinute, sluice.Config{})
		direct := func() {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider/v1/messages", strings.NewReader(call(1)))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("X-Api-Key", "one key for all")
			q.Header.Set("Content-Type", "application/json")
			resp, err := f.client.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		for range 20 {
			direct()
		}
		for i := range 5 {
			f.send("a", "p1", call(i))
		}
		s, err := f.gate.Resource(t.Context(), "anthropic")
		if err != nil {
			t.Fatal(err)
		}
		l := s.Limits[0]
		t.Logf("%d used, %d of them by somebody else, %d remain", l.Used, l.Outside, l.Remaining)
		if l.Outside < 15 || l.Outside > 25 || l.Remaining > perMinute-20 {
			t.Errorf("%d used, %d of them by somebody else, %d remain", l.Used, l.Outside, l.Remaining)
		}
		for i := range 60 {
			f.send("a", "p1", call(i))
		}
		if n := f.mock.Stats().Throttled; n != 0 {
			t.Errorf("%d were turned away", n)
		}
		time.Sleep(time.Minute)
	})
}
