package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// errNoRecords means that the store keeps no history.
var errNoRecords = errors.New("this store keeps no records of sends")

// Report returns the sends since a moment, by agent and model, to the minute. Its memory is bounded: the more agents,
// the less far it reaches back.
func (g *Gate) Report(ctx context.Context, since time.Time) (inspect.Report, error) {
	rep := inspect.Report{Since: since.UTC(), Resources: []inspect.ResourceReport{}}
	for _, name := range g.names() {
		r := g.resources[name]
		h, err := r.history(ctx, since)
		if err != nil {
			return rep, err
		}
		one := r.report(&h)
		if one.Since.Before(since) { // the store counts in microseconds
			one.Since = since.UTC()
		}
		if since.IsZero() && (rep.Since.IsZero() || one.Since.Before(rep.Since)) {
			rep.Since = one.Since // the start of the history
		}
		rep.Resources = append(rep.Resources, one)
	}
	return rep, nil
}

func (r *resource) history(ctx context.Context, since time.Time) (store.History, error) {
	recorder := store.Can(r.pool).Recorder
	if recorder == nil {
		return store.History{}, &Error{Err: ErrInvalid, Resource: r.name, Message: r.name + ": " + errNoRecords.Error(), cause: errNoRecords}
	}
	_ = r.flush(ctx)
	h, err := recorder.History(ctx, r.clock().store(since))
	if err != nil {
		return h, r.storeError(err)
	}
	return h, nil
}

func (r *resource) report(h *store.History) inspect.ResourceReport {
	total := newCallerSum("")
	callers := map[string]*callerSum{}
	for i := range h.Periods {
		p := &h.Periods[i]
		c := callers[p.Agent]
		if c == nil {
			c = newCallerSum(p.Agent)
			callers[p.Agent] = c
		}
		c.add(p, p.Peak, h.Units)
		total.add(p, p.PeakAll, h.Units)
	}
	if h.Since == 0 { // all that is remembered
		h.Since = h.Now
		if len(h.Periods) > 0 {
			h.Since = h.Periods[0].Start
		}
	}
	c := clockAt(h.Now)
	rep := inspect.ResourceReport{Name: r.name, Pool: r.in, Since: c.time(h.Since), Total: total.done(c), Callers: []inspect.CallerReport{}}
	for _, caller := range callers {
		rep.Callers = append(rep.Callers, caller.done(c))
	}
	rep.Fold()
	rep.Sort()
	return rep
}

// callerSum is a report in progress.
type callerSum struct {
	inspect.CallerReport
	minutes map[store.Time]int64
	waited  time.Duration
}

func newCallerSum(name string) *callerSum {
	return &callerSum{CallerReport: inspect.NewCallerReport(name), minutes: map[store.Time]int64{}}
}

// add adds one period. peak is the most sends in one of its seconds. Periods come in order of time.
func (c *callerSum) add(p *store.Period, peak int64, units []string) {
	c.FirstSends += p.Sent - p.Retried
	c.Retries += p.Retried
	c.Throttled += p.Throttled
	c.Failed += p.Failed
	c.PeakPerS = max(c.PeakPerS, peak)
	c.waited += p.Waited
	c.minutes[p.Start] += p.Sent
	m := c.Models[p.Model]
	m.Sends += p.Sent
	m.Retries += p.Retried
	if m.Units == nil {
		m.Units = map[string]int64{}
	}
	for i, unit := range units {
		if i < len(p.Amounts) && p.Amounts[i] != 0 {
			m.Units[unit] += p.Amounts[i]
			c.Units[unit] += p.Amounts[i]
		}
	}
	c.Models[p.Model] = m
}

// done computes the figures that need all periods, and returns the report.
func (c *callerSum) done(wall clock) inspect.CallerReport {
	c.Minutes = make(map[time.Time]int64, len(c.minutes))
	for start, n := range c.minutes {
		c.Minutes[wall.minute(start)] += n
	}
	c.Rates()
	c.WaitedMS = c.waited.Milliseconds()
	return c.CallerReport
}
