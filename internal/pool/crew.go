package pool

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// crew is what the fast path knows beside the pool's records.
type crew struct {
	tallies []*tally // by caller
	told    []*tally // those that say something of this minute
	before  []*tally // those that did so when the last minute was over
	lots    []*Lot
	lotIx   map[store.ID]*Lot
}

// What the fast path keeps is lists and tables. The script has its own form of these functions, in lua/runtime.lua.

// list returns a list for n numbers.
func list(n int) []int64 { return make([]int64, n) }

// callerNamed returns the record that an agent is counted in, 0 if it is to be made, and sees to it that there is a tally for it.
func (p *Pool) callerNamed(agent string) int32 {
	caller := int32(0)
	if name := p.names.Find(agent); name != 0 {
		caller = p.names.Tags(name)[callerTag]
	}
	if caller == 0 {
		caller = p.crowdCaller()
	}
	for int(caller) >= len(p.tallies) {
		p.tallies = append(p.tallies, &tally{caller: int32(len(p.tallies))})
	}
	return caller
}

// mark notes that a tally has changed: the script writes those.
func (p *Pool) mark(t *tally) { t.marked = true }

// addLot lets lotAt and runOf know a lot.
func (p *Pool) addLot(l *Lot) {
	if p.lotIx == nil {
		p.lotIx = map[store.ID]*Lot{}
	}
	p.lots = append(p.lots, l)
	for k := range l.Agents {
		p.lotIx[l.ticket(k)] = l
	}
}

func (l *Lot) ticket(k int) store.ID { return store.ID{Session: l.ID.Session, N: l.ID.N + uint64(k)} }

// lotAt returns lot i, nil if there are not so many.
func (p *Pool) lotAt(i int) *Lot {
	if i >= len(p.lots) {
		return nil
	}
	return p.lots[i]
}

// dropLot lets them forget it. The last takes its place.
func (p *Pool) dropLot(l *Lot) {
	i, last := slices.Index(p.lots, l), len(p.lots)-1
	p.lots[i] = p.lots[last]
	p.lots = p.lots[:last]
	for k := range l.Agents {
		delete(p.lotIx, l.ticket(k))
	}
}

// runOf returns the lot that a ticket is in, nil if it has a record or has ended, and how far those of that lot go on.
func (p *Pool) runOf(e *Ends, at int) (*Lot, int) {
	l := p.lotIx[store.ID{Session: e.Session, N: e.Numbers[at]}]
	to := at + 1
	for l != nil && to < len(e.Numbers) && e.Numbers[to] > e.Numbers[to-1] && p.lotIx[store.ID{Session: e.Session, N: e.Numbers[to]}] == l {
		to++
	}
	return l, to
}

// strikeLot notes that tickets of a lot have ended.
func (p *Pool) strikeLot(l *Lot, e *Ends, from, to int) {
	for _, n := range e.Numbers[from:to] {
		delete(p.lotIx, store.ID{Session: e.Session, N: n})
		l.states[n-l.ID.N] = ended
	}
}
