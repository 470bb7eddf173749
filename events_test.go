package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

func ok(context.Context, sluice.Ticket) (sluice.Answer, error) {
	return sluice.Answer{Verdict: store.VerdictOK}, nil
}

// record collects the events of a gate.
type record struct {
	mu     sync.Mutex
	events []inspect.Event
}

func (r *record) add(e inspect.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *record) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []string
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return strings.Join(kinds, " ")
}

// all returns the events of a kind.
func (r *record) all(kind string) (list []inspect.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

func (r *record) count(kind string) int { return len(r.all(kind)) }

func (r *record) last(tb testing.TB, kind string) inspect.Event {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.events) - 1; i >= 0; i-- {
		if r.events[i].Kind == kind {
			return r.events[i]
		}
	}
	tb.Fatalf("no event %q", kind)
	return inspect.Event{}
}

// openRecorded opens a gate with one resource, and records its events.
func openRecorded(tb testing.TB, r sluice.Resource) (*sluice.Gate, *record) {
	tb.Helper()
	kept := &record{}
	g := openConfig(tb, sluice.Config{
		Resources: map[string]sluice.Resource{"api": r}, Agents: map[string]sluice.Agent{"a": {Class: sluice.P1, User: "u"}}, Events: kept.add,
	})
	return g, kept
}

func TestEventsOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, kept := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{
			rolling(10, time.Minute), {Name: "in", Kind: sluice.Rolling, Size: 1000, Window: time.Minute, Unit: "input_tokens"},
		}})
		req := sluice.Request{
			Resource: "api", Agent: "a", Model: "m", Tool: "llm_call", Retry: true, Cost: []sluice.Amount{{Unit: "input_tokens", N: 20}, {Unit: "none", N: 1}},
		}
		ticket := acquire(t, g, req)
		want := inspect.Event{
			Time: bubbleStart, Kind: inspect.EventSend, Resource: "api", Ticket: ticket.ID(), Agent: "a", User: "u", Class: "p1", Model: "m",
			Tool: "llm_call", Units: map[string]int64{"requests": 1, "input_tokens": 20}, Retry: true,
		}
		if got := kept.last(t, inspect.EventSend); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Status: 200})
		end(t, ticket, sluice.Amount{Unit: "input_tokens", N: 25})
		if got := kept.last(t, inspect.EventAnswer); got.Status != 200 || got.Verdict != "ok" || got.Agent != "a" || got.Ticket != ticket.ID() {
			t.Errorf("got %+v", got)
		}
		if got := kept.last(t, inspect.EventUsage); got.Units["input_tokens"] != 25 || got.Ticket != ticket.ID() {
			t.Errorf("got %+v", got)
		}
		if err := acquire(t, g, from("b")).Cancel(); err != nil {
			t.Fatal(err)
		}
		if got := kept.kinds(); got != "send answer usage send cancel" {
			t.Errorf("told %q", got)
		}
	})
}

// The event of a request that waited has the limit, how much of it was used, and the wait.
func TestEventsTellWhyOneWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, kept := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{rolling(1, 10*time.Second)}, Guard: store.GuardOff})
		pass(t, g, from("b"))
		if err := g.Do(t.Context(), from("a"), ok); err != nil {
			t.Fatal(err)
		}
		check := func() {
			got := kept.last(t, inspect.EventSend)
			if got.Agent != "a" || got.WaitedMS < 10_000 || got.Limit != "rolling" || got.Reason != "limit" || got.Size != 1 || got.Used != 1 {
				t.Errorf("got %+v", got)
			}
		}
		check()
		pass(t, g, from("a")) // for as long as it takes
		check()
	})
}

func TestEventsOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, kept := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{rolling(10, time.Minute), places(1)}})
		ticket := acquire(t, g, from("a"))
		_, err := g.Try(t.Context(), from("b"))
		wantError(t, err, sluice.ErrNotNow)
		if got := kept.last(t, inspect.EventRefused); got.Agent != "b" || got.Reason != "limit" || got.Limit != "places" || got.Used != 1 || got.Size != 1 {
			t.Errorf("got %+v", got)
		}
		answer(t, ticket, sluice.Answer{
			Verdict: store.VerdictThrottled, Status: 429, Cause: "too many", Limits: []sluice.ObservedLimit{{Limit: "rolling", Size: 10, Remaining: 0, ResetIn: store.NotStated}},
		})
		until := bubbleStart.Add(time.Minute)
		want := inspect.Event{
			Time: bubbleStart, Kind: inspect.EventPause, Resource: "api", Ticket: ticket.ID(), Agent: "a", User: "u", Class: "p1", Status: 429,
			Verdict: "throttled", Reason: "too many", Limit: "rolling", Used: 10, Size: 10, Consecutive: 1, ForMS: 60_000, Until: &until,
		}
		if got := kept.last(t, inspect.EventPause); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		end(t, ticket)
		_, err = g.Try(t.Context(), from("b"))
		if e := wantError(t, err, sluice.ErrNotNow); !kept.last(t, inspect.EventRefused).RetryAt.Equal(e.RetryAt) {
			t.Errorf("retry at %v was told as %v", e.RetryAt, kept.last(t, inspect.EventRefused).RetryAt)
		}
		if got := kept.kinds(); got != "send refused answer throttled pause refused" {
			t.Errorf("told %q", got)
		}
	})
}

// A burst of refusals is one pause.
func TestEventsTellOfEachPauseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, kept := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{rolling(10, time.Minute)}})
		a, b := acquire(t, g, from("a")), acquire(t, g, from("b"))
		time.Sleep(time.Second)
		answer(t, a, sluice.Answer{Verdict: store.VerdictThrottled})
		time.Sleep(time.Second)
		answer(t, b, sluice.Answer{Verdict: store.VerdictThrottled})
		if got := strings.Count(kept.kinds(), "pause"); got != 1 {
			t.Errorf("%d pauses were told of, want 1", got)
		}
		if err := g.Pause(t.Context(), "api", time.Hour, "by hand"); err != nil {
			t.Fatal(err)
		}
		if got := kept.last(t, inspect.EventPause); got.Reason != "by hand" || got.ForMS != time.Hour.Milliseconds() || got.Agent != "" {
			t.Errorf("got %+v", got)
		}
		if err := g.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		kept.last(t, inspect.EventResume)
	})
}

// In mode observe no request waits, and events say what would have happened.
func TestObserveModeHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, kept := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{rolling(1, time.Minute), places(1)}, Observe: true, MaxWaiting: 1})
		if got := state(t, g).Mode; got != "observe" {
			t.Errorf("mode is %q", got)
		}
		first := acquire(t, g, from("a"))
		var second sluice.Ticket
		wantTook(t, "the second", took(func() { second = acquire(t, g, from("b")) }), 0)
		if got := kept.last(t, inspect.EventWouldWait); got.Agent != "b" || got.Limit == "" || got.Ticket != second.ID() {
			t.Errorf("got %+v", got)
		}
		if got := kept.last(t, inspect.EventSend); got.Observed || got.Ticket != second.ID() {
			t.Errorf("got %+v", got)
		}
		if second.Stale() || second.Renew(t.Context()) != nil {
			t.Error("one who is not held has to renew")
		}
		answer(t, second, sluice.Answer{Verdict: store.VerdictThrottled, Status: 429, RetryAfter: time.Minute})
		end(t, second)
		end(t, second)
		if err := second.CloseUnanswered(); err != nil {
			t.Error(err)
		}
		end(t, first)
		if got := kept.last(t, inspect.EventThrottled); got.Agent != "b" || got.Observed {
			t.Errorf("got %+v", got)
		}
		if s := state(t, g); s.PausedUntil != nil || s.Consecutive429 != 0 || len(s.Gates) != 0 {
			t.Errorf("a refusal paused what is only observed: %+v", s)
		}
		// With a cost that no limit can hold: all the same.
		pass(t, g, from("a"))
		pass(t, g, costs("a", sluice.Amount{Unit: "requests", N: 5}))
		if got := kept.last(t, inspect.EventWouldWait); got.Reason != "capacity" {
			t.Errorf("got %+v", got)
		}
		if err := g.Do(t.Context(), from("c"), ok); err != nil {
			t.Error(err)
		}
		foreign, err := g.Ticket(acquire(t, g, from("d")).ID())
		if err != nil {
			t.Fatal(err)
		}
		answer(t, foreign, sluice.Answer{Verdict: store.VerdictOK})
		end(t, foreign)
		s := state(t, g)
		if s.Sent != 6 || s.InFlight != 0 || s.Throttled != 1 || s.Limits[0].Used < 10 {
			t.Errorf("sent %d, in flight %d, throttled %d", s.Sent, s.InFlight, s.Throttled)
		}
	})
}

func TestObserveModeStillRefusesNonsense(t *testing.T) {
	g, _ := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{rolling(1, time.Minute)}, Observe: true})
	_, err := g.Acquire(t.Context(), sluice.Request{Resource: "api"})
	wantError(t, err, sluice.ErrInvalid)
}

// Failed heartbeats emit events. So does a store that does not answer in mode observe, which holds no request.
func TestEventsWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, shared := &record{}, newShared(t)
		g := shared.open(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": {Observe: true}}, Events: kept.add,
			Leases: sluice.Leases{Renew: time.Minute, Expire: 5 * time.Minute},
		})
		if _, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "a", User: "u"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if got := kept.kinds(); got != "" {
			t.Errorf("told %q of a lease that lasts", got)
		}
		shared.fail(store.ErrUnavailable)
		time.Sleep(time.Minute + time.Second)
		if got := kept.last(t, inspect.EventLeaseLost); got.Agent != "a" || got.User != "u" || got.Error == "" {
			t.Errorf("got %+v", got)
		}
		pass(t, g, from("a"))
		if got := kept.last(t, inspect.EventWouldWait); got.Reason != "store" {
			t.Errorf("got %+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := g.Acquire(ctx, from("a"))
		wantError(t, err, sluice.ErrCancelled)
		shared.recover()
	})
}

// The JSON form of an event is stable.
func TestEventAsJSON(t *testing.T) {
	at := bubbleStart
	text, err := json.Marshal(inspect.Event{
		Time: at, Kind: "send", Resource: "r", Ticket: "r.1-1", Agent: "a", User: "u", Class: "p2", Model: "m", Tool: "t", Units: map[string]int64{"requests": 1},
		Retry: true, WaitedMS: 5, Observed: true, Status: 429, Verdict: "throttled", Reason: "limit", Limit: "l", Used: 1, Size: 2, RetryAt: &at, Scope: "model=m",
		Consecutive: 3, ForMS: 4, Until: &at, Count: 6, Error: "e",
	})
	want := `{"time":"2000-01-01T00:00:00Z","event":"send","resource":"r","ticket":"r.1-1","agent":"a","user":"u","class":"p2","model":"m","tool":"t",` +
		`"units":{"requests":1},"retry":true,"waited_ms":5,"observed":true,"status":429,"verdict":"throttled","reason":"limit","limit":"l","used":1,"size":2,` +
		`"retry_at":"2000-01-01T00:00:00Z","scope":"model=m","consecutive":3,"for_ms":4,"until":"2000-01-01T00:00:00Z","count":6,"error":"e"}`
	if err != nil || string(text) != want {
		t.Errorf("got\n%s, %v, want\n%s", text, err, want)
	}
	if text, err = json.Marshal(inspect.Event{Time: at, Kind: "resume"}); err != nil || string(text) != `{"time":"2000-01-01T00:00:00Z","event":"resume"}` {
		t.Errorf("got %s, %v", text, err)
	}
}

// The time that a caller waited in vain counts: an event says how long it waited, and for what.
func TestAbandonedWaitsAreEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, kept := openRecorded(t, sluice.Resource{Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 1, Window: time.Minute}}})
		ask := sluice.Request{Resource: "api", Agent: "a", Model: "m"}
		if _, err := g.Acquire(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, leave)
		if _, err := g.Acquire(ctx, ask); !errors.Is(err, sluice.ErrCancelled) {
			t.Fatal(err)
		}
		e := kept.last(t, inspect.EventAbandoned)
		if e.WaitedMS != 5000 || e.Reason != "limit" || e.Limit != "minute" || e.Agent != "a" || e.Class != "p1" || e.User != "u" || e.Model != "m" || e.Ticket != "" || e.Units != nil {
			t.Errorf("%+v", e)
		}
		// A pause that is longer than its caller waits.
		if err := g.Pause(t.Context(), "api", time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		bounded, end := context.WithTimeout(t.Context(), 3*time.Second)
		defer end()
		if _, err := g.Acquire(bounded, ask); err == nil {
			t.Fatal("it was granted")
		}
		if kept.count(inspect.EventRefused)+kept.count(inspect.EventAbandoned) != 2 {
			t.Errorf("events: %s", kept.kinds())
		}
		gone, now := context.WithCancel(t.Context())
		now()
		if _, err := g.Acquire(gone, ask); err == nil {
			t.Fatal("it was granted")
		}
		if n := kept.count(inspect.EventAbandoned); n > 2 {
			t.Errorf("a caller that did not wait: %s", kept.kinds())
		}
	})
}
