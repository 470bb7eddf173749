package through_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sim/mock"
)

// arrivals writes down what arrives at a provider: when, and every byte of it.
type arrivals struct {
	mu    sync.Mutex
	began time.Time
	list  []string
}

func (a *arrivals) look(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var header bytes.Buffer
		_ = r.Header.Write(&header) // sorted
		a.mu.Lock()
		a.list = append(a.list, fmt.Sprintf("%v %s %s %s\n%d %v\n%s%s", time.Since(a.began), r.Method, r.URL, r.Proto, r.ContentLength, r.TransferEncoding, header.Bytes(), body))
		a.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// Observing is exact: a fleet that a provider refuses again and again, and that backs off on its own, arrives at the provider
// through a gate that observes as it does without one. The same requests, in the same order, at the same moments, to the last
// byte of their headers and bodies.
func TestObservingChangesNothingAtTheProvider(t *testing.T) {
	o := mock.Options{Provider: "anthropic", Requests: rate(60, time.Minute), Latency: 300 * time.Millisecond, Tail: 100 * time.Millisecond, Seed: 1}
	run := func(direct bool) (*arrivals, mock.Stats) {
		a := new(arrivals)
		var stats mock.Stats
		synctest.Test(t, func(t *testing.T) {
			s := &squad{p: presetWith(t, o, func(r *sluice.Resource) { r.Observe = true }, a.look), direct: direct, calls: 20, workers: 3, apart: 7 * time.Millisecond}
			a.began = time.Now()
			s.run()
			stats = s.p.mock.Stats()
		})
		return a, stats
	}
	without, seen := run(true)
	with, seenThrough := run(false)
	if seen.Throttled < 50 || len(without.list) != int(seen.Arrived) {
		t.Fatalf("%d arrivals, %d of them refused: too few to tell", len(without.list), seen.Throttled)
	}
	if seen.Throttled != seenThrough.Throttled || seen.Accepted != seenThrough.Accepted {
		t.Errorf("without the gate %d accepted and %d refused, with one that observes %d and %d", seen.Accepted, seen.Throttled, seenThrough.Accepted, seenThrough.Throttled)
	}
	if slices.Equal(without.list, with.list) {
		return
	}
	for i := range min(len(without.list), len(with.list)) {
		if without.list[i] != with.list[i] {
			t.Fatalf("%d and %d arrivals; number %d differs.\nwithout: %s\n\nwith: %s", len(without.list), len(with.list), i, without.list[i], with.list[i])
		}
	}
	t.Fatalf("%d arrivals without the gate, %d with it", len(without.list), len(with.list))
}
