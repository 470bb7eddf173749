package sim

import (
	"github.com/sluicehq/sluice/store"
)

// tally keeps count of a run.
type tally struct {
	sc        *Scenario
	sends     sends
	repeats   int
	throttled int
	accepted  []store.Time // at the provider
	done      int
	jobsDone  int
	left      int // calls neither done nor given up
	span      span
	classes   []classTally
	lanes     []*modelTally // in the order of their first demand
	trace     Trace
	fairness  *fairness // nil: it is not measured
}

// span is from the first demand to the last call done or given up.
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

// classTally is what became of one class.
type classTally struct {
	span     span
	calls    int
	accepted int
	refused  int
	waiting  int
	since    store.Time   // last acceptance, or when something began to wait
	gap      store.Time   // longest time with something waiting and nothing accepted
	waits    []store.Time // of calls that were wanted, until they were accepted or given up
}

func (c *classTally) note(t store.Time) {
	c.gap = max(c.gap, t-c.since)
	c.since = t
}

// modelTally is the work for one model: it can be held up apart from that for the
// others.
type modelTally struct {
	model   string
	waiting int
	since   store.Time
	spans   []span // in which something waited
}

func newTally(sc *Scenario) *tally {
	return &tally{sc: sc, left: sc.calls(), classes: make([]classTally, len(sc.classes()))}
}

func (y *tally) lane(model string) *modelTally {
	for _, l := range y.lanes {
		if l.model == model {
			return l
		}
	}
	l := &modelTally{model: model}
	y.lanes = append(y.lanes, l)
	return l
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
	l := y.lane(a.model())
	if l.waiting == 0 {
		l.since = t
	}
	l.waiting += a.n
}

// satisfied ends c's wait: it was accepted or given up.
func (y *tally) satisfied(t store.Time, c *call) {
	k := &y.classes[c.agent.Class]
	k.waiting--
	if c.wanted {
		k.waits = append(k.waits, t-c.wantedAt)
	}
	y.fairness.satisfied(c, c.accepted)
	l := y.lane(c.asks.Model)
	l.waiting--
	if l.waiting == 0 {
		l.spans = append(l.spans, span{first: l.since, last: t})
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

// close ends the run. What has been left undone lasted to the horizon.
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
	for _, l := range y.lanes {
		if l.waiting > 0 {
			l.spans = append(l.spans, span{first: l.since, last: horizon})
		}
	}
}

// sends counts requests on the wire. It keeps those of the last second.
type sends struct {
	n      int
	peak   int          // most in any one second
	recent []store.Time // of the last second, from the one at first on
	first  int
	all    *[]store.Time // nil: they are not kept; for tests
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

// starved names the classes that had something waiting for three of the longest
// windows in a row while nothing of theirs was accepted, and those of which
// nothing ever was.
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
