package through_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// guarded is a provider that refuses a key when it is revoked, and counts what comes with each.
type guarded struct {
	http.Handler
	revoked atomic.Pointer[string]
	mu      sync.Mutex
	came    map[string]int
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("X-Api-Key")
	g.mu.Lock()
	g.came[key]++
	g.mu.Unlock()
	if no := g.revoked.Load(); no != nil && *no == key || !strings.HasPrefix(key, "sk-canary-") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`))
		return
	}
	g.Handler.ServeHTTP(w, r)
}

func (g *guarded) with(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.came[key]
}

// beginRing is a fleet whose proxy has two keys, and what happens there.
func beginRing(t *testing.T, perMinute int64) (f *fleet, g *guarded, events func(kind string) []inspect.Event) {
	t.Helper()
	g = &guarded{came: map[string]int{}}
	var mu sync.Mutex
	var seen []inspect.Event
	config := sluice.Config{
		Resources: map[string]sluice.Resource{"anthropic": {SplitKeys: true}},
		Events:    func(e inspect.Event) { mu.Lock(); seen = append(seen, e); mu.Unlock() },
	}
	sum := sha256.Sum256([]byte("one key for all"))
	f = beginWith(t, perMinute, config, func(o *proxy.Options) {
		o.Tokens = []proxy.Token{{Name: "all", Hash: hex.EncodeToString(sum[:])}}
		r := o.Resources["anthropic"]
		r.Keys = []sluicehttp.Key{{Header: "x-api-key", Value: "sk-canary-one", Name: "ONE"}, {Header: "x-api-key", Value: "sk-canary-two", Name: "TWO"}}
		o.Resources["anthropic"] = r
	}, func(h http.Handler) http.Handler { g.Handler = h; return g })
	return f, g, func(kind string) (list []inspect.Event) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range seen {
			if e.Kind == kind {
				list = append(list, e)
			}
		}
		return list
	}
}

// Sixty callers and two keys of 30 a minute each: together they use 60 a minute, and neither key is ever over its limit. When one is
// revoked the other carries on, and no request is lost.
func TestARingOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, perMinute, minutes, after = 60, 30, 3, 6 // in the last minutes the key is tried again
		f, g, events := beginRing(t, perMinute)
		end := time.Now().Add((minutes + after) * time.Minute)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					f.send(fmt.Sprintf("agent-%d", c), "p2", call(c*1000+i))
				}
			})
		}
		used := func(minutes int) (n int64) { // from one minute on: what fills the windows at first is not counted
			time.Sleep(time.Minute)
			before := f.mock.Stats().Accepted
			time.Sleep(time.Duration(minutes-1) * time.Minute)
			return f.mock.Stats().Accepted - before
		}
		both := float64(used(minutes)) / (2 * perMinute * (minutes - 1))
		revoked := "sk-canary-one"
		g.revoked.Store(&revoked)
		came := g.with(revoked)
		one := float64(used(after)) / (perMinute * (after - 1))
		wg.Wait()
		stats := f.mock.Stats()
		if stats.Throttled != 0 || stats.WorstWindow > perMinute {
			t.Errorf("%d turned away, %d in one window of one key", stats.Throttled, stats.WorstWindow)
		}
		if len(f.status) != 1 || f.status[http.StatusOK] == 0 {
			t.Errorf("clients saw %v", f.status)
		}
		t.Logf("%.4f of two keys was used, then %.4f of one", both, one)
		if both < 0.95 || one < 0.95 {
			t.Errorf("%.4f of two keys was used, then %.4f of one", both, one)
		}
		if n := g.with(revoked) - came; n == 0 || n > perMinute {
			t.Errorf("%d requests went with the key after it was revoked", n)
		}
		aside := events(inspect.EventKeyAside)
		if len(aside) < 2 || len(aside) > 3 || !strings.HasPrefix(aside[0].Scope, "key=") || aside[0].Until == nil || !strings.Contains(aside[0].Reason, "401") || !strings.Contains(aside[0].Reason, "ONE") {
			t.Errorf("events %+v", aside)
		}
		status, err := f.gate.Resource(t.Context(), "anthropic")
		if err != nil || len(status.Gates) == 0 || status.Gates[0].Scope != aside[0].Scope || status.Gates[0].Phase != "paused" {
			t.Errorf("status %+v %v", status.Gates, err)
		}
		// By command it is tried again.
		g.revoked.Store(nil)
		if err := f.gate.Resume(t.Context(), "anthropic"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		before := g.with(revoked)
		for i := range 10 {
			f.send("late", "p2", call(900_000+i))
		}
		if n := g.with(revoked) - before; n < 3 {
			t.Errorf("of 10 requests %d went with the key that is good again", n)
		}
	})
}

// The requests of a conversation go with one key, until it would make them wait.
func TestAConversationStaysWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, g, _ := beginRing(t, 10)
		keys := map[string]bool{}
		for talk := range 40 { // labels are random: that all have the same key happens once in 2^39 runs
			was := map[string]int{"sk-canary-one": g.with("sk-canary-one"), "sk-canary-two": g.with("sk-canary-two")}
			for i := range 3 {
				f.send("a", "p2", fmt.Sprintf(`{"model":"claude-x","max_tokens":5,"system":"You are number %d.","tools":[],"messages":[{"role":"user","content":"%d"}]}`, talk, i))
			}
			for key, n := range was {
				switch n := g.with(key) - n; n {
				case 3:
					keys[key] = true
				case 0:
				default:
					t.Errorf("conversation %d: %d requests with %s", talk, n, key)
				}
			}
			time.Sleep(3 * time.Minute)
		}
		if len(keys) != 2 {
			t.Errorf("all conversations have the same key: %v", keys)
		}
		began := time.Now()
		for i := range 15 { // more than one key has room for
			f.send("a", "p2", fmt.Sprintf(`{"model":"claude-x","max_tokens":5,"system":"You are many.","messages":[{"role":"user","content":"%d"}]}`, i))
		}
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("a conversation waited %v for its key", took)
		}
	})
}
