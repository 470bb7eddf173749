package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// caller is one goroutine that acquires tickets of a pool, uses them and closes them.
type caller struct {
	worker *worker
	gate   *sluice.Gate
	pool   int
	agent  string
	rand   *rand.Rand
}

// between returns a random duration from low to high.
func (c *caller) between(low, high time.Duration) time.Duration {
	return low + time.Duration(c.rand.Int64N(int64(high-low)))
}

func (c *caller) loop(ctx context.Context) {
	for ctx.Err() == nil {
		if !c.once(ctx) {
			pause(ctx, c.between(20*time.Millisecond, 80*time.Millisecond))
		}
	}
}

// once acquires a ticket, uses it and closes it. It returns false if it got no ticket.
func (c *caller) once(ctx context.Context) bool {
	clock, say := c.worker.clock, c.worker.say
	ask, within := c.gate.Acquire, askWithin
	if c.rand.IntN(10) == 0 {
		ask, within = c.gate.Try, tryWithin
	}
	class := sluice.P2
	if c.rand.IntN(2) == 0 {
		class = sluice.P1
	}
	request := sluice.Request{Resource: poolNames[c.pool], Agent: c.agent, Class: class}

	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	asked := clock.now()
	ticket, err := ask(limited, request)
	used := clock.now()
	for err == nil && ticket.Stale() { // checked after used was read, so a ticket that is fresh now was fresh then
		say("renew %s", ticket.ID())
		if err = ticket.Renew(limited); errors.Is(err, sluice.ErrStore) {
			_ = ticket.Cancel() // the request was not sent; if this fails, the ticket expires
		}
		used = clock.now()
	}
	if err != nil {
		if kind := errorKind(err); kind != "cancelled" || ctx.Err() == nil { // not because the worker stops
			say("miss %s %d %d %d %s %s", poolNames[c.pool], asked, within, used, kind, oneLine(err.Error()))
		}
		return false
	}
	// used is the time at which a provider without any delay would count the request.
	say("use %s %s %d %d %d", poolNames[c.pool], ticket.ID(), asked, within, used)
	hold := c.between(0, 20*time.Millisecond)
	if c.pool == places {
		hold = c.between(5*time.Millisecond, 60*time.Millisecond)
	}
	if c.pool != places || c.rand.IntN(2) == 0 { // without an answer, a charge may last as long as the ticket lives
		if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil && !expected(err) {
			say("note answer of %s: %s", ticket.ID(), oneLine(err.Error()))
		}
	}
	time.Sleep(hold)
	say("closing %s %d", ticket.ID(), clock.now())
	err = ticket.Close()
	say("closed %s %d %s", ticket.ID(), clock.now(), errorKind(err))
	return true
}

// expected reports whether a fault may cause err.
func expected(err error) bool {
	return errors.Is(err, sluice.ErrStore) || errors.Is(err, sluice.ErrEnded) || errors.Is(err, sluice.ErrUnknownTicket)
}

// errorKind returns a word for an error, or "-" for nil.
func errorKind(err error) string {
	if err == nil {
		return "-"
	}
	if errors.Is(err, sluice.ErrCancelled) && errors.Is(err, context.DeadlineExceeded) {
		return "deadline"
	}
	for _, k := range []struct {
		is   error
		word string
	}{
		{sluice.ErrStore, "store"}, {sluice.ErrDeadline, "deadline"}, {sluice.ErrCancelled, "cancelled"}, {sluice.ErrNotNow, "notnow"},
		{sluice.ErrFull, "full"}, {sluice.ErrClosed, "closed"}, {sluice.ErrUnknownTicket, "unknown"}, {sluice.ErrEnded, "ended"},
	} {
		if errors.Is(err, k.is) {
			return k.word
		}
	}
	return "other"
}
