package outage

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// A ticket that waits in the store when that is lost waits here as well, in the order in which the tickets came. The store
// may grant it too, for a process that does not hear of it. So a grant here has a number of its own, and the entry in the store
// stays as it is until the caller has collected the grant: then it is withdrawn, which gives back whatever it has got there. A
// grant that was not collected when the store is back is taken back, and the ticket goes on waiting there.

// early is a ticket of the store's queue that was granted here.
type early struct {
	w         *islander // as which it waited
	tk        *ticket   // that was granted instead
	collected bool      // its caller knows
}

// arrives numbers tickets that begin to wait.
func (p *Process) arrives() int64 {
	p.arrivals++
	return p.arrivals
}

// waits records that a ticket waits in the store.
func (p *Process) waits(tk *ticket, w waiter) {
	w.tk, w.kept, w.order = tk, true, p.arrives()
	if was := p.queue[tk.id]; was != nil { // it was asked for twice
		w.order = was.order
		p.unqueue(tk.id)
	}
	p.queue[tk.id] = &w
	if i := p.enter(&w); i != nil {
		p.lost.insert(i)
	}
}

// unqueue forgets a ticket that does not wait in the store any more.
func (p *Process) unqueue(id store.ID) {
	delete(p.queue, id)
	if o := p.lost; o != nil {
		o.line = slices.DeleteFunc(o.line, func(w *islander) bool { return w.tk.id == id })
		if m := o.early[id]; m != nil && !m.collected {
			p.takeBack(m)
		}
	}
}

// enter returns what waits here for a ticket that waits in the store; nil: nothing does. A ticket that was granted before waits
// in the store only: its caller knows it by its number, under which nothing can be granted here.
func (p *Process) enter(w *waiter) *islander {
	s := p.sessions[w.tk.id.Session]
	if p.lost == nil || s == nil || p.Mode(s) != store.FailShare || !w.kept || w.renewed {
		return nil
	}
	return &islander{tk: w.tk, deadline: w.deadline, order: w.order, stored: true}
}

// enterAll has all tickets that wait in the store wait here.
func (p *Process) enterAll() {
	for _, w := range p.queue {
		if i := p.enter(w); i != nil {
			p.lost.line = append(p.lost.line, i)
		}
	}
	slices.SortFunc(p.lost.line, before)
}

// before orders the line: by class, and within one by arrival.
func before(a, b *islander) int {
	return cmp.Or(cmp.Compare(a.tk.rank(), b.tk.rank()), cmp.Compare(a.order, b.order))
}

// insert puts a ticket in line.
func (o *outage) insert(w *islander) {
	at, _ := slices.BinarySearchFunc(o.line, w, before)
	o.line = slices.Insert(o.line, at, w)
}

// find returns the ticket in line that has an id; nil: there is none.
func (o *outage) find(id store.ID) *islander {
	if i := slices.IndexFunc(o.line, func(w *islander) bool { return w.tk.id == id }); i >= 0 {
		return o.line[i]
	}
	return nil
}

// move grants a ticket here that waits in the store.
func (p *Process) move(w *islander, now store.Time) {
	tk := *w.tk
	tk.id = p.newID(tk.id.Session, false)
	p.grant(&tk, now)
	p.lost.early[w.tk.id] = &early{w: w, tk: &tk}
}

// mayHave reports that the store may have heard of a ticket that waits here on an attempt to return, or would not take its number
// for a new one.
func (o *outage) mayHave(id store.ID) bool { return o.heardOf[id] || id.N <= o.numbers.passed }

// retire gives up a ticket whose wait is over.
func (p *Process) retire(w *islander, now store.Time) {
	if w.stored {
		p.withdraw(w.tk.id)
	} else {
		p.lost.unsay(w.tk.id, &store.Op{Kind: store.OpCancel, ID: w.tk.id}, now)
	}
}

// takeBack undoes that. Nothing was sent.
func (p *Process) takeBack(m *early) {
	o := p.lost
	if delete(o.held, m.tk.id); o.isle != nil {
		o.isle.Drop(m.tk.number)
	}
	o.granted--
	delete(o.early, m.w.tk.id)
}

// takeAllBack has tickets wait in the store again whose callers have not collected them.
func (p *Process) takeAllBack() {
	for _, m := range p.lost.early {
		if !m.collected {
			p.takeBack(m)
			p.lost.insert(m.w)
		}
	}
}

// here returns the number under which a ticket is known here: another one if it was granted instead of it and collected.
func (o *outage) here(id store.ID) store.ID {
	if m := o.early[id]; m != nil && m.collected {
		return m.tk.id
	}
	return id
}

// collectEarly gives a ticket that was granted here to its caller, and withdraws the one that waits in the store.
func (p *Process) collectEarly(id store.ID) {
	if m := p.lost.early[id]; m != nil && !m.collected {
		m.collected = true
		p.withdraw(id)
	}
}

// withdraw gives up a ticket that waits in the store, whatever has become of it there.
func (p *Process) withdraw(id store.ID) {
	delete(p.queue, id)
	// There may be more of them than of other sayings, but never more than could wait.
	p.lost.sayings = append(p.lost.sayings, saying{op: store.Op{Kind: store.OpCancel, ID: id}})
}
