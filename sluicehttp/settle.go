package sluicehttp

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

type amount = sluice.Amount

// finish settles the ticket. Only the first call has an effect.
func (b *body) finish(how ending, err error) {
	b.mu.Lock()
	if b.done {
		b.mu.Unlock()
		return
	}
	b.done = true
	if b.zipped != nil {
		b.zipped.close()
	}
	used := &b.f.told.Usage
	var failed provider.Observation
	if b.usage != nil {
		*used, failed = b.usage.Usage(), b.usage.Failed()
	}
	seen := b.seen
	b.mu.Unlock()
	if how == left && (used.Final || b.size >= 0 && seen >= b.size) {
		how = complete // all that matters was read
	}
	f, took := b.f, time.Since(b.a.began)
	f.told.Took, f.told.Err, f.told.Aborted = took, err, how == left
	b.settle(how, took)
	b.report(&failed)
	f.over()
	if u, ok := b.usage.(interface{ Free() }); ok {
		u.Free() // done is set, so no other goroutine uses it
	}
	if how != left {
		b.a.cancel(nil) // otherwise Close does, after closing the connection
	}
}

// settle ends the ticket with the actual usage.
func (b *body) settle(how ending, took time.Duration) {
	f, t, used := b.f, b.f.t, &b.f.told.Usage
	known := used.Known
	if f.asked.Tokens {
		switch {
		case b.status >= 400:
			*used = provider.Usage{Model: f.asked.Model, Known: true, Final: true} // a refused request costs nothing
			known = true
		case b.stream && b.usage != nil && !used.Final && (how != complete || used.Known || f.away != nil && f.asked.Hidden || b.usage.Failed().Verdict != store.VerdictNone):
			f.soFar(used)
			known = true
		}
	}
	f.told.Micros = f.told.EstimatedMicros
	var amounts []amount
	if f.asked.Tokens && known {
		amounts = f.spent(used)
	}
	if b.status/100 == 2 && how == complete && f.away.Believes() {
		f.learn(used, took, amounts)
	}
	for _, a := range b.extra {
		amounts = set(amounts, a.Unit, a.N)
	}
	amounts = f.away.Used(f.asked.Model, f.ask.Cost, amounts)
	ticket := b.a.end()
	if how == left && b.stream && !f.line.Sends() { // such a call holds no concurrency
		t.leave(ticket, amounts, t.remaining(f.told.Model, took))
		return
	}
	_ = ticket.Close(amounts...) // if the store cannot be reached, the ticket expires by itself
}

// soFar completes the usage of a response that was cut off, or whose client has not asked for the usage, with an estimate from
// the text seen so far: providers state the output only at the end.
func (f *flight) soFar(u *provider.Usage) {
	if !u.Known {
		u.Model, u.Input = f.asked.Model, f.told.Estimated.Input
	}
	out := f.t.timings.output(f.told.Model, u.Seen)
	if f.asked.MaxOutput > 0 {
		out = min(out, f.asked.MaxOutput)
	}
	u.Output = max(u.Output, out)
}

// spent returns what usage takes from the limits, including its price.
func (f *flight) spent(u *provider.Usage) []amount {
	list := f.tokens(make([]amount, 0, 8), u)
	if f.asked.Reserved { // the reservation stays charged
		for i := range list {
			if list[i].Unit == unitTokens {
				list = append(list[:i], list[i+1:]...)
				break
			}
		}
	}
	if f.t.Prices != nil {
		f.told.Micros, f.told.Priced = u.Micros, true
		if u.Micros == 0 {
			f.told.Micros, f.told.Priced = f.t.Prices(f.asked.Model, u)
		}
		list = set(list, unitUSD, f.told.Micros)
	}
	if len(f.t.windows) > 0 {
		list = f.spentPlan(list, u)
	}
	return list
}

// learn updates the estimates with the actual usage of the call, and what that takes from limits.
func (f *flight) learn(u *provider.Usage, took time.Duration, spent []amount) {
	if f.asked.Tokens && u.Known && (f.asked.Text > 0 || u.Output > 0) { // otherwise the call only warms a connection
		f.t.book.Learn(f.caller.Agent, f.asked.Model, f.asked.Text, counted(u, spent), u.Output)
	}
	f.t.timings.learn(f.told.Model, took, u.Seen, u.Output)
}

// counted returns the input as the provider counts it: some do not count what they read from a cache.
func counted(u *provider.Usage, spent []amount) int64 {
	for _, a := range spent {
		if a.Unit == unitInput {
			return a.N
		}
	}
	return u.Input + u.CacheRead + u.CacheWrite + u.CacheLong
}

// refund ends the ticket of a send that was refused or lost and is repeated: it counts as a request, but used nothing.
func (f *flight) refund(ticket sluice.Ticket, extra []amount) {
	var amounts []amount
	if f.asked.Tokens {
		amounts = f.spent(&provider.Usage{Model: f.asked.Model})
	}
	for _, a := range extra {
		amounts = set(amounts, a.Unit, a.N)
	}
	_ = ticket.Close(amounts...)
}

// report reports an error inside a response that began successfully.
func (b *body) report(failed *provider.Observation) {
	switch failed.Verdict {
	case store.VerdictNone, store.VerdictOK:
		return
	}
	f := b.f
	f.told.Verdict = failed.Verdict
	answer := f.away.Believe(failed.Answer(f.t.Limits))
	answer.Status = b.status
	_ = f.t.Gate.Observe(context.WithoutCancel(f.ctx), f.ask, answer)
}
