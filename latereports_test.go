package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// within is how long a report may wait for a call to take it along.
const within = 5 * time.Millisecond

// tapped is a store that records its batches, as text such as "answer 1, close 1, acquire". It leaves out beats.
type tapped struct {
	*shared
	mu    sync.Mutex
	calls []string
	hold  atomic.Pointer[chan struct{}] // calls wait for it
	fault atomic.Pointer[error]         // what calls return after they were carried out
}

func newTapped(tb testing.TB) *tapped {
	tb.Helper()
	s := &tapped{shared: newShared(tb)}
	s.url = "tapped" + s.url
	store.Register(s.url[:len(s.url)-1], func(context.Context, string) (store.Store, error) { return s, nil })
	return s
}

func (s *tapped) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.shared.Pool(ctx, spec)
	return &tappedPool{p, s}, err
}

type tappedPool struct {
	store.Pool
	tapped *tapped
}

var opNames = map[store.OpKind]string{store.OpAcquire: "acquire", store.OpAnswer: "answer", store.OpClose: "close", store.OpCancel: "cancel", store.OpRenew: "renew", store.OpPoll: "poll", store.OpGone: "gone"}

func (p *tappedPool) Apply(ctx context.Context, ops []store.Op) error {
	var names []string
	for i := range ops {
		switch op := &ops[i]; {
		case op.Kind == store.OpPoll && op.ID.N == 0, op.Kind == store.OpGone:
		case op.Kind == store.OpAcquire:
			names = append(names, "acquire")
		default:
			names = append(names, fmt.Sprint(opNames[op.Kind], " ", op.ID.N))
		}
	}
	s := p.tapped
	s.mu.Lock()
	if len(names) > 0 {
		s.calls = append(s.calls, strings.Join(names, ", "))
	}
	s.mu.Unlock()
	if hold := s.hold.Load(); hold != nil {
		select {
		case <-*hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := p.Pool.Apply(ctx, ops)
	if fault := s.fault.Load(); fault != nil {
		return *fault
	}
	return err
}

// got returns the batches since the last call.
func (s *tapped) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *tapped) want(tb testing.TB, what string, want ...string) {
	tb.Helper()
	if got := s.got(); !slices.Equal(got, want) {
		tb.Errorf("%s: the store got\n%q, want\n%q", what, got, want)
	}
}

// fine is an ok answer without stated limits.
var fine = sluice.Answer{Verdict: store.VerdictOK}

// A ticket used to take three round trips. Now its answer and its close go in front of the next acquire, in the same
// batch.
func TestOneCallATicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(1), sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Unit: "tokens", Size: 1000, Window: time.Hour})
		for i := range 10 {
			ticket := acquire(t, g, costs("a", sluice.Amount{Unit: "tokens", N: 50}))
			answer(t, ticket, fine)
			end(t, ticket, sluice.Amount{Unit: "tokens", N: int64(i)})
		}
		want := []string{"acquire"}
		for i := 1; i < 10; i++ {
			want = append(want, fmt.Sprintf("answer %d, close %d, acquire", i, i))
		}
		s.want(t, "ten tickets", want...)
		time.Sleep(within)
		s.want(t, "then", "answer 10, close 10")
		time.Sleep(time.Hour)
		s.want(t, "an hour later")
	})
}

// Usage that is reported late is settled the same way.
func TestLateUsageIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		tokens := sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Unit: "tokens", Size: 1000, Window: time.Hour}
		requests := sluice.Limit{Name: "requests", Kind: sluice.Rolling, Size: 1000, Window: time.Hour}
		g := s.open(t, sluice.Config{}, tokens, requests)
		for i := range 3 {
			ticket := acquire(t, g, costs("a", sluice.Amount{Unit: "tokens", N: 50}))
			answer(t, ticket, fine)
			end(t, ticket, sluice.Amount{Unit: "tokens", N: int64(i)})
		}
		pass(t, g, costs("a", sluice.Amount{Unit: "tokens", N: 100})) // which tells of no usage
		if n, m := used(t, g, "tokens"), used(t, g, "requests"); n != 103 || m != 4 {
			t.Errorf("%d tokens and %d requests are charged, want 103 and 4", n, m)
		}
		spent := acquire(t, g, costs("a", sluice.Amount{Unit: "tokens", N: 1}))
		if err := spent.CloseUnanswered(); err != nil {
			t.Error(err)
		}
		if s := state(t, g); s.InFlight != 0 {
			t.Errorf("%d in flight", s.InFlight)
		}
	})
}

// The answer and the close of a ticket stay next to each other, whatever was reported between them.
func TestReportsOfATicketStayTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10))
		a, b, c := acquire(t, g, from("a")), acquire(t, g, from("b")), acquire(t, g, from("c"))
		s.got()
		answer(t, a, fine)
		answer(t, b, fine)
		end(t, c)
		end(t, b)
		end(t, a)
		end(t, a) // which does no harm
		if _, err := a.Answer(fine); !errors.Is(err, sluice.ErrEnded) {
			t.Errorf("an answer after the close: %v", err)
		}
		time.Sleep(within)
		s.want(t, "the reports", "answer 1, close 1, answer 2, close 2, close 3")
		end(t, a)
		time.Sleep(within)
		s.want(t, "a close of a ticket that has ended", "close 1")
	})
}

// An answer is sent by itself if the request takes longer. Its close follows.
func TestAnswerLeavesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10))
		ticket := acquire(t, g, from("a"))
		answer(t, ticket, fine)
		s.want(t, "at first", "acquire")
		time.Sleep(within)
		s.want(t, "soon", "answer 1")
		time.Sleep(time.Minute)
		end(t, ticket)
		time.Sleep(within)
		s.want(t, "in the end", "close 1")
	})
}

// The list is bounded: when it is full, it is sent at once.
func TestFullListLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(1000))
		var tickets []sluice.Ticket
		for range 200 {
			tickets = append(tickets, acquire(t, g, from("a")))
		}
		s.got()
		for _, ticket := range tickets {
			answer(t, ticket, fine)
			end(t, ticket)
		}
		for _, call := range s.got() {
			if n := strings.Count(call, ",") + 1; n > 128 {
				t.Errorf("%d operations in one call", n)
			}
		}
		if n := state(t, g).InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// Whatever can start or end a pause is reported at once, behind pending reports. So is everything while the resource is
// held.
func TestRefusalIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10), rolling(1000, time.Hour))
		a, b, c := acquire(t, g, from("a")), acquire(t, g, from("b")), acquire(t, g, from("c"))
		s.got()
		answer(t, a, fine)
		end(t, a)
		if held := answer(t, b, sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: 3 * time.Second}); !held {
			t.Error("the resource is not held")
		}
		s.want(t, "a refusal", "answer 1, close 1, answer 2")
		answer(t, c, fine)
		end(t, c)
		end(t, b)
		s.want(t, "while it is held", "answer 3", "close 3", "close 2")
		probe := acquire(t, g, from("a"))
		s.got()
		answer(t, probe, fine)
		end(t, probe)
		s.want(t, "of the probe", "answer 4", "close 4")
		time.Sleep(time.Minute)
		pass(t, g, from("a"))
		s.got()
		time.Sleep(within)
		ticket := acquire(t, g, from("a"))
		s.got()
		answer(t, ticket, fine)
		end(t, ticket)
		s.want(t, "when all is over")
	})
}

// Other answers, and reports about tickets by their ids, wait for the store.
func TestReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10), rolling(1000, time.Hour))
		for _, a := range []sluice.Answer{
			{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "rolling", Size: 900, Remaining: 800, ResetIn: store.NotStated}}},
			{Verdict: store.VerdictError},
			{},
		} {
			ticket := acquire(t, g, from("a"))
			s.got()
			answer(t, ticket, a)
			if got := s.got(); len(got) != 1 || !strings.HasPrefix(got[0], "answer") {
				t.Errorf("%+v: the store got %q", a, got)
			}
			end(t, ticket)
			time.Sleep(within)
		}
		req := from("a")
		req.Detached = true
		for _, detached := range []bool{true, false} {
			req.Detached = detached
			ticket := acquire(t, g, req)
			if !detached { // by its id, as another process would
				var err error
				if ticket, err = g.Ticket(ticket.ID()); err != nil {
					t.Fatal(err)
				}
			}
			s.got()
			answer(t, ticket, fine)
			end(t, ticket)
			if got := s.got(); len(got) != 2 {
				t.Errorf("detached %v: the store got %q", detached, got)
			}
			if _, err := ticket.Answer(fine); !errors.Is(err, sluice.ErrEnded) {
				t.Errorf("detached %v: an answer after the close: %v", detached, err)
			}
		}
		unknown, err := g.Ticket("api.1f-2a")
		if err != nil {
			t.Fatal(err)
		}
		if err := unknown.Close(); !errors.Is(err, sluice.ErrUnknownTicket) {
			t.Errorf("a ticket that never was: %v", err)
		}
		ticket := acquire(t, g, from("a"))
		other := acquire(t, g, from("a"))
		end(t, ticket)
		s.got()
		if err := other.Cancel(); err != nil {
			t.Fatal(err)
		}
		if got := s.got(); len(got) != 1 || !strings.HasPrefix(got[0], "close") || !strings.Contains(got[0], "cancel") {
			t.Errorf("a cancel: the store got %q", got)
		}
	})
}

// A request that waits for concurrency gets it as soon as it is free: reports are not delayed while requests wait for
// what they free.
func TestReportDoesNotWaitWhileOthersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTapped(t).open(t, sluice.Config{}, places(1))
		c := &crowd{tb: t, gate: g}
		for i := range 5 {
			c.hold(context.Background(), fmt.Sprint(i), from("a"), time.Second)
		}
		c.order()
		for i, e := range c.entries {
			if want := time.Duration(i) * time.Second; e.at != want {
				t.Errorf("number %d got its place after %v, want %v", i, e.at, want)
			}
		}
	})
}

// Reading the state shows everything that the process has done, and Close leaves no report behind.
func TestReadingAndClosingSendReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10))
		pass(t, g, from("a"))
		if n := state(t, g).InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
		watch := s.open(t, sluice.Config{}, places(10))
		one, err := sluice.Open(context.Background(), sluice.Config{Store: s.url, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(10)}}}})
		if err != nil {
			t.Fatal(err)
		}
		ticket := acquire(t, one, from("a"))
		answer(t, ticket, fine)
		end(t, ticket)
		if n := state(t, watch).InFlight; n != 1 {
			t.Errorf("%d in flight before the gate is closed, want 1", n)
		}
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		if n := state(t, watch).InFlight; n != 0 {
			t.Errorf("%d in flight after the gate was closed", n)
		}
		if err := ticket.Close(); err != nil && !errors.Is(err, sluice.ErrClosed) {
			t.Errorf("a ticket of a closed gate: %v", err)
		}
	})
}

// A report whose call fails is sent again until it arrives, also if its caller waited for the call and got the error.
func TestFailedReportIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10))
		a, b, c := acquire(t, g, from("a")), acquire(t, g, from("b")), acquire(t, g, from("c"))
		s.got()
		answer(t, a, fine)
		end(t, a)
		s.fail(store.ErrUnavailable)
		time.Sleep(within)
		if err := b.Close(); !errors.Is(err, sluice.ErrStore) {
			t.Errorf("a close after the failure: %v", err)
		}
		if err := c.Cancel(); !errors.Is(err, sluice.ErrStore) {
			t.Errorf("a cancel after the failure: %v", err)
		}
		if got := s.got(); len(got) != 3 || got[2] != "answer 1, close 1, close 2, poll 3, cancel 3" {
			t.Errorf("the store got %q", got)
		}
		s.recover()
		time.Sleep(10 * time.Second)
		s.want(t, "when it is back", "answer 1, close 1, close 2, cancel 3")
		if n := state(t, g).InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
		end(t, b) // a second time
		time.Sleep(within)
		s.got()
		pass(t, g, from("a"))
		s.want(t, "as before", "acquire")
	})
}

// A process that asks only once reports nothing late. What it could not report is sent again all the same.
func TestFailedEndOfAOneShotProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{OneShot: true}, places(10))
		ticket := acquire(t, g, from("a"))
		s.fail(store.ErrUnavailable)
		if err := ticket.Close(); !errors.Is(err, sluice.ErrStore) {
			t.Errorf("the close: %v", err)
		}
		s.recover()
		time.Sleep(time.Second)
		if n := state(t, g).InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// Reports that the store has kept are not sent again.
func TestKeptReportIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10))
		ticket := acquire(t, g, from("a"))
		end(t, ticket)
		kept := store.Kept(store.ErrUnavailable)
		s.fault.Store(&kept)
		time.Sleep(within)
		s.fault.Store(nil)
		s.got()
		time.Sleep(time.Minute)
		s.want(t, "a minute later")
	})
}

// Close returns an error if it could not report everything.
func TestCloseTellsWhatWasNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g, err := sluice.Open(context.Background(), sluice.Config{Store: s.url, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(10)}}}})
		if err != nil {
			t.Fatal(err)
		}
		end(t, acquire(t, g, from("a")))
		s.fail(store.ErrUnavailable)
		if err := g.Close(); !errors.Is(err, sluice.ErrStore) {
			t.Errorf("closing: %v", err)
		}
	})
}

// A caller that leaves does not take reports with it.
func TestReportsOutliveTheCallerTheyRodeWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, places(10))
		end(t, acquire(t, g, from("a")))
		hold := make(chan struct{})
		s.hold.Store(&hold)
		s.got()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := g.Acquire(ctx, from("b")); !errors.Is(err, sluice.ErrCancelled) {
			t.Errorf("%v", err)
		}
		s.hold.Store(nil)
		close(hold)
		time.Sleep(within)
		if got := s.got(); len(got) < 2 || got[0] != "close 1, acquire" || !slices.Contains(got[1:], "close 1") {
			t.Errorf("the store got %q", got)
		}
		if n := state(t, g).InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// A close does not overtake its answer, which is in progress with another caller.
func TestCloseDoesNotOvertakeItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, late := range []bool{true, false} {
			s := newTapped(t)
			g := s.open(t, sluice.Config{}, places(10), rolling(1000, time.Hour))
			ticket := acquire(t, g, from("a"))
			answer(t, ticket, fine)
			hold := make(chan struct{})
			s.hold.Store(&hold)
			s.got()
			var wg sync.WaitGroup
			wg.Go(func() { acquire(t, g, from("b")) })
			synctest.Wait()
			s.want(t, "one asks", "answer 1, acquire")
			if late {
				end(t, ticket)
				wg.Go(func() { acquire(t, g, from("c")) })
				synctest.Wait()
				s.want(t, "another asks", "answer 1, close 1, acquire")
			} else {
				byID, err := g.Ticket(ticket.ID())
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() { end(t, byID) })
				synctest.Wait()
				s.want(t, "at once", "answer 1, close 1")
			}
			s.hold.Store(nil)
			close(hold)
			wg.Wait()
		}
	})
}

// Try sees what its caller has closed before, even if that report is in progress with another caller.
func TestTryComesAfterWhatItsCallerClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTapped(t)
		g := s.open(t, sluice.Config{}, sluice.Limit{Name: "mine", Kind: sluice.Concurrency, Size: 1, Per: []sluice.Scope{sluice.PerAgent}})
		end(t, acquire(t, g, from("a")))
		hold := make(chan struct{})
		s.hold.Store(&hold)
		var wg sync.WaitGroup
		wg.Go(func() { acquire(t, g, from("b")) })
		synctest.Wait()
		s.hold.Store(nil)
		wg.Go(func() {
			if _, err := g.Try(context.Background(), from("a")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(hold)
		wg.Wait()
	})
}

// With many concurrent callers, every ticket ends, and no report is lost although calls fail.
func TestLateReportsOfManyCallers(t *testing.T) {
	s := newTapped(t)
	g := s.open(t, sluice.Config{}, places(20), rolling(1<<30, time.Hour))
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for k := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if k%7 == i%7 {
					time.AfterFunc(50*time.Microsecond, cancel)
				}
				ticket, err := g.Acquire(ctx, from(fmt.Sprint("agent", i%5)))
				cancel()
				if err != nil {
					continue
				}
				if k%3 > 0 {
					_, err = ticket.Answer(fine)
				}
				if err = errors.Join(err, ticket.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := state(t, g).InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}
