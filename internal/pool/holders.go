package pool

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
)

// maxHolders bounds how many agents are named as holding a limit.
const maxHolders = 5

// outsideName stands for callers that use a limit without passing the gate.
const outsideName = "(outside the gate)"

// holding finds who holds each meter: of places, who has open tickets on them; of all others, who used most of them within
// their window, for what is used counts there long after its tickets are closed.
type holding struct {
	pool   *Pool
	open   map[int32]map[int32]int64 // by meter and agent: what open tickets hold
	found  map[int32][]string
	looked bool
}

type holder struct {
	name string
	n    int64
}

// of names those who hold a meter, who holds most first.
func (h *holding) of(i int32) []string {
	if names, known := h.found[i]; known {
		return names
	}
	in, d, _ := h.pool.touch(i)
	var list []holder
	if d.Kind == meter.Concurrency {
		list = h.places(i)
	} else {
		list = h.users(in, d)
		if in.Outside > 0 {
			list = append(list, holder{outsideName, in.Outside})
		}
	}
	slices.SortFunc(list, func(a, b holder) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, x := range list[:min(len(list), maxHolders)] {
		names = append(names, x.name)
	}
	if h.found == nil {
		h.found = map[int32][]string{}
	}
	h.found[i] = names
	return names
}

// places are those with open tickets on a meter.
func (h *holding) places(i int32) (list []holder) {
	if !h.looked {
		h.look()
	}
	for agent, n := range h.open[i] {
		list = append(list, holder{h.pool.names.Text(agent), n})
	}
	return list
}

// look goes through all open tickets.
func (h *holding) look() {
	h.looked, h.open = true, map[int32]map[int32]int64{}
	p := h.pool
	for i := int32(1); i < p.tickets.End(); i++ {
		tk := p.tickets.At(i)
		if tk.state != stateHeld && tk.state != stateReady && tk.state != stateSpent {
			continue
		}
		for k := range tk.n {
			c := &tk.charges[k]
			if h.open[c.inst] == nil {
				h.open[c.inst] = map[int32]int64{}
			}
			h.open[c.inst][tk.who.agent] += c.Amount
		}
	}
}

// users are those whose use still counts in a limit. Minutes are too coarse to share a shorter time out, so they only
// rank who has used it within that time.
func (h *holding) users(in *inst, d *meter.Def) (list []holder) {
	p := h.pool
	unit := int(p.history.unitOf[in.limit])
	span := counts(in, d)
	add := func(rec *caller) {
		if rec.name == 0 || rec.note == 0 || rec.last < p.now-span {
			return
		}
		if n := p.recentOf(rec, max(span, minute), unit, in.scope.model); n > 0 {
			list = append(list, holder{p.names.Text(rec.name), n})
		}
	}
	if agent := in.scope.agent; agent != 0 { // it is that agent's own
		if rec := p.names.Tags(agent)[callerTag]; rec != 0 {
			add(p.callers.recs.At(rec))
		}
		return list
	}
	for i := int32(1); i < p.callers.recs.End(); i++ {
		add(p.callers.recs.At(i))
	}
	return list
}

// counts is how long a use counts in a meter at most: a full bucket drains for longer than its window if its burst is larger
// than its rate.
func counts(in *inst, d *meter.Def) int64 {
	if d.Kind == meter.Bucket && in.N > 0 {
		return int64(min(float64(in.W)/float64(in.N)*float64(in.Cap), 1<<50)) + in.W + d.Most
	}
	return d.Window + d.Most
}
