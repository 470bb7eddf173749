package sim

import (
	"github.com/sluicehq/sluice/store"
)

// tally counts the events of a run.
type tally struct {
	sc        *Scenario
	sends     sends
	repeats   int
	throttled int
	accepted  []store.Time // times at the provider
	done      int
	jobsDone  int
	left      int // calls neither done nor given up
	span      span
	classes   []classTally
	models    []*modelTally // in the order of their first demand
	trace     Trace
	fairness  *fairness // nil: not measured
}

// span is the time from the first demand to the last call that was done or given up.
type span struct {
	first, last store.Time
	any         bool
}

func (s *span) begin(t store.Time) {
	if !s.any {
		s.first, s.last, s.any = t, t, true
	}
}

func (s *span) seconds() float64 { return s.last.Sub(s.first).Seconds() }

// classTally counts the events of one class.
type classTally struct {
	span     span
	calls    int
	accepted int
	refused  int
	waiting  int
	since    store.Time   // last acceptance, or when a call began to wait
	gap      store.Time   // longest time with a waiting call and no acceptance
	waits    []store.Time // of each call, from when a worker took it until it was accepted or given up
}

func (c *classTally) note(t store.Time) {
	c.gap = max(c.gap, t-c.since)
	c.since = t
}

// modelTally counts the work for one model, which limits may delay independently of other models.
type modelTally struct {
	model   string
	waiting int
	since   store.Time
	spans   []span // in which calls were waiting
}

func newTally(sc *Scenario) *tally {
	return &tally{sc: sc, left: sc.calls(), classes: make([]classTally, len(sc.classes()))}
}

// model returns the tally of a model, which it creates if necessary.
func (y *tally) model(name string) *modelTally {
	for _, m := range y.models {
		if m.model == name {
			return m
		}
	}
	m := &modelTally{model: name}
	y.models = append(y.models, m)
	return m
}

func (y *tally) demanded(t store.Time, a *arrival) {
	y.span.begin(t)
	y.fairness.demanded(a)
	k := &y.classes[a.agent.Class]
	k.span.begin(t)
	k.calls += a.n
	if k.waiting == 0 {
		k.since = t
	}
	k.waiting += a.n
	m := y.model(a.model())
	if m.waiting == 0 {
		m.since = t
	}
	m.waiting += a.n
}

// satisfied ends the wait of c, which was accepted or given up.
func (y *tally) satisfied(t store.Time, c *call) {
	k := &y.classes[c.agent.Class]
	k.waiting--
	if c.wanted {
		k.waits = append(k.waits, t-c.wantedAt)
	}
	y.fairness.satisfied(c, c.accepted)
	m := y.model(c.asks.Model)
	m.waiting--
	if m.waiting == 0 {
		m.spans = append(m.spans, span{first: m.since, last: t})
	}
}

func (y *tally) sent(t store.Time, c *call) {
	y.sends.add(t)
	if c.sends > 1 {
		y.repeats++
	}
}

func (y *tally) reached(t store.Time, c *call, resp Response) {
	if !resp.Accepted {
		y.throttled++
		y.classes[c.agent.Class].refused++
		y.trace.Refused.add(t)
		return
	}
	y.accepted = append(y.accepted, t)
	y.trace.Accepted.add(t)
	k := &y.classes[c.agent.Class]
	k.accepted++
	k.note(t)
	y.satisfied(t, c)
}

func (y *tally) finished(t store.Time, c *call) {
	y.done++
	y.over(t, c)
	if c.job.left == 0 && !c.job.failed && t <= c.job.deadline {
		y.jobsDone++
	}
}

func (y *tally) gaveUp(t store.Time, c *call) {
	c.job.failed = true
	y.classes[c.agent.Class].note(t)
	y.satisfied(t, c)
	y.over(t, c)
}

func (y *tally) over(t store.Time, c *call) {
	c.job.left--
	y.left--
	y.span.last = t
	y.classes[c.agent.Class].span.last = t
}

// close ends the run. Calls that are not over count until the horizon.
func (y *tally) close(horizon store.Time) {
	if y.left > 0 {
		y.span.last = horizon
	}
	for i := range y.classes {
		if k := &y.classes[i]; k.waiting > 0 {
			k.note(horizon)
			k.span.last = horizon
		}
	}
	for _, m := range y.models {
		if m.waiting > 0 {
			m.spans = append(m.spans, span{first: m.since, last: horizon})
		}
	}
}

// sends counts the sent requests, and keeps the times of the last second.
type sends struct {
	n      int
	peak   int          // most in any second
	recent []store.Time // of the last second, from index first on
	first  int
	all    *[]store.Time // all times, for tests; nil: not kept
}

func (s *sends) add(t store.Time) {
	s.n++
	s.recent = append(s.recent, t)
	for s.recent[s.first] <= t-1_000_000 {
		s.first++
	}
	s.peak = max(s.peak, len(s.recent)-s.first)
	if s.first > len(s.recent)/2 {
		s.recent = s.recent[:copy(s.recent, s.recent[s.first:])]
		s.first = 0
	}
	if s.all != nil {
		*s.all = append(*s.all, t)
	}
}

// starved returns the classes that had calls waiting for three of the longest windows in a row without an acceptance,
// and those that never had one.
func (y *tally) starved() []string {
	names := []string{}
	patience := store.Time(3 * y.sc.window().Microseconds())
	for i, k := range y.classes {
		if k.calls > 0 && (k.accepted == 0 || k.gap > patience) {
			names = append(names, y.sc.classes()[i].Name)
		}
	}
	return names
}
