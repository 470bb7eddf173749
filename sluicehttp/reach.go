package sluicehttp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/store"
)

// A provider that cannot be reached is tried again, for it may be about to start, but not for long: within 2 s the client is to know.
const (
	reachAgain  = 100 * time.Millisecond // doubled each time
	reachWithin = time.Second            // from the first failure on, further tries begin
	// hangAfter is when a connection takes so long that it is told. The request goes on until connectWithin, unless the provider
	// has been out of reach for knownAfter: then it would only wait for the same.
	hangAfter  = 1500 * time.Millisecond
	knownAfter = 10 * time.Second
	// connectWithin is when a request without a connection is answered. The system sends the first packet of a connection again
	// after 1 s and after 3 s, so two of them may be lost. Looking up the name is left to the dialer: a resolver asks its second
	// server only after 5 s.
	connectWithin = 5 * time.Second
	// silentAfter is how long a client waits for an answer before it counts as trouble that it gives up.
	silentAfter = 30 * time.Second
)

// hangError tells that no connection came about in time.
type hangError struct{ after time.Duration }

func (e *hangError) Error() string   { return fmt.Sprintf("no connection after %v", e.after) }
func (e *hangError) Timeout() bool   { return true }
func (e *hangError) Temporary() bool { return true }

// watchConnecting tells when the connection takes too long. a is locked.
func (a *attempt) watchConnecting() {
	if a.watched || a.over || a.conn != nil || a.f.t.unhurried {
		return
	}
	a.watched = true
	a.f.t.connecting.add(a, time.Now())
}

// unwatch ends that. a is locked.
func (a *attempt) unwatch() {
	if a.watched {
		a.f.t.connecting.remove(a)
	}
}

// hangs is called when there is no connection after a while.
func (a *attempt) hangs() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.conn != nil || a.err != nil || a.ctx.Err() != nil {
		return
	}
	f := a.f
	known := inside.Of(f.t.Gate).FailingFor(f.t.Resource) >= knownAfter
	a.hung = true
	ask := f.ask
	go f.report(ask, a.began, &hangError{hangAfter}) // the store may take a while
	if known {
		a.err = &hangError{hangAfter}
		a.cancel(a.err)
		return
	}
	time.AfterFunc(time.Until(a.began.Add(connectWithin)), a.giveUp) // few get here, so each may have a timer
}

// giveUp is called when there is no connection after connectWithin.
func (a *attempt) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.conn != nil || a.err != nil || a.resolving || a.ctx.Err() != nil {
		return
	}
	a.err = &hangError{connectWithin}
	a.cancel(a.err)
}

// unreachable tells the gate that a send has no answer because of the provider or the way to it.
func (f *flight) unreachable(a *attempt, err error) {
	var bad *badRequest
	switch {
	case f.ctx.Err() != nil && time.Since(a.began) >= silentAfter: // nothing came for long, until the client gave up
		err = context.DeadlineExceeded
	case f.ctx.Err() != nil, final(err) && upstream.Kind(err) != upstream.TLS, errors.As(err, &bad):
		return
	case a.hung:
		return // it has been told
	}
	f.report(f.ask, a.began, err)
}

// report tells the gate that a send which began then has no answer.
func (f *flight) report(ask sluice.Request, began time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), reportWithin)
	defer cancel()
	_ = f.t.Gate.Observe(ctx, ask, sluice.Answer{Verdict: store.VerdictUnreachable, Err: err, SentAt: began}) // the client is none the worse for it
}

// reportWithin bounds how long the store may take to hear of a failure.
const reportWithin = time.Second
