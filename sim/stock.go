package sim

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// stock is a fixed window of the provider's. What it holds may be spent at any time before
// its reset, so a cut in the middle of a window says nothing about how well it
// was used. A window is judged as a whole, and only if work was waiting both
// when it began and when it ended.
type stock struct {
	limit    int
	rule     *Fixed
	lanes    []*modelTally
	held     bool // it has held up the backlog
	admitted int  // of the backlog, in windows that are judged

	next   store.Time // end of the window looked at last
	judged bool       // whether that one is
}

// stocks returns those of the scenario.
func stocks(sc *Scenario, lanes []*modelTally) []*stock {
	var all []*stock
	for i, l := range sc.Limits {
		if l.Kind == store.Fixed {
			all = append(all, &stock{limit: i, rule: l.Rule().(*Fixed), lanes: lanes})
		}
	}
	return all
}

// judges reports whether t is in a window that is judged.
func (s *stock) judges(t store.Time) bool {
	if t >= s.next || t < s.next-s.rule.window {
		_, s.next = s.rule.at(t)
		s.judged = waited(s.lanes, s.next-s.rule.window) && waited(s.lanes, s.next)
	}
	return s.judged
}

// note counts what the backlog got.
func (s *stock) note(t store.Time) {
	if s.judges(t) {
		s.admitted++
	}
}

// waited reports whether there was work waiting at t.
func waited(lanes []*modelTally, t store.Time) bool {
	for _, l := range lanes {
		i, _ := slices.BinarySearchFunc(l.spans, t, func(s span, t store.Time) int { return int(s.last - t) })
		if i < len(l.spans) && l.spans[i].first <= t {
			return true
		}
	}
	return false
}

// held notes which limit held up the backlog.
func (o *backlog) held(limit int) {
	for _, s := range o.stocks {
		s.held = s.held || s.limit == limit
	}
}

// stock returns the longest one that decided how much the backlog got, and of which a
// window can be judged; nil: there is none.
func (o *backlog) stock() *stock {
	var longest *stock
	for _, s := range o.stocks {
		if s.held && s.admitted > 0 && (longest == nil || s.rule.window > longest.rule.window) {
			longest = s
		}
	}
	return longest
}

// utilization is what was accepted over what the rule admits: in whole windows where
// a stock decides, else for as long as work was waiting.
func (o *backlog) utilization(accepted []store.Time) float64 {
	got, possible := len(accepted), o.admitted
	if s := o.stock(); s != nil {
		got, possible = 0, s.admitted
		for _, t := range accepted {
			if s.judges(t) {
				got++
			}
		}
	}
	if possible == 0 {
		return 0
	}
	return min(1, float64(got)/float64(possible))
}
