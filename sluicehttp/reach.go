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

// A provider that cannot be reached may be about to start, so Sluice tries again, but not for long: the client should
// know within 2 s.
const (
	reachAgain  = 100 * time.Millisecond // doubled each time
	reachWithin = time.Second            // tries may begin this long after the first failure
	// hangAfter is when a slow connection is reported. The request continues until connectWithin, unless the provider
	// has been unreachable for knownAfter already: then waiting would not help.
	hangAfter  = 1500 * time.Millisecond
	knownAfter = 10 * time.Second
	// connectWithin is when a request without a connection fails. The operating system repeats the first packet of a
	// connection after 1 s and after 3 s, so two of them may be lost. It does not apply during name lookup, which the
	// dialer bounds: a resolver asks its second server only after 5 s.
	connectWithin = 5 * time.Second
	// silentAfter is how long a client must have waited in vain for its timeout to count as trouble of the provider.
	silentAfter = 30 * time.Second
)

// hangError reports that there was no connection in time.
type hangError struct{ after time.Duration }

func (e *hangError) Error() string   { return fmt.Sprintf("no connection after %v", e.after) }
func (e *hangError) Timeout() bool   { return true }
func (e *hangError) Temporary() bool { return true }

// watchConnecting reports a connection that takes too long. a is locked.
func (a *attempt) watchConnecting() {
	if a.watched || a.over || a.conn != nil || a.f.t.unhurried {
		return
	}
	a.watched = true
	a.f.t.connecting.add(a, time.Now())
}

// unwatch ends the watch. a is locked.
func (a *attempt) unwatch() {
	if a.watched {
		a.f.t.connecting.remove(a)
	}
}

// hangs is called if there is no connection after hangAfter.
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
	time.AfterFunc(time.Until(a.began.Add(connectWithin)), a.giveUp) // a timer each is fine: few attempts get here
}

// giveUp is called if there is no connection after connectWithin.
func (a *attempt) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.conn != nil || a.err != nil || a.resolving || a.ctx.Err() != nil {
		return
	}
	a.err = &hangError{connectWithin}
	a.cancel(a.err)
}

// unreachable reports to the gate that a send got no response because of the provider or the network.
func (f *flight) unreachable(a *attempt, err error) {
	var bad *badRequest
	switch {
	case f.ctx.Err() != nil && time.Since(a.began) >= silentAfter: // the client gave up after a long silence
		err = context.DeadlineExceeded
	case f.ctx.Err() != nil, final(err) && upstream.Kind(err) != upstream.TLS, errors.As(err, &bad):
		return
	case a.hung:
		return // already reported
	case f.payload.broken.Load(), upstream.OutOfFiles(err):
		return // the client's fault, or this machine's
	}
	f.report(f.ask, a.began, err)
}

// report reports to the gate that a send which began at began got no response.
func (f *flight) report(ask sluice.Request, began time.Time, err error) {
	if f.isAside() || !f.away.Believes() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), reportWithin)
	defer cancel()
	_ = f.t.Gate.Observe(ctx, ask, sluice.Answer{Verdict: store.VerdictUnreachable, Err: err, SentAt: began}) // a failure to report does not concern the client
}

// reportWithin bounds how long the store may take to record a failure.
const reportWithin = time.Second
