package outage

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Tickets that wait in the store when an outage begins wait here as well, in order of arrival. The store may also grant
// them without this process hearing of it. So a grant here gets a number of its own, and the ticket in the store keeps
// waiting until the caller has collected the grant. Then the ticket is withdrawn, which gives back a grant that it may
// have got in the store. When the store is back, grants that were not collected are taken back, and their tickets go on
// waiting there.

// early is a ticket that waits in the store and was granted here.
type early struct {
	w         *localWaiter // the waiting ticket
	tk        *ticket      // the ticket that was granted instead
	collected bool         // the caller knows of the grant
}

// arrives numbers tickets in the order in which they begin to wait.
func (p *Process) arrives() int64 {
	p.arrivals++
	return p.arrivals
}

// waits records that a ticket waits in the store.
func (p *Process) waits(tk *ticket, w storeWaiter) {
	w.tk, w.kept, w.order = tk, true, p.arrives()
	if was := p.stored[tk.id]; was != nil { // a repeated acquire
		w.order = was.order
		p.unstore(tk.id)
	}
	p.stored[tk.id] = &w
	if i := p.enter(&w); i != nil {
		p.lost.insert(i)
	}
}

// unstore forgets a ticket that no longer waits in the store.
func (p *Process) unstore(id store.ID) {
	delete(p.stored, id)
	if o := p.lost; o != nil {
		o.queue = slices.DeleteFunc(o.queue, func(w *localWaiter) bool { return w.tk.id == id })
		if m := o.early[id]; m != nil && !m.collected {
			p.takeBack(m)
		}
	}
}

// enter returns the entry in the local queue for a ticket that waits in the store, or nil if it waits there only. The
// caller of a renewed ticket knows it by its number, and grants here have numbers of their own. So a renewed ticket ends
// when the share begins, and its caller acquires anew.
func (p *Process) enter(w *storeWaiter) *localWaiter {
	s := p.sessions[w.tk.id.Session]
	if p.lost == nil || s == nil || p.Mode(s) != store.FailShare || !w.kept {
		return nil
	}
	i := &localWaiter{tk: w.tk, deadline: w.deadline, order: w.order, stored: true, renewed: w.renewed}
	if start := p.lost.island.start; w.renewed && (i.deadline == 0 || start < i.deadline) {
		i.deadline = start
	}
	return i
}

// enterAll queues all tickets here that wait in the store.
func (p *Process) enterAll() {
	for _, w := range p.stored {
		if i := p.enter(w); i != nil {
			p.lost.queue = append(p.lost.queue, i)
		}
	}
	slices.SortFunc(p.lost.queue, before)
}

// before orders the queue by class, and within a class by arrival.
func before(a, b *localWaiter) int {
	return cmp.Or(cmp.Compare(a.tk.rank(), b.tk.rank()), cmp.Compare(a.order, b.order))
}

// insert queues a ticket.
func (o *outage) insert(w *localWaiter) {
	at, _ := slices.BinarySearchFunc(o.queue, w, before)
	o.queue = slices.Insert(o.queue, at, w)
}

// find returns the waiting ticket with an id, or nil.
func (o *outage) find(id store.ID) *localWaiter {
	if i := slices.IndexFunc(o.queue, func(w *localWaiter) bool { return w.tk.id == id }); i >= 0 {
		return o.queue[i]
	}
	return nil
}

// move grants a ticket here that waits in the store.
func (p *Process) move(w *localWaiter, now store.Time) {
	tk := *w.tk
	tk.id = p.newID(tk.id.Session, false)
	p.grant(&tk, now)
	p.lost.early[w.tk.id] = &early{w: w, tk: &tk}
}

// mayHave reports whether the store may know a ticket that waits here from an attempt to return, or would not accept its
// number for a new ticket.
func (o *outage) mayHave(id store.ID) bool { return o.heardOf[id] || id.N <= o.numbers.passed }

// retire gives up a ticket whose deadline has passed.
func (p *Process) retire(w *localWaiter, now store.Time) {
	if w.stored {
		p.withdraw(w.tk.id)
	} else {
		p.lost.deferEnd(w.tk.id, &store.Op{Kind: store.OpCancel, ID: w.tk.id}, now)
	}
}

// takeBack undoes move. The caller has not learnt of the grant, so no request went out.
func (p *Process) takeBack(m *early) {
	o := p.lost
	if delete(o.held, m.tk.id); o.island != nil {
		o.island.Drop(m.tk.number)
	}
	o.granted--
	delete(o.early, m.w.tk.id)
}

// takeAllBack takes back all grants that were not collected. Their tickets wait again.
func (p *Process) takeAllBack() {
	for _, m := range p.lost.early {
		if !m.collected {
			p.takeBack(m)
			p.lost.insert(m.w)
		}
	}
}

// here returns the id under which a ticket is known here: that of the grant that replaced it, if the caller has
// collected one.
func (o *outage) here(id store.ID) store.ID {
	if m := o.early[id]; m != nil && m.collected {
		return m.tk.id
	}
	return id
}

// collectEarly records that the caller knows of a grant made here, and withdraws the ticket that waits in the store.
func (p *Process) collectEarly(id store.ID) {
	if m := p.lost.early[id]; m != nil && !m.collected {
		m.collected = true
		p.withdraw(id)
	}
}

// withdraw cancels a ticket that waits in the store, waiting or granted by now.
func (p *Process) withdraw(id store.ID) {
	delete(p.stored, id)
	// Not bounded by maxDeferred: there are never more cancels than tickets that waited.
	p.lost.deferred = append(p.lost.deferred, deferredOp{op: store.Op{Kind: store.OpCancel, ID: id}})
}
