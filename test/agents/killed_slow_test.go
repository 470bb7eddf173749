//go:build slow && (linux || darwin)

package agents_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What thirty killed processes had of a short window comes back, and so does their share of it: the rate is what it was, and
// the provider never sees more than the limit.
func TestThirtyKilledHoldersGiveTheirWindowBack(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		const size, window, measured = 30, 3 * time.Second, 12 * time.Second
		var mu sync.Mutex
		var arrivals []time.Time
		upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			arrivals = append(arrivals, time.Now())
		}))
		defer upstream.Close()
		r := bare(t, store, "resources:\n  api:\n    upstream: "+upstream.URL+"\n    limits: [{name: burst, size: 30/3s}]\n")
		_, url := r.daemonTo(t)
		var holders []*process
		var status struct {
			Resources []struct {
				InFlight int `json:"in_flight"`
			}
		}
		for i := range size {
			holders = append(holders, r.start("run", "--agent", fmt.Sprint("a", i), "--resource", "api", "--no-gate", "--", "sleep", "600"))
			if len(holders)%5 != 0 { // a few at a time: a busy machine does not start thirty at once
				continue
			}
			r.until("all hold a ticket", func() bool {
				for _, p := range holders {
					if p.hasEnded() {
						t.Fatalf("a holder has ended: %v\n%s", p.err, p.stderr.Bytes())
					}
				}
				r.sluice(0, &status, "status", "--json")
				return len(status.Resources) > 0 && status.Resources[0].InFlight == len(holders)
			})
		}
		for _, p := range holders {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.done
		}
		began := time.Now()
		for range size {
			r.sluice(0, nil, "acquire", "api", "--wait", within)
		}
		t.Logf("30 grants after %v", time.Since(began).Round(time.Millisecond))
		end := time.Now().Add(measured)
		var asking sync.WaitGroup
		for range 12 {
			asking.Go(func() {
				for time.Now().Before(end) {
					if resp, err := client().Get(url + "/api/x"); err == nil {
						_ = resp.Body.Close()
					}
				}
			})
		}
		asking.Wait()
		mu.Lock()
		defer mu.Unlock()
		worst, first := 0, 0
		for i, at := range arrivals {
			for at.Sub(arrivals[first]) >= window {
				first++
			}
			worst = max(worst, i-first+1)
		}
		ideal := size * int(measured/window)
		t.Logf("%d arrivals in %v, ideal are %d; the worst window has %d", len(arrivals), measured, ideal, worst)
		if worst > size || len(arrivals) < ideal/2 { // on a machine that is busy; a thirtieth while their shares are withheld
			t.Errorf("%d arrivals, the worst window has %d", len(arrivals), worst)
		}
	})
}
