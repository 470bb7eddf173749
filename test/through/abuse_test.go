package through_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// post sends a call that may be given up.
func (f *fleet) post(ctx context.Context, body, misbehave string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gate/@a:p1/anthropic/v1/messages", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("X-Api-Key", "key")
	q.Header.Set("Content-Type", "application/json")
	if misbehave != "" {
		q.Header.Set("X-Mock", misbehave)
	}
	return f.client.Do(q)
}

// idle fails unless nothing is left of anything.
func (f *fleet) idle() {
	f.t.Helper()
	s, err := f.gate.Resource(context.Background(), "anthropic")
	if err != nil || s.InFlight != 0 || s.Waiting["p0"]+s.Waiting["p1"]+s.Waiting["p2"] != 0 {
		f.t.Errorf("%d in flight, %v waiting: %v", s.InFlight, s.Waiting, err)
	}
	if n := f.mock.Stats().InFlight; n != 0 {
		f.t.Errorf("the provider has %d in flight", n)
	}
}

// Clients that go away at any moment leave no ticket, no place and no goroutine: the test would not end.
func TestClientsThatGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := begin(t, 100_000, sluice.Config{})
		rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // nothing is to be kept from anybody
		var wg sync.WaitGroup
		for i := range 1000 {
			after := time.Duration(rng.Int64N(int64(3 * time.Second)))
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				resp, err := f.post(ctx, call(3*i), "slow=50ms")
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
			time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Millisecond))))
		}
		wg.Wait()
		time.Sleep(5 * time.Minute) // places of answers that were broken off are held for the usual time
		f.idle()
		aborted := 0
		for _, x := range f.done {
			if x.Aborted {
				aborted++
			}
		}
		t.Logf("%d of 1000 left in the middle of an answer", aborted)
		if aborted < 100 {
			t.Errorf("only %d left in the middle of an answer", aborted)
		}
	})
}

// Whatever a provider sends, the client gets it or a clear error, and the books are right.
func TestProvidersThatMisbehave(t *testing.T) {
	for name, check := range map[string]func(*testing.T, *fleet, *http.Response, []byte, error){
		"garbage-headers": func(t *testing.T, f *fleet, resp *http.Response, body []byte, err error) {
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v %v", resp, err)
			}
			s, err := f.gate.Resource(t.Context(), "anthropic")
			if err != nil || s.PausedUntil != nil || s.Limits[0].Limit != 1000 {
				t.Errorf("%+v %v", s, err)
			}
		},
		"close-early": func(t *testing.T, _ *fleet, resp *http.Response, _ []byte, err error) {
			if err == nil {
				t.Error("the client was not told that the answer is cut off")
			}
		},
		"error-in-200": func(t *testing.T, f *fleet, resp *http.Response, body []byte, err error) {
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "error") {
				t.Errorf("%d %q %v", resp.StatusCode, body, err)
			}
		},
		"status=529": func(t *testing.T, _ *fleet, resp *http.Response, _ []byte, err error) {
			if err != nil || resp.StatusCode != 529 && resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("%v %v", resp, err)
			}
		},
		"no-usage": func(t *testing.T, f *fleet, resp *http.Response, _ []byte, err error) {
			if err != nil || resp.StatusCode != http.StatusOK || len(f.done) != 1 || f.done[0].Usage.Known || f.done[0].Micros == 0 {
				t.Errorf("%v: the estimate stands: %+v", err, f.done)
			}
		},
		"gzip": func(t *testing.T, f *fleet, resp *http.Response, _ []byte, err error) {
			if err != nil || resp.StatusCode != http.StatusOK || !f.done[0].Usage.Known {
				t.Errorf("%v: %+v", err, f.done)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := begin(t, 1000, sluice.Config{})
				resp, err := f.post(t.Context(), call(3), name)
				var body []byte
				if err == nil {
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
				}
				time.Sleep(time.Second)
				check(t, f, resp, body, err)
				time.Sleep(30 * time.Minute)
				f.idle()
			})
		})
	}
}

// A provider that never answers is waited for as long as its client waits.
func TestAProviderThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := begin(t, 1000, sluice.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if resp, err := f.post(ctx, call(1), "hang"); err == nil {
			t.Errorf("%d", resp.StatusCode)
		}
		time.Sleep(time.Hour)
		f.idle()
	})
}

// An answer of any length passes, and little of it is held: 1 GB, or 10 GB with SLUICE_LONG=1.
func TestALongAnswerIsNotHeld(t *testing.T) {
	size := int64(1) << 30
	if os.Getenv("SLUICE_LONG") == "1" {
		size = 10 << 30
	}
	synctest.Test(t, func(t *testing.T) {
		f := begin(t, 1000, sluice.Config{})
		resp, err := f.post(t.Context(), call(1), fmt.Sprintf("body=%d", size))
		if err != nil {
			t.Fatal(err)
		}
		var most, now runtime.MemStats
		buffer := make([]byte, 256<<10)
		var n int64
		for i := 0; ; i++ {
			k, err := resp.Body.Read(buffer)
			n += int64(k)
			if i%1000 == 0 {
				runtime.ReadMemStats(&now)
				most.HeapAlloc = max(most.HeapAlloc, now.HeapAlloc)
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		_ = resp.Body.Close()
		t.Logf("%d bytes, at most %d MB in use", n, most.HeapAlloc>>20)
		if n < size || most.HeapAlloc > 100<<20 {
			t.Errorf("%d bytes of %d, at most %d MB in use", n, size, most.HeapAlloc>>20)
		}
		time.Sleep(time.Hour)
		f.idle()
	})
}
