package sluicehttp

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// outcome is the outcome of a send.
type outcome struct {
	resp   *http.Response
	err    error
	answer sluice.Answer // what resp means
	held   bool          // the resource is paused or ramping after a pause
	other  bool          // the provider refuses the key, and there is another one
	unsent bool          // nothing reached the provider
}

// once waits for the request's turn and sends it once. It reports whether to send it again.
func (f *flight) once() (resp *http.Response, again bool, err error) {
	a := &f.first
	if f.told.Attempts > 0 {
		a = &attempt{}
	}
	a.f = f
	if !f.asked.Free {
		if a.ticket, err = f.acquire(f.ctx, f.latest()); err != nil {
			return f.stay(err)
		}
	}
	f.drop()
	if f.t.Done != nil {
		f.told.Ticket = a.ticket.ID()
	}
	if f.traced != nil {
		f.told.Granted, f.told.Sent, f.told.Answered = time.Now(), time.Time{}, time.Time{}
	}
	o := f.judge(a)
	f.told.Verdict = o.answer.Verdict
	f.heard(&o)
	if f.sendAgain(a, &o) {
		return nil, true, nil
	}
	if o.resp == nil {
		return nil, false, o.err
	}
	f.refused(&o.answer)
	if f.line.Opens() && o.resp.StatusCode == http.StatusSwitchingProtocols {
		f.connect(a, &o)
		return o.resp, false, nil
	}
	f.hand(a, &o)
	return o.resp, false, nil
}

// stay ends an exchange whose request may not be sent, or not again. If the provider refused an earlier send and the
// client still listens, the client gets that response: it is the provider's own.
func (f *flight) stay(err error) (*http.Response, bool, error) {
	last := f.last
	f.last = nil
	switch {
	case last == nil:
	case last.resp != nil && f.ctx.Err() == nil:
		f.told.Status, f.told.Verdict = last.resp.StatusCode, last.answer.Verdict
		f.refused(&last.answer)
		f.over()
		return last.resp, false, nil
	case last.resp != nil:
		_ = last.resp.Body.Close()
	case last.err != nil && !f.dead.IsZero() && f.ctx.Err() == nil: // the queue does not matter if the provider cannot be reached
		return nil, false, last.err
	case last.err != nil:
		err = errors.Join(err, last.err)
	}
	return nil, false, err
}

// drop discards the response that was kept while the request waited to be sent again.
func (f *flight) drop() {
	if f.last != nil && f.last.resp != nil {
		_ = f.last.resp.Body.Close()
	}
	f.last = nil
}

// keepLast keeps the outcome of a send. It copies it, so that most outcomes need no memory.
func (f *flight) keepLast(o *outcome) {
	last := *o
	f.last = &last
}

// latest returns the latest time at which the request may be sent, or zero if there is no bound.
func (f *flight) latest() time.Time {
	var until time.Time
	if f.caller.Wait > 0 {
		until = f.start.Add(f.caller.Wait)
	}
	if !f.dead.IsZero() {
		if wall := f.dead.Add(reachWithin); until.IsZero() || wall.Before(until) {
			until = wall
		}
	}
	if f.told.Attempts > 0 {
		if wall := f.start.Add(f.deadline()); until.IsZero() || wall.Before(until) {
			until = wall
		}
	}
	return until
}

func (f *flight) deadline() time.Duration {
	if d := f.t.Retry.Deadline; d > 0 {
		return d
	}
	return retry.DefaultDeadline
}

// sendAgain decides whether to send the request again, and waits until it is time. If it returns true, the ticket of
// the last send has ended.
func (f *flight) sendAgain(a *attempt, o *outcome) bool {
	if o.other {
		return f.withOtherKey(a, o)
	}
	if !f.safe(o) {
		return false
	}
	policy := f.t.Retry
	policy.Deadline = f.deadline()
	next := policy.Next(retry.Failure{
		Sent: f.told.Attempts, Elapsed: time.Since(f.start), Class: f.caller.Class,
		Hint: o.answer.RetryAfter, Hinted: o.answer.RetryAfter > 0, Held: o.held,
	}, rand.Float64)
	if o.resp == nil { // the provider cannot be reached: tell the client soon
		if f.dead.IsZero() {
			f.dead = a.began
		}
		next.Wait = reachAgain << min(f.told.Attempts-1, 3)
		next.Give = next.Reason == retry.Attempts
	} else {
		f.dead = time.Time{}
	}
	if until := f.latest(); next.Give || !until.IsZero() && time.Now().Add(next.Wait).After(until) {
		return false
	}
	if o.resp != nil {
		if !keep(o.resp) {
			return false
		}
		f.refund(a.end(), o.answer.Usage)
		a.cancel(nil)
	}
	f.keepLast(o)
	f.ask.Retry = true
	sleep.For(f.ctx, next.Wait) // if ctx ends meanwhile, the gate reports it
	return true
}

// withOtherKey prepares to send the request with another key, after the provider refused its key. That is safe: the
// provider has not processed the request. It ends because the number of keys is bounded.
func (f *flight) withOtherKey(a *attempt, o *outcome) bool {
	if f.ctx.Err() != nil || !f.payload.replayable() {
		return false
	}
	if keep(o.resp) {
		f.keepLast(o)
	} else {
		_ = o.resp.Body.Close() // its content is known
		f.last = nil
	}
	f.refund(a.end(), nil)
	a.cancel(nil)
	if f.asked.Free { // otherwise the gate chooses the key
		f.use(f.ask.Keys[0])
	}
	return true
}

// safe reports whether sending again can help and does no harm. The body must be repeatable. Either the provider has
// not accepted the request, or the request is idempotent.
func (f *flight) safe(o *outcome) bool {
	if !f.mayRetry() || f.ctx.Err() != nil || !f.payload.replayable() || f.line.Sends() && f.line.Gone() {
		return false
	}
	if o.resp == nil {
		return !final(o.err) && (o.unsent || idempotent(f.origin))
	}
	switch o.answer.Verdict {
	case store.VerdictExhausted:
		return !f.windowGone(&o.answer)
	case store.VerdictThrottled, store.VerdictOverloaded:
		return true
	case store.VerdictError:
		return idempotent(f.origin)
	}
	return false
}

// final reports whether an error would be the same the next time: the gate refused for good, the request is not valid,
// or the provider's certificate is not.
func final(err error) bool {
	var refusal *sluice.Error
	var certificate *tls.CertificateVerificationError
	var refused *badRequest
	return errors.Is(err, ErrSwitched) || errors.Is(err, ErrModel) || errors.Is(err, wire.ErrGone) || errors.As(err, &refusal) || errors.As(err, &certificate) || errors.As(err, &refused)
}

// badRequest is an error of the base transport, which did not even try to connect.
type badRequest struct{ error }

func (e *badRequest) Unwrap() error { return e.error }

// idempotent reports whether a request may be accepted twice.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(r.Header["Idempotency-Key"]) > 0 || len(r.Header["X-Idempotency-Key"]) > 0
}

// timeout reports whether err is a timeout: the response may still come.
func timeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
