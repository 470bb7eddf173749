package sluicehttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// outputBucket is a provider with a bucket of output tokens. It charges them as they are produced: one must fit.
type outputBucket struct {
	mu             sync.Mutex
	level          float64
	at             time.Time
	sent, refused  int
	perSecond, max float64
	used           int64
}

func (b *outputBucket) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	now := time.Now()
	b.level = max(b.level-b.perSecond*now.Sub(b.at).Seconds(), 0)
	b.at = now
	b.sent++
	out := int64(20 + b.sent*37%80)
	full := b.level+1 > b.max
	if full {
		b.refused++
	} else {
		b.level += float64(out)
		b.used += out
	}
	b.mu.Unlock()
	time.Sleep(300 * time.Millisecond)
	if full {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	fmt.Fprintf(w, `{"usage":{"in":1,"out":%d}}`, out)
}

// Calls with max_tokens 900 that use 20 to 99 pass a limit of 1,000 output tokens in 10 s at its rate: the estimates of
// those that wait fall with the first responses. At max_tokens one call would pass every 9 s, and forecasts would refuse
// those that can wait for 40 s.
func TestWaitingCallsTakeTheLearnedEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := sluice.Limit{Name: "output", Kind: sluice.Bucket, Size: 1000, Window: 10 * time.Second, Unit: sluice.OutputTokens}
		x := newRig(t, limit)
		var turnedAway atomic.Int32 // by an early estimate, which calls ask again about
		gate, err := sluice.Open(t.Context(), sluice.Config{
			Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{limit}}},
			Events: func(e inspect.Event) {
				if e.Kind == inspect.EventRefused || e.Kind == inspect.EventAbandoned {
					turnedAway.Add(1)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gate.Close() }()
		x.Gate = gate
		provider := &outputBucket{at: time.Now(), perSecond: 100, max: 1000}
		x.pipeServer(t, provider.ServeHTTP)
		end, failed := time.Now().Add(30*time.Second), 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for time.Now().Before(end) {
					ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
					resp, err := x.RoundTrip(post(t, "http://host/", `{"model":"m","max":900}`).WithContext(ctx))
					if err == nil {
						_, err = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
					cancel()
					if err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
						time.Sleep(time.Second)
					}
				}
			})
		}
		time.Sleep(time.Until(end))
		provider.mu.Lock()
		used, refused := provider.used, provider.refused
		provider.mu.Unlock()
		all.Wait()
		if most := int64(1000 + 30*100); used < most*7/10 || refused > 0 || failed > 0 || turnedAway.Load() > 0 {
			t.Errorf("%d tokens of %d, %d refused by the provider, %d by the gate; events tell of %d", used, most, refused, failed, turnedAway.Load())
		}
	})
}

// Embeddings have no output, so their estimate cannot fall.
func TestCallsWithoutOutputGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, sluice.Limit{Name: "output", Kind: sluice.Bucket, Size: 1000, Window: 10 * time.Second, Unit: sluice.OutputTokens})
		x.pipeServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"usage":{"in":1,"out":0}}`) })
		for range 3 {
			resp, err := x.RoundTrip(post(t, "http://host/", `{"model":"m","max":900}`))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
