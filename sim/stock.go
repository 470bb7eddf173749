package sim

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// stock is a fixed window of the provider. Its quota may be spent at any time before the reset, so a part of a window
// does not show how well the quota was used. Windows count only as a whole, and only if work was waiting both at the
// start and at the end.
type stock struct {
	limit    int
	rule     *Fixed
	models   []*modelTally
	held     bool // it has delayed the backlog
	admitted int  // calls of the backlog in windows that count

	next   store.Time // end of the last checked window
	judged bool       // whether that window counts
}

// stocks returns the stocks of the scenario.
func stocks(sc *Scenario, models []*modelTally) []*stock {
	var all []*stock
	for i, l := range sc.Limits {
		if l.Kind == store.Fixed {
			all = append(all, &stock{limit: i, rule: l.Rule().(*Fixed), models: models})
		}
	}
	return all
}

// judges reports whether t is in a window that counts.
func (s *stock) judges(t store.Time) bool {
	if t >= s.next || t < s.next-s.rule.window {
		_, s.next = s.rule.at(t)
		s.judged = waited(s.models, s.next-s.rule.window) && waited(s.models, s.next)
	}
	return s.judged
}

// note counts a call of the backlog that was accepted at t.
func (s *stock) note(t store.Time) {
	if s.judges(t) {
		s.admitted++
	}
}

// waited reports whether work was waiting at t.
func waited(models []*modelTally, t store.Time) bool {
	for _, m := range models {
		i, _ := slices.BinarySearchFunc(m.spans, t, func(s span, t store.Time) int { return int(s.last - t) })
		if i < len(m.spans) && m.spans[i].first <= t {
			return true
		}
	}
	return false
}

// held records the limit that delayed the backlog.
func (o *backlog) held(limit int) {
	for _, s := range o.stocks {
		s.held = s.held || s.limit == limit
	}
}

// stock returns the longest stock that delayed the backlog and has windows that count. It returns nil if there is none.
func (o *backlog) stock() *stock {
	var longest *stock
	for _, s := range o.stocks {
		if s.held && s.admitted > 0 && (longest == nil || s.rule.window > longest.rule.window) {
			longest = s
		}
	}
	return longest
}

// utilization returns the accepted calls divided by those that the rules admit. If a stock delayed the backlog, it
// compares whole windows, otherwise the time in which work was waiting.
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
