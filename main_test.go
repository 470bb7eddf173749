package sluice_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// openResource opens a gate with one resource, named api.
func openResource(tb testing.TB, r sluice.Resource) *sluice.Gate {
	tb.Helper()
	return openConfig(tb, sluice.Config{Resources: map[string]sluice.Resource{"api": r}})
}

func openConfig(tb testing.TB, c sluice.Config) *sluice.Gate {
	tb.Helper()
	g, err := sluice.Open(context.Background(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g
}

func bucket(size int64, window time.Duration, burst int64) sluice.Limit {
	return sluice.Limit{Name: "bucket", Kind: sluice.Bucket, Size: size, Window: window, Burst: burst}
}

func rolling(size int64, window time.Duration) sluice.Limit {
	return sluice.Limit{Name: "rolling", Kind: sluice.Rolling, Size: size, Window: window}
}

func places(n int64) sluice.Limit {
	return sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: n}
}

func from(agent string) sluice.Request { return sluice.Request{Resource: "api", Agent: agent} }

func costs(agent string, cost ...sluice.Amount) sluice.Request {
	return sluice.Request{Resource: "api", Agent: agent, Cost: cost}
}

func acquire(tb testing.TB, g *sluice.Gate, req sluice.Request) sluice.Ticket {
	tb.Helper()
	t, err := g.Acquire(context.Background(), req)
	if err != nil {
		tb.Fatalf("acquire %+v: %v", req, err)
	}
	return t
}

// pass acquires and closes at once.
func pass(tb testing.TB, g *sluice.Gate, req sluice.Request) {
	tb.Helper()
	end(tb, acquire(tb, g, req))
}

func end(tb testing.TB, t sluice.Ticket, usage ...sluice.Amount) {
	tb.Helper()
	if err := t.Close(usage...); err != nil {
		tb.Fatalf("close: %v", err)
	}
}

func answer(tb testing.TB, t sluice.Ticket, a sluice.Answer) (held bool) {
	tb.Helper()
	held, err := t.Answer(a)
	if err != nil {
		tb.Fatalf("answer: %v", err)
	}
	return held
}

// took returns how long f takes.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func wantTook(tb testing.TB, what string, got, want time.Duration) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s took %v, want %v", what, got, want)
	}
}

func state(tb testing.TB, g *sluice.Gate) inspect.ResourceStatus {
	tb.Helper()
	s, err := g.Status(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return s.Resources[0]
}

// used returns what is charged on the limit, summed over its scopes.
func used(tb testing.TB, g *sluice.Gate, limit string) (sum int64) {
	tb.Helper()
	for _, l := range state(tb, g).Limits {
		if l.Name == limit {
			sum += l.Used
		}
	}
	return sum
}

// wantUntouched fails if anything is charged, open or waiting.
func wantUntouched(tb testing.TB, g *sluice.Gate) {
	tb.Helper()
	s := state(tb, g)
	for _, l := range s.Limits {
		if l.Used != 0 {
			tb.Errorf("limit %s %s: %d used, want 0", l.Name, l.Scope, l.Used)
		}
	}
	for class, n := range s.Waiting {
		if n != 0 {
			tb.Errorf("%d of %s wait, want none", n, class)
		}
	}
	if s.InFlight != 0 || s.Sent != 0 {
		tb.Errorf("in flight %d, sent %d, want 0", s.InFlight, s.Sent)
	}
}

// wantError fails unless err is an *Error of the given kind.
func wantError(tb testing.TB, err, about error) *sluice.Error {
	tb.Helper()
	var e *sluice.Error
	if !errors.As(err, &e) || !errors.Is(err, about) {
		tb.Fatalf("error is %v (%T), want an *Error about %q", err, err, about)
	}
	return e
}

// crowd runs callers in their own goroutines, in virtual time.
type crowd struct {
	tb   testing.TB
	gate *sluice.Gate
	wg   sync.WaitGroup

	mu      sync.Mutex
	entries []entry
}

type entry struct {
	who string
	at  time.Duration
	err error
}

// ask starts a caller that acquires, records when, and closes at once. It returns when the caller waits or is done.
func (c *crowd) ask(who string, req sluice.Request) {
	c.hold(context.Background(), who, req, 0)
}

// hold is ask for a caller that closes its ticket after a while.
func (c *crowd) hold(ctx context.Context, who string, req sluice.Request, length time.Duration) {
	c.tb.Helper()
	c.wg.Go(func() {
		t, err := c.gate.Acquire(ctx, req)
		c.note(who, err)
		if err != nil {
			return
		}
		time.Sleep(length)
		if err := t.Close(); err != nil {
			c.tb.Error(err)
		}
	})
	synctest.Wait()
}

// bubbleStart is when virtual time begins.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *crowd) note(who string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, entry{who, time.Since(bubbleStart), err})
}

// order waits until all callers are done and returns them in order.
func (c *crowd) order() []string {
	c.tb.Helper()
	c.wg.Wait()
	var names []string
	for _, e := range c.entries {
		if e.err != nil {
			c.tb.Errorf("%s: %v", e.who, e.err)
		}
		names = append(names, e.who)
	}
	return names
}
