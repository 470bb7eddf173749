package pool

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// crew is the state of the fast path outside the pool's records.
type crew struct {
	tallies []*tally // by caller
	told    []*tally // tallies with counts of this minute
	before  []*tally // tallies that had counts when the last minute ended
	lots    []*Lot
	lotIx   map[store.ID]*Lot
}

// The functions in this file use Go slices and maps. The Lua script has its own versions of them, in lua/runtime.lua.

// list returns a list of n numbers.
func list(n int) []int64 { return make([]int64, n) }

// callerNamed returns the record that counts an agent's requests, or 0 if the agent has none yet. It also makes sure that
// the record has a tally.
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

// mark notes that a tally has changed. The Lua script writes marked tallies to the store.
func (p *Pool) mark(t *tally) { t.marked = true }

// addLot adds a lot to the list that lotAt uses and to the index that runOf uses.
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

// lotAt returns lot i, or nil if there are not that many.
func (p *Pool) lotAt(i int) *Lot {
	if i >= len(p.lots) {
		return nil
	}
	return p.lots[i]
}

// dropLot removes a lot from the list and the index. The last lot takes its place in the list.
func (p *Pool) dropLot(l *Lot) {
	i, last := slices.Index(p.lots, l), len(p.lots)-1
	p.lots[i] = p.lots[last]
	p.lots = p.lots[:last]
	for k := range l.Agents {
		delete(p.lotIx, l.ticket(k))
	}
}

// runOf returns the lot of ticket e.Numbers[at], or nil if the ticket has a record or has ended. It also returns the end
// of the run of tickets from at on that are in the same lot.
func (p *Pool) runOf(e *Ends, at int) (*Lot, int) {
	l := p.lotIx[store.ID{Session: e.Session, N: e.Numbers[at]}]
	to := at + 1
	for l != nil && to < len(e.Numbers) && e.Numbers[to] > e.Numbers[to-1] && p.lotIx[store.ID{Session: e.Session, N: e.Numbers[to]}] == l {
		to++
	}
	return l, to
}

// strikeLot marks tickets of a lot as ended.
func (p *Pool) strikeLot(l *Lot, e *Ends, from, to int) {
	for _, n := range e.Numbers[from:to] {
		delete(p.lotIx, store.ID{Session: e.Session, N: n})
		l.states[n-l.ID.N] = ended
	}
}
