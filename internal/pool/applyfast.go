package pool

import "github.com/sluicehq/sluice/store"

// ApplyFast does the same as Apply, and takes the fast path where possible.
func (p *Pool) ApplyFast(now store.Time, ops []store.Op) {
	for i := range ops {
		if !isFast(&ops[i]) {
			p.Apply(now, ops)
			return
		}
	}
	k := 0
	if len(ops) > 0 && p.BeginFast(now) {
		for n := 1; n > 0 && k < len(ops); k += n {
			n = p.fast(ops[k:])
		}
		p.EndFast()
	} else if len(ops) == 0 {
		p.begin(now, false)
	}
	if k < len(ops) || len(ops) == 0 {
		p.carryOut(ops[k:])
	}
}

// isFast reports whether the fast path supports an operation. Any other operation may begin a pause, and then the
// results of the whole step say so.
func isFast(op *store.Op) bool {
	switch op.Kind {
	case store.OpAcquire:
		return !op.Emergency && !op.Force && !op.Spent
	case store.OpAnswer:
		return op.Verdict == store.VerdictOK && len(op.Observed) == 0 && op.Rejected == 0
	case store.OpClose:
		return !op.Spent && len(op.Amounts) <= store.MaxAmounts
	}
	return false
}

// fast applies the first operation together with the operations after it that are alike. It returns how many it applied.
func (p *Pool) fast(ops []store.Op) int {
	n := 1
	for n < len(ops) && alike(&ops[0], &ops[n]) {
		n++
	}
	if ops[0].Kind == store.OpAcquire {
		return p.fastLot(ops[:n])
	}
	return p.fastEnds(ops[:n])
}

// alike reports whether two operations can be applied together.
func alike(a, b *store.Op) bool {
	if a.Kind != b.Kind || a.ID.Session != b.ID.Session {
		return false
	}
	if a.Kind == store.OpAcquire {
		return a.User == b.User && a.Model == b.Model && a.Tool == b.Tool && a.Key == b.Key && a.Class == b.Class && a.Tie == b.Tie &&
			a.Retry == b.Retry && a.Alive == b.Alive && a.TTL == b.TTL
	}
	return (len(a.Amounts) > 0) == (len(b.Amounts) > 0)
}

// fastLot grants acquires as one lot. It returns their number, or 0 if the fast path cannot grant them.
func (p *Pool) fastLot(ops []store.Op) int {
	op := &ops[0]
	l := &Lot{
		ID: op.ID, User: op.User, Model: op.Model, Tool: op.Tool, Key: op.Key, Class: op.Class, Tie: uint8(op.Tie), Retry: op.Retry,
		Alive: op.Alive.Microseconds(), TTL: op.TTL.Microseconds(), Width: len(p.spec.Limits),
	}
	for i := range ops {
		if !p.valid(&ops[i]) || ops[i].ID.N != 0 {
			return 0
		}
		l.Waits = append(l.Waits, waitOf(&ops[i]))
		l.Agents = append(l.Agents, ops[i].Agent)
		for limit := range l.Width {
			l.Amounts = append(l.Amounts, p.askedOf(ops[i].Amounts, limit))
		}
	}
	first := p.FastLot(l)
	if first == 0 {
		return 0
	}
	for i := range ops {
		op := &ops[i]
		op.ID.N = first + uint64(i)
		op.Result = store.Result{ID: op.ID, Now: store.Time(p.now), GrantedAt: store.Time(p.now), State: store.Granted}
	}
	return len(ops)
}

// fastEnds applies answers or closes, and returns how many the fast path has applied.
func (p *Pool) fastEnds(ops []store.Op) int {
	op := &ops[0]
	e := &Ends{Session: op.ID.Session, Answer: op.Kind == store.OpAnswer, Close: op.Kind == store.OpClose}
	if e.Close && len(op.Amounts) > 0 {
		e.Width = len(p.spec.Limits)
	}
	for i := range ops {
		e.Numbers = append(e.Numbers, ops[i].ID.N)
		for limit := range e.Width {
			n, known := p.usedOf(ops[i].Amounts, limit)
			if !known {
				n = -1
			}
			e.Amounts = append(e.Amounts, n)
		}
	}
	n := p.FastEnds(e)
	for i := range ops[:n] {
		op := &ops[i]
		op.Result = store.Result{ID: op.ID, Now: store.Time(p.now), State: store.Ended}
		if op.Kind == store.OpAnswer {
			op.Result.State = store.Granted
		}
	}
	return n
}

// waitOf returns how long an acquire may wait, in microseconds, or -1 if without bound.
func waitOf(op *store.Op) int64 {
	if op.Wait < 0 {
		return -1
	}
	return op.Wait.Microseconds()
}
