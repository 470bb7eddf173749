package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/metrics"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/store"
)

// stateRig is a gate with all that shows its state.
type stateRig struct {
	*testing.T
	gate    *sluice.Gate
	store   store.Store
	daemon  *daemon.Daemon
	figures *metrics.Registry

	mu     sync.Mutex
	events []inspect.Event
}

// newStateRig makes a gate with one limit, for a window such as min.
func newStateRig(t *testing.T, window string) *stateRig {
	t.Helper()
	r := &stateRig{T: t, figures: metrics.New(metrics.Options{})}
	st, err := store.Open(t.Context(), "mem:")
	if err != nil {
		t.Fatal(err)
	}
	r.store = st
	f, err := config.Parse("states.yaml", fmt.Appendf(nil, "resources: {api: {upstream: \"http://127.0.0.1:1\", limits: [{name: only, size: 2/%s}]}}\n", window), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.GateConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.Store = "redis://host:6379" // what it is called
	c.Events = func(e inspect.Event) {
		r.figures.Event(e)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	}
	if r.gate, err = sluice.OpenWithStore(t.Context(), st, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.gate.Close()
		_ = st.Close()
	})
	r.figures.SetGate(r.gate)
	if r.daemon, err = daemon.New(daemon.Options{File: f, Gate: r.gate, Metrics: r.figures.Handler()}); err != nil {
		t.Fatal(err)
	}
	return r
}

// get sends a GET request to the daemon.
func (r *stateRig) get(path string) (int, string) {
	r.Helper()
	w := httptest.NewRecorder()
	q := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	r.daemon.ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

// told waits for an event with a state.
func (r *stateRig) told(state string) bool {
	for deadline := time.Now().Add(proctest.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		for _, e := range r.events {
			if e.Kind == inspect.EventState && e.State == state && e.Reason != "" && e.Resource == "api" {
				r.mu.Unlock()
				return true
			}
		}
		r.mu.Unlock()
	}
	return false
}

func (r *stateRig) send() {
	r.Helper()
	ticket, err := r.gate.Try(r.Context(), sluice.Request{Resource: "api", Agent: "web"})
	if err != nil {
		r.Fatal(err)
	}
	if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK, Status: 200}); err != nil {
		r.Fatal(err)
	}
	if err := ticket.Close(); err != nil {
		r.Fatal(err)
	}
}

// queues keeps asking, as a caller in the background does, until the test is over. It waits for the state queueing.
func (r *stateRig) queues(ask func(ctx context.Context, req sluice.Request) (sluice.Ticket, error)) {
	r.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := ask(ctx, sluice.Request{Resource: "api", Agent: "batch"}); err == nil {
				r.Error("it may go")
			}
			select {
			case <-time.After(20 * time.Millisecond): // the pool knows to the second when an agent asked
			case <-ctx.Done():
			}
		}
	}()
	r.Cleanup(func() { stop(); <-done })
	for deadline := time.Now().Add(proctest.Patience); ; time.Sleep(time.Millisecond) {
		s, err := r.gate.Resource(r.Context(), "api")
		if err == nil && s.State == inspect.StateQueueing {
			return
		}
		if err != nil || time.Now().After(deadline) {
			r.Fatalf("it is %s: %s, %v", s.State, s.Reason, err)
		}
	}
}

func (r *stateRig) fail(err error) {
	r.Helper()
	if err := r.gate.Observe(r.Context(), sluice.Request{Resource: "api", Agent: "web"}, sluice.Answer{Verdict: store.VerdictUnreachable, Err: err}); err != nil {
		r.Fatal(err)
	}
}

// Every state has the same name on the command line, in JSON, in the API, in metrics and in events. Only failing is
// red.
func TestEveryStateIsToldEverywhere(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		state, reason, colour, ready string
		drive                        func(r *stateRig)
		until                        bool
	}{
		"idle":    {inspect.StateIdle, "no request was sent yet", "", "ok", func(*stateRig) {}, false},
		"flowing": {inspect.StateFlowing, "requests pass without waiting", "32", "ok", func(r *stateRig) { r.send() }, false},
		"queueing": {inspect.StateQueueing, "1 request waits: the limit only is full (2 of 2 used)", "34", "ok", func(r *stateRig) {
			r.send()
			r.send()
			r.queues(r.gate.Acquire)
		}, true},
		"refusing": {inspect.StateQueueing, "the limit only is full (2 of 2 used): requests that need it wait or are refused", "34", "ok", func(r *stateRig) {
			r.send()
			r.send()
			r.queues(r.gate.Try)
		}, false},
		"paused": {inspect.StatePaused, "maintenance", "33", "ok", func(r *stateRig) {
			r.send()
			if err := r.gate.Pause(r.Context(), "api", time.Hour, "maintenance"); err != nil {
				r.Fatal(err)
			}
		}, true},
		"billing stop": {inspect.StatePaused, "billing stop: the credit is used up; the provider refuses requests until you add credit or raise the limit there", "33", "ok", func(r *stateRig) {
			r.send()
			stop := sluice.Answer{Verdict: store.VerdictBilling, Status: 400, Cause: "the credit is used up"}
			if err := r.gate.Observe(r.Context(), sluice.Request{Resource: "api", Agent: "web"}, stop); err != nil {
				r.Fatal(err)
			}
		}, false},
		"degraded": {inspect.StateDegraded, "Redis lost its memory; holding requests for one window", "33", "degraded", func(r *stateRig) {
			r.send()
			p, err := r.store.Pool(r.Context(), store.Spec{Name: "api", ReadOnly: true})
			if err == nil {
				err = p.Apply(r.Context(), []store.Op{{Kind: store.OpForget}})
			}
			if err != nil {
				r.Fatal(err)
			}
			r.Cleanup(func() { _ = p.Close() })
		}, true},
		"failing": {inspect.StateFailing, "the last send failed: connection refused by 127.0.0.1:9; new requests are tried", "31", "failing", func(r *stateRig) {
			r.send()
			r.fail(refused)
		}, false},
		"rejecting": {inspect.StateFailing, "11 of 12 answered 404 Not Found", "31", "failing", func(r *stateRig) {
			r.send()
			for range 11 {
				if err := r.gate.Observe(r.Context(), sluice.Request{Resource: "api", Agent: "web"}, sluice.Answer{Verdict: store.VerdictOK, Status: 404}); err != nil {
					r.Fatal(err)
				}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			window := "h"
			if c.state == inspect.StateDegraded {
				window = "min" // lost memory holds requests for one window, if that is short
			}
			r := newStateRig(t, window)
			ctx, stop := context.WithCancel(t.Context())
			watched := make(chan struct{})
			go func() { inside.Of(r.gate).WatchStates(ctx); close(watched) }()
			t.Cleanup(func() { stop(); <-watched })
			c.drive(r)
			st, err := r.gate.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if x := &st.Resources[0]; (x.Until != nil) != c.until {
				t.Errorf("until is %v", x.Until)
			}

			text := drawn(show.Style{Colour: true}, 0, func(s *screen) { s.now = time.Now(); s.status(&st, someClasses) })
			if c.state == inspect.StateIdle {
				if !strings.Contains(text, "idle: api") {
					t.Errorf("status prints\n%s", text)
				}
			} else if !strings.Contains(text, "\x1b["+c.colour+"m"+c.state+"\x1b[0m") {
				t.Errorf("status prints\n%s\nwant %s in colour %s", text, c.state, c.colour)
			}
			if red := strings.Contains(text, "\x1b[31m"); red != (c.state == inspect.StateFailing) {
				t.Errorf("red: %v in\n%s", red, text)
			}
			if c.state != inspect.StateIdle && c.state != inspect.StateFlowing && !strings.Contains(text, c.reason) {
				t.Errorf("status prints\n%s\nwant %q", text, c.reason)
			}

			code, body := r.get("/v1/status")
			var api struct {
				Resources []struct {
					Name, State, Reason string
					Until               *time.Time
					LightBinds          *bool `json:"light_binds"`
				}
			}
			if err := json.Unmarshal([]byte(body), &api); err != nil || code != 200 || len(api.Resources) != 1 {
				t.Fatalf("%d %s, %v", code, body, err)
			}
			printed, err := json.Marshal(st)
			if err != nil || !strings.Contains(string(printed), fmt.Sprintf(`"state":%q`, c.state)) {
				t.Errorf("--json prints %s, %v", printed, err)
			}
			if x := api.Resources[0]; x.State != c.state || !strings.Contains(x.Reason, c.reason) || (x.Until != nil) != c.until || x.LightBinds == nil {
				t.Errorf("the API says %+v, want %s: %s", x, c.state, c.reason)
			}

			_, figures := r.get("/metrics")
			for _, state := range inspect.States() {
				n := 0
				if state == c.state {
					n = 1
				}
				if line := fmt.Sprintf("sluice_resource_state{resource=\"api\",state=%q} %d\n", state, n); !strings.Contains(figures, line) {
					t.Errorf("the metrics do not say %s", line)
				}
			}

			_, why := r.get("/v1/why")
			if calm := c.state == inspect.StateIdle || c.state == inspect.StateFlowing; strings.Contains(why, fmt.Sprintf(`"state":%q`, c.state)) == calm {
				t.Errorf("why says %s", why)
			}
			code, ready := r.get("/readyz")
			strict, _ := r.get("/readyz?strict")
			if code != 200 || !strings.Contains(ready, `"status":"`+c.ready+`"`) || (strict == 200) != (c.ready == "ok") {
				t.Errorf("/readyz: %d %s, strict %d", code, ready, strict)
			}
			if c.state != inspect.StateIdle && !r.told(c.state) { // it begins with that
				t.Error("no event tells of it")
			}
		})
	}
}

// A fleet that fully uses a learned limit waits in the queue. That is no trouble as long as no request is refused.
func TestSaturatedOnLearnedLimits(t *testing.T) {
	t.Parallel()
	g, err := sluice.Open(t.Context(), sluice.Config{Resources: map[string]sluice.Resource{
		"api": {Limits: []sluice.Limit{{Name: "learned", Kind: sluice.Rolling, Window: time.Minute}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	req := sluice.Request{Resource: "api", Agent: "web"}
	for left := int64(1); left >= 0; left-- {
		ticket, err := g.Acquire(t.Context(), req) // few go at first where no limit is known
		if err != nil {
			t.Fatal(err)
		}
		a := sluice.Answer{Verdict: store.VerdictOK, Status: 200, Limits: []sluice.ObservedLimit{{Limit: "learned", Size: 2, Remaining: left, ResetIn: store.NotStated}}}
		if _, err := ticket.Answer(a); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = g.Acquire(ctx, req)
	}()
	defer func() { stop(); <-done }()
	var st inspect.Status
	for deadline := time.Now().Add(proctest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if st, err = g.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st.Resources[0].AllWaiting() > 0 {
			break
		}
	}
	text := drawn(show.Style{Colour: true}, 0, func(s *screen) { s.now = time.Now(); s.status(&st, someClasses) })
	x := &st.Resources[0]
	if strings.Contains(text, "\x1b[31m") || x.State != inspect.StateQueueing || !strings.Contains(x.Reason, "the limit learned is full (2 of 2 used)") || x.LightBinds {
		t.Errorf("%s: %s\n%s", x.State, x.Reason, text)
	}
}
