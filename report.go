package sluice

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Report is what was sent in a period.
type Report struct {
	Since     time.Time        `json:"since"`
	Resources []ResourceReport `json:"resources"`
}

// ResourceReport is what was sent to one resource.
type ResourceReport struct {
	Name string `json:"name"`
	// Since is from when on sends are remembered, if that is later than was asked for.
	Since   time.Time      `json:"since"`
	Total   CallerReport   `json:"total"`
	Callers []CallerReport `json:"callers"` // most sends first
}

// CallerReport is what one agent sent, or all of them.
type CallerReport struct {
	Name       string `json:"name"`
	FirstSends int64  `json:"first_sends"`
	Retries    int64  `json:"retries"`
	Throttled  int64  `json:"throttled"`
	Failed     int64  `json:"failed"` // for other reasons than a limit
	// Peaks are the most in a calendar second and minute; the mean is over the minutes from
	// the first to the last in which anything was sent.
	PeakPerS   int64   `json:"peak_per_s"`
	PeakPerMin int64   `json:"peak_per_min"`
	MeanPerS   float64 `json:"mean_per_s"`
	WaitedMS   int64   `json:"waited_ms"`
	// WouldWait is how many were let through in the mode observe that would have been held or
	// refused; only the event log knows.
	WouldWait int64 `json:"would_wait"`
	// Held is how many waited because a limit was full, and HeldMicros what they cost: sent when they were asked for, they
	// would have gone over it. Only the event log knows.
	Held       int64 `json:"held"`
	HeldMicros int64 `json:"-"`
	// Micros is what the sends cost, in millionths of a dollar, and RetryMicros what those of them did that were retries; an
	// estimate where nobody said. Unpriced is how many were for models whose price nobody knows. Only the event log knows.
	Micros      int64                  `json:"-"`
	RetryMicros int64                  `json:"-"`
	Unpriced    int64                  `json:"unpriced"`
	Units       map[string]int64       `json:"units"`
	Models      map[string]ModelReport `json:"models"`

	// Minutes are the sends of each minute in which there were any, by its start.
	Minutes map[time.Time]int64 `json:"-"`
}

// ModelReport is what was sent for one model.
type ModelReport struct {
	Sends   int64            `json:"sends"`
	Retries int64            `json:"retries"`
	Units   map[string]int64 `json:"units"`
	// Requested are the names that clients wrote for it on this machine, sorted, the first 16. Empty if they wrote its own.
	Requested []string `json:"requested,omitempty"`
}

// errNoRecords: the store keeps none.
var errNoRecords = errors.New("this store keeps no records of sends")

// Report tells what was sent since a moment, by agent and model, to the minute. Memory for
// it is bounded: the more agents, the shorter it reaches back.
func (g *Gate) Report(ctx context.Context, since time.Time) (Report, error) {
	rep := Report{Since: since.UTC(), Resources: []ResourceReport{}}
	for _, name := range g.names() {
		r := g.resources[name]
		h, err := r.history(ctx, since)
		if err != nil {
			return rep, err
		}
		one := r.report(&h)
		if since.IsZero() && (rep.Since.IsZero() || one.Since.Before(rep.Since)) {
			rep.Since = one.Since // all that is remembered
		}
		rep.Resources = append(rep.Resources, one)
	}
	return rep, nil
}

func (r *resource) history(ctx context.Context, since time.Time) (store.History, error) {
	recorder, ok := r.pool.(store.Recorder)
	if !ok {
		return store.History{}, &Error{Err: ErrInvalid, Resource: r.name, Message: r.name + ": " + errNoRecords.Error(), cause: errNoRecords}
	}
	_ = r.flush(ctx)
	h, err := recorder.History(ctx, r.clock().store(since))
	if err != nil {
		return h, r.storeError(err)
	}
	return h, nil
}

func (r *resource) report(h *store.History) ResourceReport {
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
	if h.Since == 0 { // from the first on
		h.Since = h.Now
		if len(h.Periods) > 0 {
			h.Since = h.Periods[0].Start
		}
	}
	c := clockAt(h.Now)
	rep := ResourceReport{Name: r.name, Since: c.time(h.Since), Total: total.done(c), Callers: []CallerReport{}}
	for _, caller := range callers {
		rep.Callers = append(rep.Callers, caller.done(c))
	}
	rep.Fold()
	rep.Sort()
	return rep
}

// Sort puts the callers in order: most sends first.
func (r *ResourceReport) Sort() {
	slices.SortFunc(r.Callers, func(a, b CallerReport) int {
		return cmp.Or(cmp.Compare(b.FirstSends+b.Retries, a.FirstSends+a.Retries), cmp.Compare(a.Name, b.Name))
	})
}

// callerSum is a report that is being added up.
type callerSum struct {
	CallerReport
	minutes map[store.Time]int64
	waited  time.Duration
}

func newCallerSum(name string) *callerSum {
	return &callerSum{CallerReport: NewCallerReport(name), minutes: map[store.Time]int64{}}
}

// NewCallerReport begins the report of a caller.
func NewCallerReport(name string) CallerReport {
	return CallerReport{Name: name, Units: map[string]int64{}, Models: map[string]ModelReport{}}
}

// add counts one period, with the most that was sent in a second of it. Periods come by time.
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

// done works out what takes all periods.
func (c *callerSum) done(wall clock) CallerReport {
	c.Minutes = make(map[time.Time]int64, len(c.minutes))
	for start, n := range c.minutes {
		c.Minutes[wall.minute(start)] += n
	}
	c.Rates()
	c.WaitedMS = c.waited.Milliseconds()
	return c.CallerReport
}

// Rates works out what follows from Minutes: the busiest of them, and the mean.
func (c *CallerReport) Rates() {
	c.PeakPerMin, c.MeanPerS = 0, 0
	var first, last time.Time
	for start, n := range c.Minutes {
		c.PeakPerMin = max(c.PeakPerMin, n)
		if first.IsZero() || start.Before(first) {
			first = start
		}
		if start.After(last) {
			last = start
		}
	}
	if len(c.Minutes) > 0 {
		c.MeanPerS = float64(c.FirstSends+c.Retries) / (last.Sub(first) + time.Minute).Seconds()
	}
}
