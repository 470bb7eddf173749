// Package placed translates between the limits of a member and those of the pool that it has
// opened: members may have the same limits in another order, or only some of them.
package placed

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Places are where a member's limits are in the pool, -1 for one that is not there. Nil: they are
// the same.
type Places []int

// Of returns the places of limits in a pool that has count of them, where index finds one by name.
func Of(limits []store.Limit, count int, index func(name string) int) Places {
	same := count == len(limits)
	places := make(Places, len(limits))
	for i := range limits {
		places[i] = index(limits[i].Name)
		same = same && places[i] == i
	}
	if same {
		return nil
	}
	return places
}

// Op makes an operation of the member one on the pool.
func (p Places) Op(op *store.Op) {
	if p == nil {
		return
	}
	was := op.Amounts
	op.Amounts = [store.MaxLimits]int64{}
	if op.Kind == store.OpClose && was != op.Amounts { // what this member does not know of is not known
		for k := range op.Amounts {
			op.Amounts[k] = -1
		}
	}
	for k, at := range p {
		if at >= 0 {
			op.Amounts[at] = was[k]
		}
	}
	op.Observed = slices.Clone(op.Observed)
	for k := range op.Observed {
		if o := &op.Observed[k]; o.Limit >= 0 && o.Limit < len(p) {
			o.Limit = p[o.Limit]
		} else {
			o.Limit = -1
		}
	}
}

// Limit returns which of the member's limits is at a place of the pool, -1 if none is.
func (p Places) Limit(place int) int {
	if p == nil {
		return place
	}
	return slices.Index(p, place)
}

// Result makes a result of the pool one for the member.
func (p Places) Result(r *store.Result) {
	if p != nil {
		r.Reason.Limit = int8(p.Limit(int(r.Reason.Limit))) //nolint:gosec // there are few limits
	}
}

// Snapshot leaves of a snapshot of the pool what the member has.
func (p Places) Snapshot(s *store.Snapshot) {
	if p == nil {
		return
	}
	s.Limits = slices.DeleteFunc(s.Limits, func(l store.LimitState) bool { return p.Limit(l.Limit) < 0 })
	for i := range s.Limits {
		s.Limits[i].Limit = p.Limit(s.Limits[i].Limit)
	}
	slices.SortStableFunc(s.Limits, func(a, b store.LimitState) int { return a.Limit - b.Limit })
	for i := range s.Queue {
		r := &s.Queue[i].Reason
		r.Limit = int8(p.Limit(int(r.Limit))) //nolint:gosec // there are few limits
	}
}
