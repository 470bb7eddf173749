package pool

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// maxHolders bounds the number of agents listed as holding a limit.
const maxHolders = 5

// outsideName stands for callers that use a limit without Sluice.
const outsideName = "(outside the gate)"

// holding finds the agents that hold each meter. For concurrency these are the agents with open tickets. For all other
// kinds they are the agents that used most within the window, because use counts long after its tickets are closed.
type holding struct {
	pool   *Pool
	open   map[int32]map[int32]place // of open tickets, by meter and agent
	found  map[int32][]string
	holds  map[int32]store.Hold
	looked bool
}

type holder struct {
	name string
	n    int64
}

// place is what the open tickets of one agent hold of a meter.
type place struct {
	amount  int64
	tickets int
	until   int64 // when the last of them ends, if it is not closed before
}

// of returns the agents that hold a meter, the largest holder first, at most maxHolders.
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
	if h.found == nil {
		h.found = map[int32][]string{}
	}
	h.found[i] = largest(list)
	return h.found[i]
}

// hold describes the open tickets that hold a meter.
func (h *holding) hold(i int32) store.Hold {
	if o, known := h.holds[i]; known {
		return o
	}
	o := store.Hold{By: largest(h.places(i))}
	for _, x := range h.open[i] {
		o.Tickets += x.tickets
		o.Until = max(o.Until, store.Time(x.until))
	}
	if h.holds == nil {
		h.holds = map[int32]store.Hold{}
	}
	h.holds[i] = o
	return o
}

func largest(list []holder) (names []string) {
	slices.SortFunc(list, func(a, b holder) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	for _, x := range list[:min(len(list), maxHolders)] {
		names = append(names, x.name)
	}
	return names
}

// places returns the agents with open tickets on a meter.
func (h *holding) places(i int32) (list []holder) {
	if !h.looked {
		h.look()
	}
	for agent, x := range h.open[i] {
		list = append(list, holder{h.pool.names.Text(agent), x.amount})
	}
	return list
}

// look adds up the charges of all open tickets.
func (h *holding) look() {
	h.looked, h.open = true, map[int32]map[int32]place{}
	p := h.pool
	for i := int32(1); i < p.tickets.End(); i++ {
		tk := p.tickets.At(i)
		if tk.state != stateHeld && tk.state != stateReady && tk.state != stateSpent {
			continue
		}
		ends := tk.ends
		if tk.state == stateReady { // its time to live begins when it is collected
			ends = tk.due
		}
		for k := range tk.n {
			c := &tk.charges[k]
			if c.Mode != meter.Held {
				continue // it counts until its time is over, whether or not its ticket is open
			}
			if h.open[c.inst] == nil {
				h.open[c.inst] = map[int32]place{}
			}
			x := h.open[c.inst][tk.who.agent]
			x.amount, x.tickets, x.until = x.amount+c.Amount, x.tickets+1, max(x.until, ends)
			h.open[c.inst][tk.who.agent] = x
		}
	}
}

// users returns the agents whose use still counts in a meter. The history counts by minutes. For a shorter window it
// takes the agents that sent a request within the window, ranked by their use in the last minute.
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
	if agent := in.scope.agent; agent != 0 { // only this agent uses the meter
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

// counts returns the longest time that use counts in a meter. A full bucket drains for longer than its window if its
// burst is larger than its rate.
func counts(in *inst, d *meter.Def) int64 {
	if d.Kind == meter.Bucket && in.N > 0 {
		return int64(min(float64(in.W)/float64(in.N)*float64(in.Cap), 1<<50)) + in.W + d.Most
	}
	return d.Window + d.Most
}
