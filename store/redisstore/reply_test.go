package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// An acquire whose reply was lost was repeated and charged twice, and a close was lost.
func TestALostReplyIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	m := join(t, c.url(), passing(perMinute(100)))
	m.store.AnswerWithin(0)
	watch := join(t, server.URL(), passing(perMinute(100)))
	m.take(1)
	// On a busy machine the repetition may come too late: then the store counts as lost for a moment, and what
	// was got is given back. So the one who asks does so again.
	insist := func(op store.Op) store.ID {
		for {
			c.swallow(0, 1)
			r, err := m.try(op, patience)
			if err == nil {
				return r.ID
			}
			m.refuses(err)
			m.back()
		}
	}
	for range 10 {
		id := insist(ask(3))
		insist(store.Op{Kind: store.OpClose, ID: id})
	}
	m.close(m.take(1)) // closes need not have been sent yet
	if c.swallowed() < 10 {
		t.Errorf("only %d answers were lost", c.swallowed())
	}
	await(t, "all is charged once", func() bool {
		s := watch.snapshot()
		return s.Limits[0].Used == 32 && s.InFlight == 1 && s.Counters.Sent == 12
	})
}

// Tickets granted to callers that had left stayed until they expired.
func TestWhoLeavesHoldsNothing(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	m := join(t, server.URL(), passing(perMinute(100)))
	m.store.AnswerWithin(0)
	m.take(1)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ops := []store.Op{ask(1), waiting(ask(1)), waiting(ask(1000))}
	for _, op := range ops {
		if _, err := m.try(op, 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	await(t, "nothing but the first is held", func() bool {
		s, err := m.pool.Snapshot(context.Background())
		open, waits, void := redisstore.Notes(m.pool)
		return err == nil && s.InFlight == 1 && s.Waiting[0] == 0 && s.Limits[0].Used == 1 && open == 1 && waits == 0 && void == 0
	})
}

// A caller that polled its ticket and left before the reply held the grant without knowing.
func TestWhoLeavesWhileCollectingHoldsNothing(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	limit := store.Limit{Name: "slots", Kind: store.Concurrency, Unit: "requests", Size: 1}
	m := join(t, server.URL(), passing(limit))
	m.store.AnswerWithin(0)
	first := m.take(1)
	id := m.must(waiting(ask(1)), store.Waiting)
	m.close(first)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.try(store.Op{Kind: store.OpPoll, ID: id}, 20*time.Millisecond); err == nil {
		t.Error("it was answered")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	m.back()
	await(t, "nothing is held", func() bool { return m.do(ask(1)).State == store.Granted })
}

// A call that was given up was carried out when the server resumed, and its grants belonged to no caller.
func TestWhatWasGivenUpIsGivenBack(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	m := join(t, server.URL(), failing(store.FailClosed, perMinute(100)))
	m.take(1)
	m.store.AnswerWithin(0)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	for _, op := range []store.Op{ask(1), waiting(ask(1)), ask(1)} {
		_, err := m.try(op, patience)
		m.refuses(err)
	}
	m.store.AnswerWithin(unhurried)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	m.back()
	await(t, "nothing but the first is held", func() bool {
		s := m.snapshot()
		_, _, void := redisstore.Notes(m.pool)
		return s.InFlight == 1 && s.Limits[0].Used == 1 && s.Counters.Sent == 1 && void == 0
	})
}

// Replies can also be lost while a member returns, at any point.
func TestComingBackMayFail(t *testing.T) {
	for skip := range 5 {
		t.Run(fmt.Sprint(skip), func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t)
			c := newCutter(t, server.Addr())
			m := join(t, c.url(), failing(store.FailShare, brief(10), slotsOf(100)))
			watch := join(t, server.URL(), passing(brief(10), slotsOf(100)))
			m.joined()
			mine := m.must(ask(1), store.Granted)
			for range 3 {
				m.close(m.must(ask(1), store.Granted))
			}
			c.block(true)
			await(t, "it is cut off", m.lost)
			// It has charged four places of one limit, and of the other one: that one it may use again.
			m.close(mine)
			var ids []store.ID
			first := m.must(waiting(ask(1)), store.Waiting)
			if s := m.collect(first); s != store.Granted {
				t.Fatalf("it is %v", s)
			}
			ids = append(ids, first)
			for range 2 {
				ids = append(ids, m.must(waiting(ask(1)), store.Waiting))
			}
			c.swallow(skip, 3)
			c.block(false)
			await(t, "answers were lost", func() bool { return c.swallowed() > 0 || !m.lost() })
			m.back()
			for _, id := range ids[1:] {
				if s := m.collect(id); s != store.Granted {
					t.Fatalf("it is %v", s)
				}
			}
			if s := watch.snapshot(); s.InFlight != 3 || s.Waiting[0] != 0 || s.Counters.Sent != 7 {
				t.Errorf("%d in flight, %v wait, %d sent", s.InFlight, s.Waiting, s.Counters.Sent)
			}
			for _, id := range ids {
				m.close(id)
			}
			// The last of the answers may be lost now: then the closes are kept, and done when the member is back again.
			await(t, "nothing is in flight", func() bool { return watch.snapshot().InFlight == 0 })
		})
	}
}

// A close that was under way when the outage began is sent again afterwards.
func TestACloseUnderWayIsNotLost(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t, persistent...)
	m := join(t, server.URL(), failing(store.FailShare, perMinute(100)))
	m.joined()
	id := m.take(1)
	m.store.AnswerWithin(0)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := m.pool.Apply(t.Context(), []store.Op{{Kind: store.OpClose, ID: id}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the store is lost", m.lost)
	m.store.AnswerWithin(unhurried)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	m.back()
	await(t, "it is closed, and known to be", func() bool {
		open, _, _ := redisstore.Notes(m.pool)
		return open == 0 && m.snapshot().InFlight == 0
	})
}
