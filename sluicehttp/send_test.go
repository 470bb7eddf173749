package sluicehttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// A client that leaves before anything was written gets a full refund.
func TestLeavingBeforeAnythingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		n := x.pipeServer(t, func(http.ResponseWriter, *http.Request) { t.Error("it arrived") })
		n.delay = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := x.RoundTrip(post(t, "http://host/", `{"model":"m"}`).WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		x.wantQuiet(t)
		x.wantCharged(t, map[string]int64{sluice.Requests: 0, sluice.OutputTokens: 0})
	})
}

// A client that leaves later does not; the concurrency is held for as long as such requests take.
func TestLeavingBeforeTheAnswer(t *testing.T) {
	for _, abort := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x := newRig(t)
			x.Abort, x.Prices = abort, tenMicros
			x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // or the server would not notice
				<-r.Context().Done()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := x.RoundTrip(post(t, "http://host/", `{"model":"m","max":50}`).WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
			places := int64(1)
			if abort {
				places = 0
			}
			x.wantCharged(t, map[string]int64{sluice.Requests: 1, sluice.OutputTokens: 50, "places": places})
			time.Sleep(firstService)
			x.wantQuiet(t)
			if e := x.told.one(t); !e.Aborted || e.Micros != e.EstimatedMicros || e.Micros == 0 {
				t.Errorf("told of %+v", e)
			}
		})
	}
}

// A ticket that became stale while connecting is renewed before anything is sent.
func TestSlowConnectionRenewsTheTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 1, Window: time.Minute}) // a slack of a second
		var arrived time.Time
		n := x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) { arrived = time.Now() })
		n.delay = 4 * time.Second
		start := time.Now()
		x.do(t, get(t, "http://host/"))
		// It was renewed after 4 s. So the next one waits a minute from then, and not from the beginning.
		n.delay = 0
		x.do(t, get(t, "http://host/"))
		if after := arrived.Sub(start); after < 64*time.Second || after > 67*time.Second {
			t.Errorf("the second arrived after %v", after)
		}
		if s := x.status(t); s.Sent != 2 {
			t.Errorf("sent %d", s.Sent)
		}
	})
}

// If the ticket cannot be renewed, nothing is sent.
func TestStaleTicketIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 1, Window: time.Minute})
		n := x.pipeServer(t, func(http.ResponseWriter, *http.Request) { t.Error("it arrived") })
		n.delay = 4 * time.Second
		go func() {
			time.Sleep(3 * time.Second)
			_ = x.Gate.Pause(context.Background(), "api", time.Hour, "by hand")
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := x.RoundTrip(get(t, "http://host/").WithContext(ctx))
		var e *sluice.Error
		if !errors.As(err, &e) {
			t.Errorf("the error is %v", err)
		}
		if s := x.status(t); s.InFlight != 0 || s.Sent != 0 {
			t.Errorf("in flight %d, sent %d", s.InFlight, s.Sent)
		}
	})
}

// dropper starts a server that answers the first request on each connection, and drops the connection at the second:
// net/http then sends that one again by itself.
func dropper(tb testing.TB, arrived *atomic.Int64) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	tb.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for i := range 2 {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					arrived.Add(1)
					if i == 0 {
						fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestSilentResendsAreCharged(t *testing.T) {
	x := newRig(t)
	var arrived atomic.Int64
	url := dropper(t, &arrived)
	for range 3 {
		if _, text := x.do(t, get(t, url)); text != "ok" {
			t.Fatalf("the answer is %q", text)
		}
	}
	s := x.status(t)
	if arrived.Load() != 5 || s.Sent != 5 || s.Retried != 2 || s.InFlight != 0 {
		t.Errorf("%d arrived; sent %d, retried %d, in flight %d", arrived.Load(), s.Sent, s.Retried, s.InFlight)
	}
	if e := x.told.list[1]; e.Attempts != 2 {
		t.Errorf("told of %+v", e)
	}
	x.wantCharged(t, map[string]int64{sluice.Requests: 5})
}

// With a concurrency of one, a resend does not wait for itself. Without room it is not sent.
func TestSilentResendTakesItsTurn(t *testing.T) {
	x := newRig(t, sluice.Limit{Name: "hour", Kind: sluice.Rolling, Size: 2, Window: hour}, sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: 1})
	var arrived atomic.Int64
	url := dropper(t, &arrived)
	x.do(t, get(t, url))
	x.Caller.Wait = 10 * time.Second // it is known at once that this is not enough
	_, err := x.RoundTrip(get(t, url))
	if !errors.Is(err, sluice.ErrDeadline) || arrived.Load() != 2 {
		t.Errorf("%d arrived, error %v", arrived.Load(), err)
	}
	x.wantQuiet(t)
	x.wantCharged(t, map[string]int64{"hour": 2})
}

// Without a response it is unknown what the provider did. Requests that are not idempotent are not repeated.
func TestConnectionThatBreaks(t *testing.T) {
	for method, want := range map[string]int64{http.MethodPost: 1, http.MethodDelete: 3} {
		synctest.Test(t, func(t *testing.T) {
			x := newRig(t)
			x.Retry = retry.Policy{Attempts: 3}
			var arrived atomic.Int64
			x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
				arrived.Add(1)
				panic(http.ErrAbortHandler)
			})
			r := post(t, "http://host/", `{"plain":true}`)
			r.Method = method
			if _, err := x.RoundTrip(r); err == nil {
				t.Error("no error")
			}
			x.wantQuiet(t)
			if s := x.status(t); arrived.Load() != want || s.Sent != want {
				t.Errorf("%s: %d arrived, %d sent, want %d", method, arrived.Load(), s.Sent, want)
			}
		})
	}
}

// If nothing listens, nothing is charged, and any request is tried again.
func TestNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Retry = retry.Policy{Attempts: 4}
		dials := 0
		base := Tuned()
		base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, errors.New("nobody listens")
		}
		x.Base = base
		_, err := x.RoundTrip(post(t, "http://host/", `{}`))
		if err == nil || !strings.Contains(err.Error(), "nobody listens") || dials != 4 {
			t.Errorf("after %d tries: %v", dials, err)
		}
		x.wantQuiet(t)
		x.wantCharged(t, map[string]int64{sluice.Requests: 0})
	})
}

func TestNonsenseIsNotTriedAgain(t *testing.T) {
	x := newRig(t)
	r := get(t, "nonsense://host/")
	if _, err := x.RoundTrip(r); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("the error is %v", err)
	}
	x.wantCharged(t, map[string]int64{sluice.Requests: 0})
	if e := x.told.one(t); e.Attempts != 1 {
		t.Errorf("told of %+v", e)
	}
}

// untraced is a base transport that does not call trace hooks.
type untraced func(*http.Request) (*http.Response, error)

func (f untraced) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestBaseThatDoesNotTell(t *testing.T) {
	x := newRig(t)
	x.Abort = true
	x.Base = untraced(func(r *http.Request) (*http.Response, error) { return nil, errors.New("some failure") })
	if _, err := x.RoundTrip(post(t, "http://host/", `{"plain":true}`)); err == nil {
		t.Error("no error")
	}
	x.wantCharged(t, map[string]int64{sluice.Requests: 1})
	x.wantQuiet(t)
}

// A ticket lives as long as its response is read, even for hours.
func TestLongStreamKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 60 {
				event(w, `{"text":"tick"}`)
				if wait(r.Context(), time.Minute) != nil {
					return
				}
			}
		})
		resp, err := x.RoundTrip(post(t, "http://host/", `{"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		for start := time.Now(); time.Since(start) < 50*time.Minute; {
			if _, err := resp.Body.Read(buf); err != nil {
				t.Fatal(err)
			}
			x.wantCharged(t, map[string]int64{"places": 1})
		}
		x.Abort = true
		resp.Body.Close()
		x.wantQuiet(t)
	})
}

// A response that cannot be read shows that its request has arrived. With a strict guard, an unanswered request would
// be charged until its ticket expires.
func TestUnreadableResponseShowsArrival(t *testing.T) {
	for name, answer := range map[string]string{
		"header": "HTTP/1.1 200 OK\r\nRateLimit: \x01\r\nContent-Length: 2\r\n\r\nok",
		"status": "HTTP/1.1 OK\r\n\r\n",
		"cut":    "HTTP/1.1 200 OK\r\nContent-Le",
	} {
		synctest.Test(t, func(t *testing.T) {
			limits := []sluice.Limit{{Name: "window", Kind: sluice.Rolling, Size: 1, Window: 2 * time.Second}}
			x := newRig(t, limits...)
			x.Gate = openGate(t, sluice.Resource{Limits: limits, Guard: store.GuardStrict})
			x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(c, answer) // the client may be gone
				_ = c.Close()
			})
			if _, err := x.RoundTrip(post(t, "http://host/", `{}`)); err == nil {
				t.Errorf("%s: no error", name)
			}
			if time.Sleep(3 * time.Second); x.used(t, "window") != 0 {
				t.Errorf("%s: %d are charged after the window", name, x.used(t, "window"))
			}
		})
	}
}
