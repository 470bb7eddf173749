package sluice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Do sends a request through the gate and retries it where that can help: after a refusal, an overload, or a failure
// that send reports as VerdictError. It stops at either bound of Config.Retry: the number of sends, or the overall
// deadline. It does not start a wait that would pass the deadline. In mode observe it sends once and returns the error
// of send.
//
// send sends the request once. It returns what the response says, and the error for Do to return if this was the last
// attempt. A network error with VerdictError and no status counts as [VerdictUnreachable]. send must not keep the
// ticket: Do answers and closes it. If a response takes long to read, send may call Ticket.Answer itself once the
// headers are there.
func (g *Gate) Do(ctx context.Context, req Request, send func(ctx context.Context, t Ticket) (Answer, error)) error {
	r, err := g.resource(req.Resource)
	if err != nil {
		return err
	}
	d := doing{gate: g, resource: r, req: req, start: time.Now()}
	d.req.Detached = false // it is sent by this process
	for {
		again, err := d.once(ctx, send)
		if !again {
			return err
		}
	}
}

// doing is the state of one Do.
type doing struct {
	gate     *Gate
	resource *resource
	req      Request
	start    time.Time
	sent     int
	last     error // of the latest send
}

// once sends once. It reports whether to send again.
func (d *doing) once(ctx context.Context, send func(context.Context, Ticket) (Answer, error)) (bool, error) {
	policy := d.gate.retry
	if policy.Deadline <= 0 {
		policy.Deadline = retry.DefaultDeadline
	}
	t, err := d.ticket(ctx, max(policy.Deadline-time.Since(d.start), 1))
	if err != nil {
		return false, errors.Join(err, d.last)
	}
	d.sent++
	a, held, err := sendOne(ctx, t, send)
	if err != nil {
		d.last = err
	}
	if d.resource.observe {
		return false, err // once, whatever the outcome
	}
	switch a.Verdict {
	case store.VerdictThrottled, store.VerdictOverloaded, store.VerdictExhausted, store.VerdictError, store.VerdictUnreachable:
	case store.VerdictBilling:
		return false, &Error{
			Err: ErrBilling, Resource: d.resource.name, Agent: d.req.Agent, cause: err,
			Message: d.resource.name + ": the provider refuses for billing reasons", Hint: "trying again is useless until the account is settled",
		}
	default:
		return false, err
	}
	next := policy.Next(retry.Failure{
		Sent: d.sent, Elapsed: time.Since(d.start), Class: d.className(), Hint: a.RetryAfter, Hinted: a.RetryAfter > 0, Held: held,
	}, rand.Float64)
	if next.Give {
		return false, d.giveUp(next, a)
	}
	d.req.Retry = true
	sleep.For(ctx, next.Wait) // if ctx has ended, the next acquire reports it
	return true, nil
}

// ticket waits at most left until the request may be sent.
func (d *doing) ticket(ctx context.Context, left time.Duration) (t Ticket, err error) {
	until := time.Now().Add(left)
	if err = d.resource.acquire(ctx, &d.req, left, &t); err != nil || !t.Stale() {
		return t, err
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err = t.Renew(ctx); err != nil {
		_ = t.Cancel()                // if the store does not learn of it later, the ticket expires by itself
		if errors.Is(err, ErrEnded) { // the store took this process for dead
			err = d.resource.acquire(ctx, &d.req, max(time.Until(until), 1), &t)
		}
	}
	return t, err
}

// sendOne sends once and ends the ticket, even if send panics. A store that cannot be reached does not change the
// outcome of the request: the ticket then expires by itself.
func sendOne(ctx context.Context, t Ticket, send func(context.Context, Ticket) (Answer, error)) (a Answer, held bool, err error) {
	defer func() { _ = t.Close(a.Usage...) }()
	began := time.Now()
	if a, err = send(ctx, t); a.Verdict == store.VerdictNone {
		return a, held, err
	}
	said := a
	if kind := upstream.Kind(err); a.Verdict == store.VerdictError && a.Status == 0 && kind != "" && kind != upstream.Other && ctx.Err() == nil {
		said.Verdict, said.Err, said.SentAt = store.VerdictUnreachable, err, began
	}
	held, _ = t.Answer(said)
	return a, held, err
}

// className returns the caller's class if it was given or configured, otherwise "".
func (d *doing) className() string {
	if d.req.Class != "" {
		return d.req.Class
	}
	if k := d.resource.settings.agent(d.req.Agent); k.given {
		return d.resource.settings.classes[k.class].Name
	}
	return ""
}

func (d *doing) giveUp(next retry.Decision, a Answer) error {
	e := &Error{Err: ErrAttempts, Resource: d.resource.name, Agent: d.req.Agent, cause: d.last}
	e.Message = fmt.Sprintf("%s: gave up after %s, the last one %v", d.resource.name, sends(d.sent), a.Verdict)
	e.Hint = "see why the provider refuses, or raise Config.Retry.Attempts"
	if next.Reason == retry.Deadline {
		e.Err = ErrDeadline
		e.Message = fmt.Sprintf("%s: gave up after %s: the next could not start before the deadline, which is in %v",
			d.resource.name, sends(d.sent), next.Left.Round(time.Millisecond))
		if next.Left <= 0 {
			e.Message = fmt.Sprintf("%s: gave up after %s: the deadline has passed", d.resource.name, sends(d.sent))
		}
		e.Hint = "raise Config.Retry.Deadline, or come back later"
	}
	return e
}

func sends(n int) string {
	if n == 1 {
		return "1 send"
	}
	return fmt.Sprintf("%d sends", n)
}
