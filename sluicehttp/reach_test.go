package sluicehttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/upstream"
)

// onDial sets the dial function of the transport.
func (x *rig) onDial(tb testing.TB, dial func(ctx context.Context) error) {
	tb.Helper()
	base := Tuned()
	base.Proxy = nil
	base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, dial(ctx) }
	tb.Cleanup(base.CloseIdleConnections)
	x.Base, x.unhurried = base, false
}

// An unreachable provider is tried for a second, and the client knows within two. The long waits of classes are for
// refusals.
func TestAnUnreachableProviderIsToldSoon(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kind string
	}{
		"refused":      {&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 9}, Err: syscall.ECONNREFUSED}, upstream.Refused},
		"unknown host": {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}}, upstream.DNS},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newRig(t)
				x.Caller.Class = sluice.P2
				dials := 0
				x.onDial(t, func(context.Context) error { dials++; return c.err })
				start := time.Now()
				_, err := x.RoundTrip(get(t, "http://host/"))
				if took := time.Since(start); took > 2*time.Second || dials < 2 {
					t.Errorf("told after %v and %d tries, want within 2s and more than one", took, dials)
				}
				if upstream.Kind(err) != c.kind {
					t.Errorf("the error is %v, want %s", err, c.kind)
				}
				s := x.status(t)
				if s.State != inspect.StateFailing || s.Sent != 0 || s.InFlight != 0 {
					t.Errorf("the state is %s: %s; %d sent, %d in flight", s.State, s.Reason, s.Sent, s.InFlight)
				}
			})
		})
	}
}

// A provider that starts meanwhile is reached by the same request.
func TestAProviderThatComesBackIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		n := x.pipeServer(t, func(http.ResponseWriter, *http.Request) {})
		dials, dial := 0, x.Base.(*http.Transport).DialContext
		x.Base.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials++; dials < 3 {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return dial(ctx, network, address)
		}
		n.delay = 0
		x.do(t, get(t, "http://host/"))
		if s := x.status(t); s.State != inspect.StateFlowing {
			t.Errorf("the state is %s: %s", s.State, s.Reason)
		}
	})
}

// A connection that hangs is reported within two seconds. The request continues; once the hang is known, later requests
// fail as soon.
func TestAHangIsToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.onDial(t, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Second):
				return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 9}, Err: errors.New("gave up")}
			}
		})
		done := make(chan error, 1)
		start := time.Now()
		go func() {
			_, err := x.RoundTrip(post(t, "http://host/", "{}"))
			done <- err
		}()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := x.status(t); s.State != inspect.StateFailing || !strings.Contains(s.Reason, "no connection after 1.5s") {
			t.Errorf("after 2 s the state is %s: %s", s.State, s.Reason)
		}
		if err := <-done; upstream.Kind(err) != upstream.Timeout || time.Since(start) > 6*time.Second {
			t.Errorf("it ended after %v with %v, want a timeout after 5 s", time.Since(start), err)
		}
		time.Sleep(10 * time.Second) // it has been out of reach for long
		start = time.Now()
		_, err := x.RoundTrip(post(t, "http://host/", "{}"))
		if took := time.Since(start); upstream.Kind(err) != upstream.Timeout || took > 2*time.Second {
			t.Errorf("the next one was told %v after %v, want a timeout within 2 s", err, took)
		}
		time.Sleep(time.Minute) // what was dialled meanwhile
		if s := x.status(t); s.InFlight != 0 || s.Sent != 0 {
			t.Errorf("%d in flight, %d sent", s.InFlight, s.Sent)
		}
	})
}

// A slow name lookup is not a hang: a resolver may have to ask its second server.
func TestASlowNameIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.pipeServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		base := x.Base.(*http.Transport)
		dial := base.DialContext
		base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			trace := httptrace.ContextClientTrace(ctx)
			trace.DNSStart(httptrace.DNSStartInfo{Host: addr})
			time.Sleep(6 * time.Second)
			trace.DNSDone(httptrace.DNSDoneInfo{})
			return dial(ctx, network, addr)
		}
		resp, err := x.RoundTrip(get(t, "http://host/"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if s := x.status(t); resp.StatusCode != http.StatusNoContent || s.State != inspect.StateFlowing {
			t.Errorf("status %d, %s: %s", resp.StatusCode, s.State, s.Reason)
		}
		x.Settle()
	})
}

// A client that leaves soon says nothing about the provider.
func TestAClientThatLeavesIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.pipeServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		for _, c := range []struct {
			wait time.Duration
			want string
		}{{5 * time.Second, inspect.StateFlowing}, {40 * time.Second, inspect.StateFailing}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.wait)
			if _, err := x.RoundTrip(get(t, "http://host/").WithContext(ctx)); err == nil {
				t.Error("it was answered")
			}
			cancel()
			if s := x.status(t); s.State != c.want {
				t.Errorf("after a client waited %v the state is %s: %s", c.wait, s.State, s.Reason)
			}
		}
		x.Settle()
	})
}
