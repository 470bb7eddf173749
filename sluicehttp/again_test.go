package sluicehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// refusing answers with the statuses in turn, then with 200.
func refusing(sent *atomic.Int64, statuses ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := int(sent.Add(1))
		if n <= len(statuses) {
			if statuses[n-1] != 402 { // which would come back by itself then
				w.Header().Set("Retry-After", "3")
			}
			w.Header().Set("X-Number", fmt.Sprint(n))
			w.WriteHeader(statuses[n-1])
			fmt.Fprintf(w, "refused %d", n)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"usage":{"in":%d,"out":5}}`, len(body))
	}
}

func TestRefusedRequestsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Prices = tenMicros
		var sent atomic.Int64
		x.pipeServer(t, refusing(&sent, 429, 503, 529))
		body := `{"model":"m"}`
		resp, text := x.do(t, post(t, "http://host/", body))
		if resp.StatusCode != 200 || !strings.Contains(text, fmt.Sprintf(`"in":%d`, len(body))) {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
		s := x.status(t)
		if sent.Load() != 4 || s.Sent != 4 || s.Retried != 3 || s.Throttled == 0 {
			t.Errorf("%d arrived; sent %d, retried %d, throttled %d", sent.Load(), s.Sent, s.Retried, s.Throttled)
		}
		x.wantQuiet(t)
		x.wantCharged(t, map[string]int64{sluice.Requests: 4, sluice.OutputTokens: 5, unitInput: int64(len(body)), unitUSD: 10 * int64(len(body)+5)})
		if e := x.told.one(t); e.Attempts != 4 || e.Status != 200 || e.Verdict != store.VerdictOK || e.Micros == 0 {
			t.Errorf("told of %+v", e)
		}
	})
}

// Responses that are final, or whose requests may not be repeated, come back as the provider sent them.
func TestWhatIsNotSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		change func(x *rig, r *http.Request)
		sent   int64
	}{
		"once only":               {429, func(x *rig, r *http.Request) { x.Retry.Attempts = 1 }, 1},
		"already a retry":         {429, func(x *rig, r *http.Request) { r.Header.Set("x-stainless-retry-count", "1") }, 1},
		"first of a retrying SDK": {429, func(x *rig, r *http.Request) { r.Header.Set("x-stainless-retry-count", "0") }, 2},
		"billing":                 {402, func(x *rig, r *http.Request) { r.Method = http.MethodGet }, 1},
		"not found":               {404, func(x *rig, r *http.Request) { r.Method = http.MethodGet }, 1},
		"server error, POST":      {500, func(x *rig, r *http.Request) {}, 1},
		"server error, with key":  {500, func(x *rig, r *http.Request) { r.Header.Set("Idempotency-Key", "k") }, 2},
		"server error, PUT":       {500, func(x *rig, r *http.Request) { r.Method = http.MethodPut }, 2},
		"body not held": {429, func(x *rig, r *http.Request) {
			r.Body, r.GetBody, r.ContentLength = io.NopCloser(io.LimitReader(endless{}, provider.MaxCall+1)), nil, -1
		}, 1},
		"no time left": {429, func(x *rig, r *http.Request) { x.Caller.Wait = 2 * time.Second }, 1},
		"wall":         {429, func(x *rig, r *http.Request) { x.Retry.Deadline = time.Second }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newRig(t)
				var sent atomic.Int64
				x.pipeServer(t, refusing(&sent, c.status))
				r := post(t, "http://host/", `{"plain":true}`)
				c.change(x, r)
				resp, text := x.do(t, r)
				if sent.Load() != c.sent {
					t.Errorf("%d arrived, want %d", sent.Load(), c.sent)
				}
				if c.sent == 1 && (resp.StatusCode != c.status || text != "refused 1" || resp.Header.Get("X-Number") != "1") {
					t.Errorf("%d %q %v", resp.StatusCode, text, resp.Header)
				}
				x.wantQuiet(t)
				if e := x.told.one(t); e.Attempts != int(c.sent) || e.Status != resp.StatusCode {
					t.Errorf("told of %+v", e)
				}
			})
		})
	}
}

var xs = strings.Repeat("x", 32<<10)

// endless is a body of any length.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, xs), nil
}

// After the last attempt the client gets the last response.
func TestLastAnswerAfterAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Retry = retry.Policy{Attempts: 3}
		var sent atomic.Int64
		x.pipeServer(t, refusing(&sent, 429, 429, 429, 429))
		resp, text := x.do(t, post(t, "http://host/", `{"plain":true}`))
		if resp.StatusCode != 429 || text != "refused 3" || sent.Load() != 3 {
			t.Errorf("%d %q after %d", resp.StatusCode, text, sent.Load())
		}
		x.wantQuiet(t)
	})
}

// If a retry does not get its turn, the client gets the provider's refusal.
func TestKeptAnswerIfTheTurnDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Retry = retry.Policy{Deadline: 30 * time.Second} // the pause lasts longer
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(429)
			fmt.Fprint(w, "no")
		})
		resp, text := x.do(t, post(t, "http://host/", `{"plain":true}`))
		if resp.StatusCode != 429 || text != "no" {
			t.Errorf("%d %q", resp.StatusCode, text)
		}
		x.wantQuiet(t)
		if e := x.told.one(t); e.Attempts != 1 || e.Verdict != store.VerdictThrottled || e.Err != nil {
			t.Errorf("told of %+v", e)
		}
	})
}

func TestLeavingBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		_, err := x.RoundTrip(post(t, "http://host/", `{}`).WithContext(ctx))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		x.wantQuiet(t)
	})
}

func TestGraphQLRefusalInA200(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits, _ := provider.Preset("github")
		x := newRig(t, limits.Limits...)
		x.Dialect = provider.GitHub{}
		answers := []string{`{"errors":[{"type":"RATE_LIMITED","message":"You have exceeded a secondary rate limit"}]}`, `{"data":{"x":"` + strings.Repeat("y", 100_000) + `"}}`}
		sent := 0
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, answers[sent])
			sent++
		})
		_, text := x.do(t, post(t, "http://host/graphql", `{"query":"{x}"}`))
		if text != answers[1] || sent != 2 {
			t.Errorf("%d sent, %d bytes read", sent, len(text))
		}
		if s := x.status(t); s.InFlight != 0 || s.Throttled != 1 {
			t.Errorf("in flight %d, throttled %d", s.InFlight, s.Throttled)
		}
	})
}

// A refusal whose body does not arrive is passed on anyway.
func TestRefusalWithoutItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(429)
			fmt.Fprint(w, "first ")
			w.(http.Flusher).Flush()
			if wait(r.Context(), time.Minute) == nil {
				fmt.Fprint(w, "then")
			}
		})
		resp, text := x.do(t, post(t, "http://host/", `{}`))
		if resp.StatusCode != 429 || text != "first then" {
			t.Errorf("%d %q", resp.StatusCode, text)
		}
		x.wantQuiet(t)
	})
}
