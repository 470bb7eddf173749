// Package limitmap translates between the limits of a member and those of the pool that it has opened. Members may
// have the same limits in another order, or only some of them.
package limitmap

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Map maps a member's limits to the pool's. Nil means that they are the same.
type Map = *Table

// Table is the mapping behind a Map.
type Table struct {
	at     []int   // index in the pool, or -1 for a missing limit
	others []other // limits of the pool that the member does not have
}

// other is a limit that was added after the member opened the pool, or that the member did not state. The member's
// requests count against it all the same, by what they take in the same unit.
type other struct {
	place int
	like  []int // the member's limits in the same unit
	one   bool  // it counts requests and the member has no such limit: each request takes one
}

// Of maps limits to those of a pool. there are the pool's limits, and inForce is the set of those in force.
func Of(limits, there []store.Limit, inForce uint16) Map {
	same := len(there) == len(limits)
	t := &Table{at: make([]int, len(limits))}
	for i := range limits {
		t.at[i] = -1
		for k := range there {
			if inForce&(1<<k) != 0 && there[k].Name == limits[i].Name {
				t.at[i] = k
			}
		}
		same = same && t.at[i] == i
	}
	if same {
		return nil
	}
	for k := range there {
		if inForce&(1<<k) == 0 || slices.Contains(t.at, k) {
			continue
		}
		o := other{place: k, one: there[k].Unit == requests}
		for i := range limits {
			if limits[i].Unit == there[k].Unit {
				o.like, o.one = append(o.like, i), false
			}
		}
		t.others = append(t.others, o)
	}
	return t
}

// requests is the unit of which every request takes one.
const requests = "requests"

// Op translates an operation of the member into one on the pool.
func (p *Table) Op(op *store.Op) {
	if p == nil {
		return
	}
	was := op.Amounts
	op.Amounts = [store.MaxLimits]int64{}
	if op.Kind == store.OpClose && was != op.Amounts { // amounts that the member does not know are unknown
		for k := range op.Amounts {
			op.Amounts[k] = -1
		}
	}
	for k, at := range p.at {
		if at >= 0 {
			op.Amounts[at] = was[k]
		}
	}
	if op.Kind == store.OpAcquire || op.Kind == store.OpClose {
		for _, o := range p.others {
			if o.one && op.Kind == store.OpAcquire {
				op.Amounts[o.place] = 1
			}
			for _, k := range o.like {
				op.Amounts[o.place] = max(op.Amounts[o.place], was[k])
			}
		}
	}
	op.Observed = slices.Clone(op.Observed)
	for k := range op.Observed {
		if o := &op.Observed[k]; o.Limit >= 0 && o.Limit < len(p.at) {
			o.Limit = p.at[o.Limit]
		} else {
			o.Limit = -1
		}
	}
}

// Limit returns which of the member's limits is at index place of the pool, or -1 if none is.
func (p *Table) Limit(place int) int {
	if p == nil {
		return place
	}
	return slices.Index(p.at, place)
}

// At returns the index in the pool of one of the member's limits, or -1 if there is none.
func (p *Table) At(limit int) int {
	switch {
	case p == nil:
		return limit
	case limit < 0 || limit >= len(p.at):
		return -1
	}
	return p.at[limit]
}

// Result translates a result of the pool for the member.
func (p *Table) Result(r *store.Result) {
	if p != nil {
		r.Reason.Limit = int8(p.Limit(int(r.Reason.Limit))) //nolint:gosec // there are few limits
	}
}

// Foresee translates acquires of the member's session for judge, and their results for the member.
func (p *Table) Foresee(session uint64, ops []store.Op, judge func([]store.Op) error) error {
	theirs := slices.Clone(ops)
	for i := range theirs {
		theirs[i].ID.Session = session
		p.Op(&theirs[i])
	}
	if err := judge(theirs); err != nil {
		return err
	}
	for i := range ops {
		ops[i].Result = theirs[i].Result
		p.Result(&ops[i].Result)
	}
	return nil
}

// Snapshot reduces a snapshot of the pool to the member's limits.
func (p *Table) Snapshot(s *store.Snapshot) {
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
