package redisstore_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// Callers go on asking while a process returns from an outage. None may get a ticket number that the store later gives to
// another caller: both would hold one ticket.
func TestNumbersOfThoseWhoAskOnTheWayBackAreTheirOwn(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	m := join(t, c.url(), failing(store.FailShare, perMinute(1000)))
	m.joined()
	m.take(1)
	m.store.AnswerWithin(0)
	c.block(true)
	await(t, "it is cut off", func() bool { _, _ = m.try(ask(1), quick); return m.lost() })
	given := map[store.ID]string{}
	note := func(r store.Result, by string) {
		if before := given[r.ID]; r.ID.N != 0 && before != "" {
			t.Fatalf("%v was given by %s, and again by %s", r.ID, before, by)
		}
		given[r.ID] = by
	}
	m.store.AnswerWithin(unhurried)
	c.slowDown(100 * time.Millisecond)
	c.block(false)
	asked := 0
	for end := time.Now().Add(patience); m.lost() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if r, err := m.try(waiting(ask(1)), patience); err == nil && asked < 90 { // no more than may wait
			note(r, "the process on its way back")
			asked++
		}
	}
	c.slowDown(0)
	m.back()
	for range 200 {
		note(m.do(ask(1)), "the store")
	}
}

// The store carries out an attempt to return, and its reply is lost. Grants after that are charged when the store is back:
// their numbers are above the one that the attempt moved their session past.
func TestWhatIsLetGoBetweenTwoAttemptsToComeBackIsCharged(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	limit := perMinute(8)
	limit.Window = time.Second
	m := join(t, c.url(), failing(store.FailShare, limit))
	m.joined()
	agent := "the-one-agent"
	one := ask(1)
	one.Agent, one.TTL = agent, time.Hour
	m.close(m.must(one, store.Granted))
	m.store.AnswerWithin(0)
	c.block(true)
	await(t, "it is cut off", func() bool { _, _ = m.try(one, quick); return m.lost() })
	first := m.must(waiting(one), store.Waiting)
	if s := m.collect(first); s != store.Granted {
		t.Fatalf("the first is %v", s)
	}
	c.swallowAbout(agent, 4) // two attempts, each sent twice
	c.block(false)
	await(t, "two attempts were heard", func() bool { return c.swallowed() == 4 || !m.lost() })
	c.block(true)
	if !m.lost() {
		t.Fatal("the store is back, though its answers were lost")
	}
	var second store.ID
	await(t, "the process has its share again", func() bool {
		r := m.do(one)
		second = r.ID
		return r.State == store.Granted
	})
	m.store.AnswerWithin(unhurried)
	c.block(false)
	m.back()
	if n := m.snapshot().InFlight; n != 2 {
		t.Errorf("the store knows of %d requests, want the 2 that were let go", n)
	}
	m.close(first)
	m.close(second)
}
