package through_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/keylabel"
)

// Sixty clients with two keys of 30 a minute each: together they use 60 a minute, and neither key is ever over its limit.
func TestTwoKeysUseTwoQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, perMinute, minutes = 60, 30, 4
		f := begin(t, perMinute, sluice.Config{Resources: map[string]sluice.Resource{"anthropic": {SplitKeys: true}}})
		end := time.Now().Add(minutes * time.Minute)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					f.sendWith([]string{"sk-canary-one", "sk-canary-two"}[c%2], fmt.Sprintf("agent-%d", c), "p2", call(c*1000+i))
				}
			})
		}
		time.Sleep(time.Minute)
		first := f.mock.Stats().Accepted
		time.Sleep((minutes - 1) * time.Minute)
		then := f.mock.Stats().Accepted - first
		wg.Wait()
		stats := f.mock.Stats() // the mock counts each key apart
		if stats.Throttled != 0 || stats.WorstWindow > perMinute || len(f.status) != 1 || f.status[http.StatusOK] == 0 {
			t.Errorf("%d turned away, clients saw %v, %d in one window of one key", stats.Throttled, f.status, stats.WorstWindow)
		}
		used := float64(then) / (2 * perMinute * (minutes - 1))
		t.Logf("%d accepted in the first minute, then %.4f of both quotas", first, used)
		if used < 0.95 {
			t.Errorf("%.4f of both quotas was used", used)
		}
		status, err := f.gate.Resource(t.Context(), "anthropic")
		if err != nil {
			t.Fatal(err)
		}
		scopes := map[string]bool{}
		for _, l := range status.Limits {
			key, ok := strings.CutPrefix(l.Scope, "key=")
			if !ok || !keylabel.Is(key) || key == keylabel.None {
				t.Errorf("limit %s has the scope %q", l.Name, l.Scope)
			}
			scopes[key] = true
		}
		if len(scopes) != 2 {
			t.Errorf("the keys are %v", scopes)
		}
	})
}
