package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// observe records a response that has no ticket. It describes the provider's state as of now.
func (p *Pool) observe(op *store.Op) {
	s := p.sessionOf(op.ID.Session)
	if op.ID.N == 0 {
		s.high++
	} else if op.ID.N <= s.high {
		op.Result.State = store.Ended
		return
	} else {
		s.high = op.ID.N
	}
	p.withNames(op, func(who names) {
		p.served(op, who.key)
		p.countAnswer(who.model, op)
		p.learn(op, who, p.now, nil)
		if !op.Force {
			p.pausesAnswered(op, who, p.since(op.Scope, who), 0)
			if op.Verdict == store.VerdictThrottled {
				p.unbrief(&who)
			}
		}
		if op.Verdict == store.VerdictThrottled || op.Verdict == store.VerdictExhausted {
			p.callers.total.throttled++
			p.last429 = p.now
			p.history.refused(p.now)
		}
	})
	op.Result.State = store.Ended
}

// since returns the latest time at which the request of a response without a ticket can have been granted. While a pause
// lasts, that is its beginning. So several reports of the same refusal escalate the pause only once.
func (p *Pool) since(scope store.Scope, who names) int64 {
	scope, model, key := gateScope(scope, who.model, who.key)
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if g.scope == scope && g.model == model && g.key == key && g.Allow(p.now).Phase == pause.Paused {
			return g.Since
		}
	}
	return p.now
}

// learn updates meters with what a response states about limits. The provider made the response between made and now. tk
// is its ticket, or nil.
func (p *Pool) learn(op *store.Op, who names, made int64, tk *ticket) {
	for i := range op.Observed {
		o := &op.Observed[i]
		limit := p.Index(o.Limit)
		if limit < 0 {
			continue
		}
		l := &p.spec.Limits[limit]
		if l.Per&^store.Shared != 0 {
			continue // the provider does not know agents, users and tools
		}
		at := p.instOf(limit, &who)
		if at == p.crowd[limit] && at != 0 {
			p.learnCrowd(limit, o, made)
			continue
		}
		in, d, r := p.touch(at)
		p.learnSize(at, in, d, l, o.Size)
		p.fit(in, o, made, tk)
		p.comesBack(in, o, made, tk)
		d = p.defOf(in)
		current := made >= in.Hi-d.Window // otherwise the response may describe the window before
		if o.ResetIn >= 0 && l.Kind == store.Fixed {
			slop := int64(defaultSlop)
			if o.Slop > 0 {
				slop = o.Slop.Microseconds()
			}
			lo, hi := made+o.ResetIn.Microseconds()-slop, p.now+o.ResetIn.Microseconds()+slop
			current = in.ObserveReset(d, r, p.now, lo, hi)
		}
		whole := o.Size
		if d.Kind == meter.Bucket {
			whole = in.Cap
		}
		if o.Size > 0 && o.Size <= store.MaxAmount && o.Remaining >= 0 && o.Remaining <= whole && (current || !in.IsStock(d)) {
			if l.Plan && in.Believe(d, whole-o.Remaining) {
				p.sample(in, d, r, o.Remaining, tk.cost(limit))
				continue
			}
			rough := l.Estimated || p.explained(in, made, whole-o.Remaining)
			d = p.defOf(in)
			in.ObserveUsed(d, r, p.now, made, whole-o.Remaining, rough)
			if tk != nil {
				p.contradicts(in, o, whole)
				p.follow(in, o, made, tk)
			}
			p.sample(in, d, r, o.Remaining, tk.cost(limit))
		}
	}
}

// sample passes the remaining amount of a stock to its breaker. own is the cost of the request itself. The provider may
// or may not have counted it yet, and the same is true of held charges.
func (p *Pool) sample(in *inst, d *meter.Def, r *meter.Ring, remaining, own int64) {
	if !in.IsStock(d) || p.spec.Breaker.Samples == 0 {
		return
	}
	st := p.stockOf(in)
	st.breaker.Sample(p.rule(), p.now, remaining, in.Held+own)
	st.breaker.Judge(p.rule(), p.now, in.Hi, max(in.Room(d, r), 0))
}

// cost returns the amount that a ticket takes from a limit. A nil ticket takes 0.
func (tk *ticket) cost(limit int) int64 {
	if tk != nil {
		for k := range tk.n {
			if c := &tk.charges[k]; int(c.limit) == limit {
				return c.Amount
			}
		}
	}
	return 0
}

// defaultSlop is how far a stated reset may be off, in microseconds: headers are rounded to seconds.
const defaultSlop = 1_200_000

// learnSize applies a size that the provider states. A configured size caps it.
func (p *Pool) learnSize(i int32, in *inst, d *meter.Def, l *store.Limit, size int64) {
	if size <= 0 || size > store.MaxAmount {
		return
	}
	burst := l.Burst
	if l.Size > 0 && !l.SizeIsDefault {
		if size < l.Size {
			burst = min(burst, size) // otherwise the small remaining amount would look like heavy use
		}
		size = min(size, l.Size)
	} else if burst == 0 || burst > size {
		burst = size
	}
	before := in.Cap
	if err := in.Resize(d, size, burst); err == nil {
		in.stated, in.seen = true, p.age()
		p.limitKnown(in)
		if in.Cap > before {
			p.lose(i) // the added capacity may be spent too
		}
	}
}

// unbrief handles a refusal without a ticket, which may belong to a spent one. Further spent requests count with the
// whole slack, see [meter.Meter.Brief]. The slack does not grow, because the request may not be ours.
func (p *Pool) unbrief(who *names) {
	for i := range p.spec.Limits {
		if p.shared&(1<<i) == 0 {
			continue
		}
		at := p.unscoped[i].inst
		if per := p.spec.Limits[i].Per; per != 0 {
			if at = p.findInst(i, scoped(who, per)); at == 0 {
				at = p.crowd[i]
			}
		}
		if at != 0 {
			in := p.insts.At(at)
			p.ring(in).Unbrief(p.defOf(in))
		}
	}
}

// unexplained handles a refusal that came although the ledger had room. It widens the guard of the shared limits that
// the request used and that nothing else explains.
func (p *Pool) unexplained(tk *ticket, scope store.Scope) {
	for k := range tk.n {
		c := &tk.charges[k]
		in := p.insts.At(c.inst)
		r := p.ring(in)
		switch {
		case p.shared&(1<<c.limit) == 0 || r == nil || in.Cap == 0:
		case in.Outside > 0 || in.Room(p.defOf(in), r) < 0: // outside use or an overrun explains it
		case scope&^p.spec.Limits[c.limit].Per != 0: // the refusal has a narrower scope
		case p.unfollow(in):
		case p.mayBeWindow(in, in.Cap+c.Amount): // the refused request does not count
			r.Unbrief(p.defOf(in))                    // a spent request may have taken longer to arrive
			p.turn(in, p.defOf(in).Window, 0, in.Cap) // a provider that counts a window refuses like this
		default:
			r.Odd(p.defOf(in), p.now)
		}
	}
}
