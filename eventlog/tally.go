package eventlog

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/ticketid"
	"github.com/sluicehq/sluice/store"
)

// tally counts the sends in the log.
type tally struct {
	since     time.Time
	counts    func(pool string, at time.Time, observed bool) bool // reports whether to count an event
	resources map[string]*resourceTally                           // by pool
	tickets   map[string]*sent                                    // sends by ticket, for their answers; bounded by the size of the log
}

// resourceTally counts the sends to one resource.
type resourceTally struct {
	first   time.Time // time of the first send counted; zero: none
	total   *callerTally
	callers map[string]*callerTally
	// throttled counts refusals by minute. Only the log knows their times.
	throttled map[time.Time]int64
}

// callerTally counts the sends of one caller. Events are nearly in order of time, so a second is over when an event of
// another second arrives.
type callerTally struct {
	inspect.CallerReport
	requested map[string][]string // the names that clients used for a model, sorted
	second    time.Time
	now       int64 // sends in that second
}

// sent is a send whose answer may still come.
type sent struct {
	agent   string
	event   inspect.Event
	counted bool
	// answered is set when the provider has answered.
	answered bool
	paid     bool             // count its cost: the store does not know it
	besides  map[string]int64 // its usage in units that no limit counts
}

func newTally(since time.Time, counts func(string, time.Time, bool) bool) *tally {
	return &tally{since: since, counts: counts, resources: map[string]*resourceTally{}, tickets: map[string]*sent{}}
}

func newCaller(name string) *inspect.CallerReport {
	return &inspect.CallerReport{
		Name: name, Units: map[string]int64{}, Models: map[string]inspect.ModelReport{}, Minutes: map[time.Time]int64{},
	}
}

func (t *tally) read(dir string, stores []string) error {
	from := t.since
	if !from.IsZero() {
		from = from.Add(-ticketLife)
	}
	_, err := Read(dir, from, func(e inspect.Event) bool {
		if IsOf(&e, stores) {
			e.Resource = poolOf(&e)
			t.add(&e)
		}
		return true
	})
	return err
}

// poolOf returns the pool of the store that an event belongs to. A resource has two: mode observe counts in its own. Events
// of earlier versions without a ticket belong to mode gate.
func poolOf(e *inspect.Event) string {
	observed := ticketid.IsObserved(e.Ticket)
	if e.Ticket == "" {
		observed = e.Mode == inspect.ModeObserve
	}
	if !observed || strings.HasSuffix(e.Resource, inspect.ObservedPool) {
		return e.Resource
	}
	return e.Resource + inspect.ObservedPool
}

func (t *tally) add(e *inspect.Event) {
	counted := !e.Time.Before(t.since) && t.counts(e.Resource, e.Time, e.Observed || e.Kind == inspect.EventWouldWait)
	switch e.Kind {
	case inspect.EventWouldWait:
		if counted {
			t.each(e, e.Agent, func(c *callerTally) { c.WouldWait++ })
		}
	case inspect.EventSend:
		s := &sent{agent: e.Agent, event: *e, counted: counted, paid: t.countsMoney(e)}
		if e.Ticket != "" {
			t.tickets[e.Ticket] = s
		}
		if counted {
			t.each(e, e.Agent, func(c *callerTally) { c.send(e, 1) })
		}
		if e.Requested != "" && !e.Time.Before(t.since) {
			t.resource(e.Resource).change(e.Agent, func(c *callerTally) { c.name(e.Model, e.Requested) })
		}
		t.pay(s, e.Units[sluice.USD], 1)
		t.hold(s, 1)
		t.log(s, 1)
	case inspect.EventRefused, inspect.EventAbandoned: // the store does not remember how long these waited
		if e.WaitedMS > 0 && !e.Time.Before(t.since) {
			t.resource(e.Resource).change(e.Agent, func(c *callerTally) { c.WaitedMS += e.WaitedMS })
		}
	case inspect.EventCancel:
		s := t.tickets[e.Ticket]
		if s == nil || s.answered { // an answered request was sent
			return
		}
		delete(t.tickets, e.Ticket)
		if s.counted {
			t.each(&s.event, s.agent, func(c *callerTally) { c.send(&s.event, -1) })
		}
		t.pay(s, -s.event.Units[sluice.USD], -1)
		t.hold(s, -1)
		t.log(s, -1)
	case inspect.EventThrottled:
		if !e.Time.Before(t.since) {
			t.resource(e.Resource).throttled[e.Time.UTC().Truncate(time.Minute)]++
		}
		if counted {
			t.each(e, t.whose(e), func(c *callerTally) { c.Throttled++ })
		}
	case inspect.EventUpstream: // it has no answer event
		switch {
		case counted:
			t.each(e, t.whose(e), func(c *callerTally) { c.Failed++ })
		case e.Ticket == "" && !e.Time.Before(t.since): // its ticket was not answered, so the store has no record of the failure
			t.resource(e.Resource).change(e.Agent, func(c *callerTally) { c.Failed++ })
		}
	case inspect.EventAnswer:
		if counted && failed(e.Verdict) {
			t.each(e, t.whose(e), func(c *callerTally) { c.Failed++ })
		}
		if s := t.tickets[e.Ticket]; s != nil {
			s.answered = true
		}
		t.time(e)
		t.settle(e)
	case inspect.EventUsage:
		t.settle(e)
	}
}

// failed reports whether a response failed for a reason other than a limit.
func failed(verdict string) bool {
	switch verdict {
	case store.VerdictOverloaded.String(), store.VerdictBilling.String(), store.VerdictError.String():
		return true
	}
	return false
}

// whose returns the agent that sent the request of an answer.
func (t *tally) whose(e *inspect.Event) string {
	if s := t.tickets[e.Ticket]; s != nil && e.Ticket != "" {
		return s.agent
	}
	return e.Agent
}

// time adds up how long a successful response took since the request was made. Only the log knows this.
func (t *tally) time(e *inspect.Event) {
	s := t.tickets[e.Ticket]
	if s == nil || s.event.Time.Before(t.since) || e.Verdict != store.VerdictOK.String() {
		return
	}
	took := (e.Time.Sub(s.event.Time) + time.Duration(s.event.WaitedMS)*time.Millisecond).Seconds()
	if took < 0 { // written by a machine whose clock is behind
		return
	}
	t.resource(s.event.Resource).change(s.agent, func(c *callerTally) {
		c.Answers++
		c.TookS += took
		c.TookSquares += took * took
	})
}

// settle replaces the estimated charge of a send with the actual usage.
func (t *tally) settle(e *inspect.Event) {
	s := t.tickets[e.Ticket]
	if s == nil || len(e.Units) == 0 {
		return
	}
	more := map[string]int64{}
	for unit, n := range e.Units {
		if was, charged := s.event.Units[unit]; charged {
			more[unit] = n - was
		}
	}
	t.besides(s, e.Units)
	s.event.Units = addUnits(maps.Clone(s.event.Units), more, 1)
	t.pay(s, more[sluice.USD], 0)
	if !s.counted {
		return
	}
	t.each(&s.event, s.agent, func(c *callerTally) { c.use(s.event.Model, more, 1) })
}

// besides adds the usage in units that no limit counts. Only the log knows it.
func (t *tally) besides(s *sent, used map[string]int64) {
	if s.event.Time.Before(t.since) {
		return
	}
	more := map[string]int64{}
	for unit, n := range used {
		if _, charged := s.event.Units[unit]; !charged && unit != sluice.USD && n != s.besides[unit] {
			more[unit] = n - s.besides[unit]
		}
	}
	if len(more) == 0 {
		return
	}
	s.besides = addUnits(s.besides, more, 1)
	t.resource(s.event.Resource).change(s.agent, func(c *callerTally) { c.use(s.event.Model, more, 1) })
}

// countsMoney reports whether a send has a cost and is within the period.
func (t *tally) countsMoney(e *inspect.Event) bool {
	_, costs := e.Units[sluice.USD]
	return costs && !e.Time.Before(t.since)
}

// pay adds micros to the cost of a send, and sends to the number of sends without a price.
func (t *tally) pay(s *sent, micros, sends int64) {
	if !s.paid {
		return
	}
	r := t.resource(s.event.Resource)
	r.change(s.agent, func(c *callerTally) {
		c.Micros += micros
		if s.event.Retry {
			c.RetryMicros += micros
		}
		if heldByLimit(&s.event) {
			c.HeldMicros += micros
		}
		if s.event.Unpriced {
			c.Unpriced += sends
		}
	})
}

// heldByLimit reports whether a send waited because a limit was full, rather than for a rule of the gate.
func heldByLimit(e *inspect.Event) bool { return e.Reason == store.CodeLimit.String() }

// hold adds sign to the count of sends held up by a limit or a budget. Only the log knows it.
func (t *tally) hold(s *sent, sign int64) {
	if s.event.Time.Before(t.since) {
		return
	}
	switch s.event.Reason {
	case store.CodeLimit.String():
		t.resource(s.event.Resource).change(s.agent, func(c *callerTally) { c.Held += sign })
	case store.CodeSlowed.String():
		t.resource(s.event.Resource).change(s.agent, func(c *callerTally) { c.Slowed += sign })
	}
}

// log adds sign to the count of sends in the log, and notes the times of the first and the last one. The store knows them
// only to the minute.
func (t *tally) log(s *sent, sign int64) {
	at := s.event.Time
	if at.Before(t.since) {
		return
	}
	t.resource(s.event.Resource).change(s.agent, func(c *callerTally) {
		c.Logged += sign
		if c.First.IsZero() || at.Before(c.First) {
			c.First = at
		}
		if at.After(c.Last) {
			c.Last = at
		}
	})
}

// each applies change to the tally of an agent and to the total, for an event that counts as a send.
func (t *tally) each(e *inspect.Event, agent string, change func(*callerTally)) {
	r := t.resource(e.Resource)
	if r.first.IsZero() || e.Time.Before(r.first) {
		r.first = e.Time
	}
	r.change(agent, change)
}

func (t *tally) resource(name string) *resourceTally {
	r := t.resources[name]
	if r == nil {
		r = &resourceTally{total: &callerTally{CallerReport: *newCaller("")}, callers: map[string]*callerTally{}, throttled: map[time.Time]int64{}}
		t.resources[name] = r
	}
	return r
}

// Bounds on the names counted separately. The log is bounded, but a million short lines could hold a million names.
const (
	maxCallers = 2 * inspect.MaxReportCallers
	maxCounted = 16 * inspect.MaxReportModels // models of a caller
)

func (r *resourceTally) change(agent string, change func(*callerTally)) {
	c := r.callers[agent]
	if c == nil && len(r.callers) >= maxCallers {
		agent = inspect.ReportOther
		c = r.callers[agent]
	}
	if c == nil {
		c = &callerTally{CallerReport: *newCaller(agent)}
		r.callers[agent] = c
	}
	change(c)
	change(r.total)
}

// send counts a send, or with a sign of -1 takes it back.
func (c *callerTally) send(e *inspect.Event, sign int64) {
	model := c.model(e.Model)
	m := c.Models[model]
	m.Sends += sign
	if e.Retry {
		c.Retries += sign
		m.Retries += sign
	} else {
		c.FirstSends += sign
	}
	c.Models[model] = m
	c.use(model, e.Units, sign)
	c.WaitedMS += sign * e.WaitedMS
	minute := e.Time.UTC().Truncate(time.Minute)
	if c.Minutes[minute] += sign; c.Minutes[minute] == 0 {
		delete(c.Minutes, minute)
	}
	second := e.Time.Truncate(time.Second)
	switch {
	case sign < 0:
		return // the peak stays
	case !second.Equal(c.second):
		c.second, c.now = second, 0
	}
	c.now++
	c.PeakPerS = max(c.PeakPerS, c.now)
}

// model returns the name under which to count a model.
func (c *callerTally) model(name string) string {
	if _, known := c.Models[name]; !known && len(c.Models) >= maxCounted {
		return inspect.ReportOther
	}
	return name
}

func (c *callerTally) use(model string, units map[string]int64, sign int64) {
	model = c.model(model)
	m := c.Models[model]
	m.Units = addUnits(m.Units, units, sign)
	c.Models[model] = m
	c.Units = addUnits(c.Units, units, sign)
}

// done returns the counts as a report.
func (c *callerTally) done() *inspect.CallerReport {
	c.Rates()
	c.LogMinutes = c.Minutes
	return &c.CallerReport
}

// maxRequested bounds the requested names listed for a model.
const maxRequested = 16

// name records a name that a client used for a model.
func (c *callerTally) name(model, requested string) {
	list := c.requested[model]
	if list == nil && len(c.requested) >= maxCounted {
		return
	}
	at, there := slices.BinarySearch(list, requested)
	if there || len(list) >= maxRequested {
		return
	}
	if c.requested == nil {
		c.requested = map[string][]string{}
	}
	c.requested[model] = slices.Insert(list, at, requested)
}

// nameIn copies the requested names to the models of a report.
func (c *callerTally) nameIn(rep *inspect.CallerReport) {
	for model, names := range c.requested {
		if m, there := rep.Models[model]; there {
			m.Requested = names
			rep.Models[model] = m
		}
	}
}
