package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// serve grants every waiting request that can go, in order. Then it sets when time alone may let the next one go.
func (p *Pool) serve() {
	p.wake = 0
	if p.queue.Len() == 0 {
		return
	}
	p.queue.Wake(p.now)
	for p.serveOne() {
	}
	if at, ok := p.queue.NextWake(); ok {
		p.wakeAt(at)
	}
	p.wakeAtDue()
	if p.nextFree != 0 {
		p.wakeAt(p.nextFree)
	}
}

// wakeAtDue sets the wake time to the next expiry of a ticket, if that is earlier.
func (p *Pool) wakeAtDue() {
	if at := p.wheel.nextDue(p); at != 0 {
		p.wakeAt(at)
	}
}

// wakeAt sets the wake time to t, if that is earlier.
func (p *Pool) wakeAt(t int64) {
	if t < meter.Never && (p.wake == 0 || t < p.wake) {
		p.wake = max(t, p.now+1)
	}
}

// wakeFor is wakeAt for a waiting ticket.
func (p *Pool) wakeFor(t int32, at int64) {
	before := p.wake
	if p.wakeAt(at); p.wake != before {
		p.next = t
	}
}

// Next returns the request that probably goes first when the time of Wake has come; zero if that is not known. It is not
// part of the state: a pool that was restored may not know it.
func (p *Pool) Next() store.ID {
	if p.next == 0 || p.wake == 0 || p.next >= p.tickets.End() {
		return store.ID{}
	}
	tk := p.tickets.At(p.next)
	if tk.state != stateWaiting {
		return store.ID{}
	}
	return tk.id
}

// serveOne makes one pass over the heads of the lanes, in order. It stops at the first head that it grants, parks or
// dismisses. It reports whether another pass is needed.
func (p *Pool) serveOne() bool {
	p.wake = 0
	p.claims++ // claims of earlier passes are void
	again := false
	heads := p.queue.Heads(p.strict(), p.policed != 0)
	highest := p.findRival(heads)
	for i, h := range heads {
		if i == highest {
			p.rival = 0
		}
		if p.queue.Closed(h, p.claims) {
			continue
		}
		t := p.queue.Ticket(h.Waiter)
		tk := p.tickets.At(t)
		if v := p.pausesAllow(tk.who.model, tk.who.key); !v.OK {
			p.wakeFor(t, v.Next)
			p.queue.Held(h)
			again = p.passOn(tk) || again
			continue
		}
		if limit := p.tooBig(tk); limit >= 0 {
			p.dismiss(t, tk, limit)
			return true
		}
		if on, at := p.lacksOwn(tk); on != 0 {
			p.queue.Park(h.Waiter, on, at)
			tk.parked = true
			return true
		}
		if at := p.keptFromAny(tk); at != 0 {
			p.wakeFor(t, min(at, p.now+lookAgain))
			p.queue.Held(h)
			again = p.passOn(tk) || again
			continue // other classes may still go
		}
		if at := p.lacksShared(tk); at != 0 {
			if p.policed != 0 { // once a policy keeps room from it, others may overtake it
				at = min(at, p.now+lookAgain)
			}
			p.wakeFor(t, at)
			p.claim(tk)
			p.queue.Close(h, p.claims)
			p.limitsBind(&tk.who)
			again = p.passOn(tk) || again
			continue
		}
		p.admit(t)
		return true
	}
	return again
}

// lookAgain is the longest time between two checks of a request that a policy holds back. Several classes and meters
// decide when it may go, so no exact time can be computed.
const lookAgain = 10_000_000

// findRival sets rival to the first ticket of the highest class that no pause holds, and returns its index in heads.
func (p *Pool) findRival(heads []order.Head) int {
	p.rival = 0
	if p.policed == 0 || !p.spec.Pace {
		return 0
	}
	for i, h := range heads {
		if h.Class() != rankOf(0) {
			continue
		}
		t := p.queue.Ticket(h.Waiter)
		if tk := p.tickets.At(t); p.pausesAllow(tk.who.model, tk.who.key).OK {
			p.rival = t
			return i
		}
	}
	return 0
}

// passOn is called for a ticket that was parked on a limit of its own and is now held back by something else. It lets
// the next request parked on that limit try, and reports whether there is one.
func (p *Pool) passOn(tk *ticket) (any bool) {
	if !tk.parked {
		return false
	}
	tk.parked = false
	for k := range tk.n {
		any = p.changed(&tk.charges[k]) || any
	}
	return any
}

// tooBig returns a limit that has become smaller than the request, or -1. Such a request would wait forever, and block
// all requests behind it that need the limit.
func (p *Pool) tooBig(tk *ticket) int {
	for k := range tk.n {
		c := &tk.charges[k]
		if in := p.insts.At(c.inst); in.Cap > 0 && c.Amount > in.Cap {
			return int(c.limit)
		}
	}
	return -1
}

// dismiss refuses a waiting request that can never go.
func (p *Pool) dismiss(t int32, tk *ticket, limit int) {
	if tk.op > 0 {
		p.refuseTooLarge(&p.batch[tk.op-1], limit)
	} else {
		p.decided = append(p.decided, tk.id)
	}
	p.leaveQueue(tk)
	p.end(t, tk)
}

// lacksOwn returns the first meter of an unshared limit that has no room for the ticket, or that an earlier request is
// parked on, and when the meter will have room. It returns 0 if there is none.
func (p *Pool) lacksOwn(tk *ticket) (on int32, at int64) {
	for k := range tk.n {
		c := &tk.charges[k]
		if p.shared&(1<<c.limit) != 0 {
			continue
		}
		in, d, r := p.touchCharge(c)
		if p.queue.ParkedBefore(tk.waiter, c.inst) {
			return c.inst, meter.Never // until the earlier request goes
		}
		if in.room(d, r, c.Amount) < c.Amount {
			tk.lacked |= 1 << c.limit
			return c.inst, in.readyAt(d, r, p.now, c.Amount)
		}
	}
	return 0, 0
}

// lacksShared notes the shared limits that have no room for the ticket beside the claims of earlier requests. It returns
// 0 if all have room, and otherwise when time alone could make room.
func (p *Pool) lacksShared(tk *ticket) (at int64) {
	for k := range tk.n {
		c := &tk.charges[k]
		if p.shared&(1<<c.limit) == 0 {
			continue
		}
		in, d, r := p.touchCharge(c)
		claimed := in.claimed(p.claims)
		if in.room(d, r, c.Amount)-claimed >= c.Amount {
			continue
		}
		tk.lacked |= 1 << c.limit
		ready := int64(meter.Never) // when the requests ahead go, the queue is served again
		switch {
		case claimed == 0:
			ready = in.readyAt(d, r, p.now, c.Amount)
		case claimed < everything:
			ready = in.ReadyAt(d, r, p.now, claimed+c.Amount)
		}
		at = max(at, ready)
	}
	return at
}

// everything is a claim that leaves no room to the requests behind.
const everything = 2 * store.MaxAmount

// claimed returns what requests have claimed of a meter in this pass.
func (in *inst) claimed(pass uint32) int64 {
	if in.pass != pass {
		return 0
	}
	return in.claim
}

// begin clears the claims and marks of earlier passes.
func (in *inst) begin(pass uint32) {
	if in.pass != pass {
		in.pass, in.claim, in.kept = pass, 0, 0
	}
}

// claim reserves room for a waiting request against the requests behind it: all of every limit that it has ever lacked,
// and its own cost on the others. So a request that needs much of two limits gets its turn although small requests keep
// using each. Claims are not charges. They do not affect requests ahead, and end with the pass.
func (p *Pool) claim(tk *ticket) {
	for k := range tk.n {
		c := &tk.charges[k]
		if p.shared&(1<<c.limit) == 0 {
			continue
		}
		in := p.insts.At(c.inst)
		in.begin(p.claims)
		if tk.lacked&(1<<c.limit) != 0 {
			in.claim = everything
		} else {
			in.claim = min(in.claim+c.Amount, everything)
		}
	}
}

// admit grants a waiting request. If no op of this step waits for it, its caller has collectWithin to collect it.
func (p *Pool) admit(t int32) {
	tk := p.tickets.At(t)
	costs := p.costs(tk)
	p.queue.Granted(tk.waiter, &costs)
	tk.counted = true
	p.unqueue(tk)
	p.grant(t, tk, true)
	for k := range tk.n {
		p.changed(&tk.charges[k]) // there may be room for one more
	}
	if tk.op > 0 {
		op := &p.batch[tk.op-1]
		tk.op = 0
		p.hold(t, tk, op)
		return
	}
	tk.state = stateReady
	p.schedule(t, tk, p.now+collectWithin)
	p.decided = append(p.decided, tk.id)
}

// estimate returns about when first before and then need will have been granted on a meter. If a part of the limit is
// withheld, it may come back before that.
func (p *Pool) estimate(in *inst, d *meter.Def, r *meter.Ring, before, need int64) int64 {
	at := in.Estimate(d, r, p.now, before, need, p.backWithin(in, d))
	if d.Part != 0 {
		at = min(at, max(p.nextFree, p.now))
	}
	return at
}

// forecast is estimate for people, if only time passes: a bucket begins to drain requests without a response when their slack
// is over. A response may come earlier, so this is no reason to refuse a request for its deadline.
func (p *Pool) forecast(in *inst, d *meter.Def, r *meter.Ring, before, need int64) int64 {
	at := p.estimate(in, d, r, before, need)
	ready := in.readyAt(d, r, p.now, need)
	if d.Part != 0 || ready >= meter.Never {
		return at
	}
	return max(at, ready+at-p.estimate(in, d, r, 0, need))
}

// depends reports whether time alone never makes room for amount, because open tickets hold a meter.
func depends(in *inst, d *meter.Def, r *meter.Ring, now, amount int64) bool {
	return d.Part == 0 && in.room(d, r, amount) < amount && in.readyAt(d, r, now, amount) >= meter.Never
}

// why explains why a ticket waits and estimates when it will go. The time is 0 if it depends on other requests. least is
// a time before which it cannot go in any case.
func (p *Pool) why(t int32) (reason store.Reason, least int64) {
	tk := p.tickets.At(t)
	code, on := store.CodeOrder, -1
	policy, policyOn := store.CodeNone, -1
	at, unknown := p.now, false
	full := int64(0) // when the limits have room, if only time passes
	ahead := p.queue.Ahead(tk.waiter, p.policed != 0)
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, ring := p.touchCharge(c)
		before := order.Share(in.queued-c.Amount, ahead)
		if e := p.estimate(in, d, ring, before, c.Amount); e > at || on < 0 && tk.lacked&(1<<c.limit) != 0 {
			at, on = max(at, e), int(c.limit)
		}
		full = max(full, p.forecast(in, d, ring, before, c.Amount))
		if in.room(d, ring, c.Amount) < c.Amount {
			code = store.CodeLimit
			if on < 0 { // the time is unknown, but the limit is not
				on = int(c.limit)
			}
			if depends(in, d, ring, p.now, c.Amount) {
				unknown = true
			}
		}
		if keeps, until := p.keptFrom(tk, c, in, d, ring); keeps != 0 {
			policy, policyOn, at = keeps, int(c.limit), max(at, until)
		}
	}
	if policy != 0 {
		code, on, unknown = policy, policyOn, false
	}
	v := p.pausesAllow(tk.who.model, tk.who.key)
	if !v.OK && (v.Phase != pause.Ramping || v.At >= at && !unknown) { // otherwise the ramp is over before the rest
		code, unknown = holdCode(v.Phase), false
		at = max(at, v.At)
	}
	if at >= meter.Never {
		at, unknown = p.now, true
	}
	reason.Code = code
	if on >= 0 {
		reason.Limit = p.spec.Limits[on].Name
	}
	if until := max(at, full); until > p.now && until < meter.Never && !unknown {
		reason.At = store.Time(until)
	}
	return reason, at
}
