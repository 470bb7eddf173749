package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// observe takes in an answer that no ticket belongs to: it tells of the provider as it
// is now.
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
	p.served(op)
	p.withNames(op, func(who names) {
		p.learn(op, who, p.now, nil)
		if !op.Force {
			p.judge(op, who, p.since(op.Scope, who), 0)
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

// since returns when a request was granted at the latest whose answer is told without a ticket: while
// a pause lasts, before it began. So many who tell of the same refusal escalate it once.
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

// learn takes in what an answer states of limits. It was made between made and now, for tk if
// that is not nil.
func (p *Pool) learn(op *store.Op, who names, made int64, tk *ticket) {
	for i := range op.Observed {
		o := &op.Observed[i]
		if o.Limit < 0 || o.Limit >= len(p.spec.Limits) {
			continue
		}
		l := &p.spec.Limits[o.Limit]
		if l.Per&^store.Shared != 0 {
			continue // of our own: the provider knows nothing of it
		}
		at := p.instOf(o.Limit, &who)
		if at == p.crowd[o.Limit] && at != 0 {
			p.learnCrowd(o, made)
			continue
		}
		in, d, r := p.touch(at)
		p.learnSize(at, in, d, l, o.Size)
		p.fit(in, o, made, tk)
		p.comesBack(in, o)
		d = p.defOf(in)
		current := made >= in.Hi-d.Window // else it may tell of the window before
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
				p.sample(in, d, r, o.Remaining, tk.cost(o.Limit))
				continue
			}
			rough := l.Estimated || p.explained(in, made, whole-o.Remaining)
			d = p.defOf(in)
			in.ObserveUsed(d, r, p.now, made, whole-o.Remaining, rough)
			p.sample(in, d, r, o.Remaining, tk.cost(o.Limit))
		}
	}
}

// sample shows the breaker of a stock what remains. Of what is held, and of the answer's own
// cost, the provider may have counted some and not others.
func (p *Pool) sample(in *inst, d *meter.Def, r *meter.Ring, remaining, own int64) {
	if !in.IsStock(d) || p.spec.Breaker.Samples == 0 {
		return
	}
	st := p.stockOf(in)
	st.breaker.Sample(p.rule(), p.now, remaining, in.Held+own)
	p.judgeStock(st, in, in.Room(d, r))
}

// cost is what a ticket takes of a limit.
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

// defaultSlop is how far a stated reset may be off: headers are rounded to seconds.
const defaultSlop = 1_200_000

// learnSize takes on a size that the provider states. A configured one caps it.
func (p *Pool) learnSize(i int32, in *inst, d *meter.Def, l *store.Limit, size int64) {
	if size <= 0 || size > store.MaxAmount {
		return
	}
	burst := l.Burst
	if l.Size > 0 && !l.SizeIsDefault {
		if size < l.Size {
			burst = min(burst, size) // or what remains of so little would look like much that is used
		}
		size = min(size, l.Size)
	} else if burst == 0 || burst > size {
		burst = size
	}
	before := in.Cap
	if err := in.Resize(d, size, burst); err == nil {
		in.stated, in.seen = true, p.age()
		p.limitsKnown()
		if in.Cap > before {
			p.lose(i) // of what is new nothing was filled
		}
	}
}

// unbrief takes in a refusal that is told without a ticket: it may be of a spent one. What
// follows has the whole slack to arrive. The slack does not grow: the request may be somebody else's.
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

// unexplained notes a refusal that came although the ledger said there was room: the
// guard of every limit of the provider's that the request touched gets wider.
func (p *Pool) unexplained(tk *ticket, scope store.Scope) {
	for k := range tk.n {
		c := &tk.charges[k]
		in := p.insts.At(c.inst)
		r := p.ring(in)
		switch {
		case p.shared&(1<<c.limit) == 0 || r == nil || in.Cap == 0:
		case in.Outside > 0 || in.Room(p.defOf(in), r) < 0: // that explains it
		case scope&^p.spec.Limits[c.limit].Per != 0: // not what was refused
		case p.mayBeWindow(in, in.Cap+c.Amount): // without the request that was refused
			r.Unbrief(p.defOf(in))                    // or it was a spent one that took longer
			p.turn(in, p.defOf(in).Window, 0, in.Cap) // a provider that counts a window refuses like this
		default:
			r.Odd(p.defOf(in), p.now)
		}
	}
}
