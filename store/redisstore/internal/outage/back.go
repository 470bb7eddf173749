package outage

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// Return is what the store is told when it answers again. Its operations may be sent in several calls, in
// their order.
type Return struct {
	Ops   []store.Op
	sent  int            // how many of the deferred operations Ops contains
	touch int            // index of the touch; -1: none
	first int            // index of the first acquire of queue
	queue []*localWaiter // the tickets that waited here and ask again
}

// Return lists what the store has to be told: grants that still count, by force; then answers, closes and cancels; then
// that the process is a member; and then acquires for the tickets that waited here. Nothing is granted here from now
// until [Process.Stay].
func (p *Process) Return(now store.Time) *Return {
	o := p.lost
	o.halted = true
	p.takeAllBack()
	b := &Return{touch: -1, sent: len(o.deferred)}
	var charges []store.Op
	for _, op := range o.again {
		if op.Force && o.held[op.ID] == nil {
			charges = append(charges, op)
		}
	}
	for id, tk := range o.held {
		if tk.due <= now {
			delete(o.held, id)
			continue
		}
		charges = append(charges, p.forced(tk, now))
	}
	charges = append(charges, p.standingOps(now)...)
	slices.SortFunc(charges, byID)
	b.Ops = append(b.Ops, charges...)
	for id, tk := range o.held {
		if tk.answered != 0 {
			b.Ops = append(b.Ops, store.Op{Kind: store.OpAnswer, ID: id})
		}
	}
	for i := range o.deferred {
		b.Ops = append(b.Ops, o.deferred[i].aged(now))
	}
	if o.paused > now {
		b.Ops = append(b.Ops, store.Op{Kind: store.OpPause, RetryAfter: o.paused.Sub(now), Cause: o.cause})
	}
	if op, member := p.Touch(now); member {
		b.touch = len(b.Ops)
		b.Ops = append(b.Ops, op)
	}
	o.again = append(charges, p.askAgain(b, charges, now)...)
	return b
}

// standingOps returns operations that charge what closed requests still take.
func (p *Process) standingOps(now store.Time) (ops []store.Op) {
	o := p.lost
	if o.island == nil {
		return nil
	}
	type scope struct{ model, key string }
	at := map[scope]int{}
	for k, sum := range o.island.standing(now) {
		s := scope{k.model, k.key}
		i, there := at[s]
		if !there {
			i = len(ops)
			at[s] = i
			ops = append(ops, store.Op{
				Kind: store.OpAcquire, ID: p.newID(p.memberID().Session, false), Agent: o.agent.name, Class: o.agent.class,
				Model: s.model, Key: s.key, Force: true, Spent: true, TTL: time.Second,
			})
		}
		l := &p.spec.Limits[k.limit]
		ops[i].Amounts = append(ops[i].Amounts, store.Amount{Unit: l.Unit, Limit: l.Name, N: min(sum, store.MaxAmount)})
	}
	return ops
}

// askAgain adds acquires for the tickets that waited here, and moves all sessions past the numbers used here, so that none
// is given out twice. The store wants numbers in order: a ticket whose number is too low is told, and its caller acquires
// anew.
func (p *Process) askAgain(b *Return, charges []store.Op, now store.Time) (asks []store.Op) {
	o := p.lost
	high := map[uint64]uint64{}
	for i := range charges {
		high[charges[i].ID.Session] = max(high[charges[i].ID.Session], charges[i].ID.N)
	}
	b.first = len(b.Ops)
	b.queue = slices.DeleteFunc(slices.Clone(o.queue), func(w *localWaiter) bool { return w.stored })
	slices.SortFunc(b.queue, func(a, b *localWaiter) int { return cmp.Compare(a.tk.id.N, b.tk.id.N) })
	b.queue = slices.DeleteFunc(b.queue, func(w *localWaiter) bool {
		id := w.tk.id
		if id.N <= high[id.Session] || !p.isLocal(id) || w.deadline != 0 && w.deadline <= now {
			return true
		}
		high[id.Session] = id.N
		asks = append(asks, p.waitAgain(w.tk, w.deadline, now))
		return false
	})
	b.Ops = append(b.Ops, asks...)
	agents := map[uint64]agent{}
	for _, s := range p.sessions { // also those without grants: the store may have forgotten their numbers
		if s.agent.name != "" && s.Spec.OnFailure != store.FailOpen {
			agents[s.ID] = s.agent
		}
	}
	for session, a := range o.agents {
		agents[session] = a
	}
	n := p.passing()
	for session, a := range agents {
		b.Ops = append(b.Ops, a.pass(store.ID{Session: session, N: n})...)
	}
	return asks
}

// pass returns operations that move a session past a ticket number, so that none below it is given out.
func (a agent) pass(id store.ID) []store.Op {
	return []store.Op{
		{Kind: store.OpAcquire, ID: id, Agent: a.name, Class: a.class, Force: true, TTL: time.Second},
		{Kind: store.OpCancel, ID: id},
	}
}

// Stay continues the outage after a return that failed. heard reports that the store may have carried out a part of it.
// The store may then count on the member and have given its share away, so the share begins anew. Call [Process.Serve]
// afterwards.
func (p *Process) Stay(heard bool, now store.Time, rtt time.Duration) {
	o := p.lost
	o.halted = false
	if !heard {
		o.again = slices.DeleteFunc(o.again, func(op store.Op) bool { return !o.heardOf[op.ID] })
		return
	}
	for _, op := range o.again {
		o.heardOf[op.ID] = true
	}
	n := &o.numbers
	n.passed, n.top, n.base = n.pass, n.base+queuedGap+n.queued, 0
	if o.island != nil {
		p.loosen(now)
		o.island = p.newIsland(now, rtt)
	}
}

// loosen turns what was granted here into charges that the store may or may not have.
func (p *Process) loosen(now store.Time) {
	o := p.lost
	if o.loose == nil {
		o.loose = map[meterKey][]policy.Lingering{}
	}
	for k, list := range o.loose {
		d := &p.limits[k.limit].Def
		o.loose[k] = slices.DeleteFunc(list, func(s policy.Lingering) bool { return s.Bound+2*d.Window <= int64(now) })
	}
	for k, sum := range o.island.standing(now) {
		l := &p.limits[k.limit]
		bound := int64(now) + l.Most
		if l.Guard == meter.Strict || l.Late {
			bound = int64(max(now, o.due))
		}
		o.loose[k] = append(o.loose[k], policy.Lingering{Amount: sum, Bound: bound})
	}
	for _, tk := range o.held {
		if tk.number < 0 {
			continue // an earlier call has added it
		}
		p.shares(tk, func(i int, k meterKey) {
			o.loose[k] = append(o.loose[k], policy.Lingering{Amount: tk.amounts[i], Bound: int64(tk.due)})
		})
		tk.number = -1
	}
}

// End ends the outage after the store has carried out all of a return. It returns the tickets whose sessions have to be
// told, and the operations on tickets that were kept since.
func (p *Process) End(b *Return) (told []store.ID, later []store.Op) {
	o := p.lost
	if b.touch >= 0 {
		p.Touched(&b.Ops[b.touch])
	}
	for id, tk := range o.held {
		tk.number = -1
		p.granted.open[id] = tk
	}
	p.lost = nil
	for _, w := range o.queue { // also those that came while the return was under way
		if !w.stored { // the store's tickets are polled instead
			told = append(told, w.tk.id)
		}
	}
	for i, w := range b.queue {
		op := &b.Ops[b.first+i]
		if o.find(w.tk.id) == nil {
			continue // the caller has left meanwhile, and later has its cancel
		}
		if op.Result.State == store.Granted || op.Result.State == store.Waiting {
			p.waits(w.tk, storeWaiter{deadline: deadlineOf(op.Wait, op.Result.Now)})
		}
		if op.Result.State == store.Waiting {
			told = slices.DeleteFunc(told, func(id store.ID) bool { return id == w.tk.id })
		}
	}
	for _, s := range o.deferred[b.sent:] {
		later = append(later, s.op)
	}
	for i := range b.Ops {
		if id := b.Ops[i].ID; Of(id.Session) == p.number {
			p.highest = max(p.highest, id.N)
		}
	}
	slices.SortFunc(told, compareIDs)
	return told, later
}
