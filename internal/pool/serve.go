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
	p.claims = max(p.claims+1, 1) // claims of earlier passes are void; 0 is no pass
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
		v := view{Pool: p, pass: p.claims}.judge(tk)
		switch {
		case v.goes:
			p.admit(t)
			return true
		case v.holdsUp == nobody:
			p.dismiss(t, tk, int(v.limit))
			return true
		case v.holdsUp == ownScope:
			p.queue.Park(h.Waiter, v.on, v.again)
			tk.parked = true
			tk.lacked |= v.lacks
			return true
		case v.holdsUp == itsClass:
			p.holdClass(tk, v.kept)
			p.wakeFor(t, v.again)
			p.queue.Held(h) // other classes may still go
		default:
			p.wakeFor(t, v.again)
			tk.lacked |= v.lacks
			p.claim(tk)
			p.queue.Close(h, p.claims)
			p.limitsBind(&tk.who)
		}
		again = p.passOn(tk) || again
	}
	return again
}

// holdClass records for the rest of the pass that policies hold back a ticket and those of its class behind it.
func (p *Pool) holdClass(tk *ticket, found []kept) {
	for i := range found {
		f := &found[i]
		in := p.insts.At(tk.charges[f.charge].inst)
		in.begin(p.claims)
		switch f.code {
		case 0: // it is held up by an earlier one
			continue
		case store.CodePace, store.CodeBreaker:
			in.kept |= ^uint8(1) // all classes but the highest
		default:
			in.kept |= 1 << tk.class
		}
		p.wakeAt(f.until) // requests behind it may be held back by this alone
		if f.soon != 0 {
			p.wakeAt(f.soon)
		}
		if f.presses {
			p.stockOf(in).breaker.Press(f.until) // the request is not judged again before
		}
	}
}

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
func (p *Pool) why(t int32) (v *verdict, reason store.Reason, least int64) {
	tk := p.tickets.At(t)
	v = view{Pool: p, whole: true}.judge(tk)
	code, on := store.CodeOrder, -1
	at, unknown := p.now, false
	full := int64(0) // when the limits have room, if only time passes
	ahead := p.queue.Ahead(tk.waiter, p.policed != 0)
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, ring := p.meterOf(c)
		before := order.Share(in.queued-c.Amount, ahead)
		if e := p.estimate(in, d, ring, before, c.Amount); e > at || on < 0 && tk.lacked&(1<<c.limit) != 0 {
			at, on = max(at, e), int(c.limit)
		}
		full = max(full, p.forecast(in, d, ring, before, c.Amount))
		if v.lacks&(1<<c.limit) != 0 {
			code = store.CodeLimit
			if on < 0 { // the time is unknown, but the limit is not
				on = int(c.limit)
			}
			unknown = unknown || depends(in, d, ring, p.now, c.Amount)
		}
	}
	for i := range v.kept {
		code, on, unknown = v.code, int(v.limit), false
		at = max(at, v.kept[i].until)
	}
	if ph := &v.pause; !ph.OK && (ph.Phase != pause.Ramping || ph.At >= at && !unknown) { // otherwise the ramp is over before the rest
		code, unknown = holdCode(ph.Phase), false
		at = max(at, ph.At)
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
	return v, reason, at
}
