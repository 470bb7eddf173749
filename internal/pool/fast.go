package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// The fast path. Most requests meet a calm pool: nothing waits, no pause or ramp is in force, and the provider is there. Then acquire, an
// answer that says nothing but ok, and close come to little: the fast path does them with a fraction of the steps, and
// with the same outcome. All operations of a step have the same time, so what they charge is summed up by meter and
// entered once, at the end of the step.
//
// A fast function that cannot do all of an operation changes nothing that its long form would not change as well, and
// says so. Then that operation and the rest of the step go the long way.

// Ask is an acquire for the fast path, with times in microseconds.
type Ask struct {
	Kind                          int8
	ID                            store.ID
	Agent, User, Model, Tool, Key string
	Class                         uint8
	Tie                           uint8
	Retry                         bool
	Wait, Alive, TTL              int64
	Amounts                       [store.MaxLimits]int64
}

// Done is an answer that says nothing but ok, a close, or both in this order, of a ticket.
type Done struct {
	Kind          int8
	ID            store.ID
	Answer, Close bool
	Amounts       [store.MaxLimits]int64 // of the close, as in store.Op
}

// sums are what the operations of a step have done to a meter and what is still to be entered.
type sums struct {
	inst  int32
	left  int64 // room
	mark  int64 // of charges that are taken now
	mode  meter.Mode
	way   uint8
	keeps uint8 // whether something may be kept of it
	late  bool  // as meter.Def.Late
	unit  int8  // of the history in which it is counted; -1: none
	refs  int32 // tickets that have come to stand on it
	takes int64 // taken
	gone  int64 // no longer held
	adds  int64 // have arrived
	backs int64 // of what has arrived in this step, not used

	// Of a meter that is paced: as policy.Pace, and what that needs.
	next, size, window int64
}

// The ways in which a meter is charged.
const (
	longWay   = iota // its long form is called each time
	heldWay          // charges are held until they are bound
	offWay           // charges count at once
	aheadWay         // charges are placed ahead
	placesWay        // places are held until they are released
)

// What a meter may keep from requests.
const (
	keepsNothing = iota
	keepsPace    // lower classes are paced
	keepsFloors  // anything: the long form says what
)

// BeginFast begins a step, and reports whether the fast path may be taken in it.
func (p *Pool) BeginFast(now store.Time) bool {
	p.begin(now, true)
	if p.queue.Len() > 0 || p.firstGate != 0 || p.failures > 0 {
		return false
	}
	p.steps++
	if p.now >= p.history.second+second {
		p.history.second = p.now - p.now%second
		p.history.minute = uint32(p.now / minute)
	}
	return true
}

// EndFast enters what the step has charged.
func (p *Pool) EndFast() {
	for k := range p.sums {
		p.enterSums(&p.sums[k])
	}
	p.sums = p.sums[:0]
	p.wake, p.stirred = 0, false
}

// sumsOf returns the sums of a meter in this step.
func (p *Pool) sumsOf(i int32, in *inst) *sums {
	if in.step == p.steps {
		return &p.sums[in.sum]
	}
	d, r := p.defOf(in), p.ring(in)
	in.Advance(d, r, p.now)
	in.step, in.sum = p.steps, int32(len(p.sums))
	p.sums = append(p.sums, sums{
		inst: i, left: in.Room(d, r), mark: p.now, mode: meter.Held, way: heldWay, late: d.Late, unit: p.history.unitOf[in.limit],
	})
	s := &p.sums[in.sum]
	switch {
	case d.Kind == meter.Concurrency:
		s.way = placesWay
	case d.Kind == meter.Bucket && in.Since > p.now: // what was charged before is not given back in full
		s.way, s.left = longWay, -1
	case d.Guard == meter.Off && !d.Late:
		s.way, s.mode = offWay, meter.Bound
	case d.Guard == meter.Auto && !d.Late && p.header.slowerThan(d, r):
		s.way, s.mode, s.mark = aheadWay, meter.Placed, p.now+meter.SlackOf(d, r)
	}
	if p.policed&(1<<in.limit) != 0 {
		s.keeps = keepsFloors
		if d.Kind == meter.Rolling && !p.spec.Light.All {
			s.keeps = keepsNothing
			if in.Cap > 0 && p.spec.Pace {
				s.keeps, s.next, s.size, s.window = keepsPace, p.paces.At(in.extra).Next, in.Cap, d.Window
			}
		}
	}
	return s
}

// enterSums does to a meter what its sums say.
func (p *Pool) enterSums(s *sums) {
	in := p.insts.At(s.inst)
	d, r := p.defOf(in), p.ring(in)
	if p.spec.Limits[in.limit].Per != 0 {
		in.refs += s.refs
	}
	s.refs = 0
	if s.keeps == keepsPace {
		p.paces.At(in.extra).Next = s.next
	}
	if s.takes != 0 {
		in.seen = p.age()
		in.TakeAll(d, r, p.now, s.mark, s.takes, s.mode)
		s.takes = 0
	}
	if s.gone != 0 || s.adds != 0 || s.backs != 0 {
		in.SettleAll(d, r, p.now, s.gone, s.adds, s.backs)
		s.gone, s.adds, s.backs = 0, 0, 0
	}
}

// choose finds the sums of the meters that a request takes from, as far as those are there.
func (p *Pool) choose(agent, user, model, tool, key int32) {
	p.chosenAt, p.chosenFor = p.steps, names{agent, user, model, tool, key}
	for limit := range p.spec.Limits {
		i := p.single[limit]
		if per := p.spec.Limits[limit].Per; per != 0 {
			i = p.findInst(limit, scoped(&p.chosenFor, per))
		}
		p.chosen[limit] = -1
		if i != 0 {
			in := p.insts.At(i)
			p.sumsOf(i, in)
			p.chosen[limit] = in.sum
		}
	}
}

// FastAcquire grants a request and returns the number of its ticket, or 0.
func (p *Pool) FastAcquire(a *Ask) uint64 {
	if int(a.Class) >= len(p.spec.Classes) || a.TTL <= 0 {
		return 0
	}
	agent, user, model, tool, key := p.names.Find(a.Agent), int32(0), int32(0), int32(0), int32(0)
	if agent == 0 {
		return 0
	}
	if a.Model != "" {
		if model = p.names.Find(a.Model); model == 0 {
			return 0
		}
	}
	if a.User != "" || a.Tool != "" || a.Key != "" {
		user, tool, key = p.names.Find(a.User), p.names.Find(a.Tool), p.names.Find(a.Key)
		if user == 0 && a.User != "" || tool == 0 && a.Tool != "" || key == 0 && a.Key != "" {
			return 0
		}
	}
	caller := p.names.Tags(agent)[callerTag]
	if caller == 0 {
		return 0
	}
	if w := &p.chosenFor; p.chosenAt != p.steps || w.model != model || w.key != key ||
		p.ownScopes != 0 && (w.agent != agent || w.user != user || w.tool != tool) {
		p.choose(agent, user, model, tool, key)
	}
	for limit := range p.spec.Limits {
		if amount := a.Amounts[limit]; amount != 0 {
			k := p.chosen[limit]
			if k < 0 || amount < 0 {
				return 0
			}
			s := &p.sums[k]
			if amount > s.left || s.keeps == keepsPace && a.Class > 0 && s.next > p.now && p.paced(s, amount) ||
				s.keeps == keepsFloors && p.keepsFrom(s, amount, a.Class) {
				return 0
			}
		}
	}
	from := p.sessionOf(a.ID.Session)
	n := a.ID.N
	if n == 0 {
		n = max(from.high, p.forgotten) + 1
	} else if n <= from.high {
		return 0
	}
	from.high = n
	from.open++
	if a.Tie == uint8(store.TieGone) {
		from.watched++
	}
	rec := p.callers.recs.At(caller)
	rec.class, rec.asked = a.Class, p.age()
	if p.lease > 0 && p.aliveTill[a.Class] < p.now+p.lease {
		p.aliveTill[a.Class] = p.now + p.lease
	}
	t := p.tickets.New()
	tk := p.tickets.At(t)
	tk.id.Session, tk.id.N, tk.since, tk.granted, tk.deadline = a.ID.Session, n, p.now, p.now, meter.Never
	if a.Wait >= 0 {
		tk.deadline = p.now + a.Wait
	}
	tk.class, tk.tie, tk.ttl, tk.alive, tk.caller, tk.session, tk.state = a.Class, a.Tie, a.TTL, a.Alive, caller, p.lastSess, stateHeld
	if a.Retry {
		tk.retry = true
	}
	tk.who.agent = p.names.Keep(agent)
	if model != 0 {
		tk.who.model = p.names.Keep(model)
	}
	if user|tool|key != 0 {
		tk.who.user, tk.who.tool, tk.who.key = p.names.Keep(user), p.names.Keep(tool), p.names.Keep(key)
	}
	tk.ends = p.now + a.TTL
	tk.due = tk.ends
	if a.Tie == uint8(store.TieBeat) {
		tk.due = min(tk.due, p.now+sessionLife)
	}
	p.wheel.add(p, t, tk)
	p.enter(t, tk.id)
	pd := p.sentFast(tk, rec, model)
	k := uint8(0)
	for limit := range p.spec.Limits {
		if amount := a.Amounts[limit]; amount != 0 {
			s := &p.sums[p.chosen[limit]]
			c := &tk.charges[k]
			c.Amount, c.Mark, c.Mode, c.inst, c.limit = amount, s.mark, s.mode, s.inst, uint8(limit)
			s.left -= amount
			s.takes += amount
			s.refs++
			if s.keeps == keepsPace && a.Class > 0 {
				s.next = min(max(s.next, p.now)+policy.Gap(amount, s.size, s.window), p.now+s.window)
			} else if s.keeps == keepsFloors {
				in := p.insts.At(s.inst)
				p.took(tk, c, in, p.defOf(in))
			}
			if s.unit >= 0 {
				pd.units[s.unit] += amount
			}
			k++
		}
	}
	tk.n = k
	p.inFlight++
	return n
}

// paced reports whether a request of a lower class has to wait because its class is spread out, as policy.Pace.Allow.
func (p *Pool) paced(s *sums, amount int64) bool {
	return p.alive(0) && (p.rival != 0 || s.next-policy.Gap(max(max(s.size/20, 1)-amount, 0), s.size, s.window) > p.now)
}

// keepsFrom reports whether something may be kept from a request of a class. The long way says whether it is.
func (p *Pool) keepsFrom(s *sums, amount int64, class uint8) bool {
	in := p.insts.At(s.inst)
	if in.Cap == 0 {
		return false
	}
	d := p.defOf(in)
	if in.IsStock(d) {
		size := in.Open(d, p.ring(in))
		return size-(s.left-amount) > policy.Part(size, p.safe[class]) || !p.stockOf(in).breaker.Idle()
	}
	if d.Kind == meter.Rolling && class > 0 && p.spec.Pace && p.alive(0) &&
		(p.rival != 0 || p.paces.At(in.extra).Allow(p.now, amount, in.Cap, d.Window) > p.now) {
		return true
	}
	return p.spec.Light.Green > 0 && p.binds(in, d) && s.left-amount < policy.Part(in.Open(d, p.ring(in)), p.threshold(class))
}

// sentFast is sent for a request that did not wait. It returns the period in which the request is counted; what the
// request takes is not counted yet.
func (p *Pool) sentFast(tk *ticket, rec *caller, model int32) *period {
	h, all := &p.history, &p.callers.total
	rec.count(p.now, h.second, 0, tk.retry)
	all.count(p.now, h.second, 0, tk.retry)
	tk.note = p.periodOf(rec, model, h.minute)
	pd := h.periods.At(tk.note)
	pd.sent++
	if pd.peak < rec.inSecond {
		pd.peak = rec.inSecond
	}
	if pd.peakAll < all.inSecond {
		pd.peakAll = all.inSecond
	}
	if tk.retry {
		pd.retried++
	}
	return pd
}

// FastDone answers or closes a ticket, or both, and reports whether it did.
func (p *Pool) FastDone(o *Done) bool {
	t, tk := p.find(o.ID)
	if t == 0 || tk.state != stateHeld || tk.lost || tk.counted || tk.once {
		return false
	}
	if o.Close && (p.anyStrict && !tk.answered && !o.Answer || int(tk.n) < len(p.spec.Limits) && p.unstated(tk, o)) {
		return false
	}
	answers := o.Answer && !tk.answered
	if answers {
		tk.answered = true
		p.header.add(p.now - tk.granted)
	}
	if !o.Close {
		if answers {
			for k := range tk.n {
				c := &tk.charges[k]
				in := p.insts.At(c.inst)
				if s := p.sumsOf(c.inst, in); !s.late {
					p.bindFast(in, s, c)
				}
			}
		}
		return true
	}
	known := false
	for limit := range p.spec.Limits {
		if o.Amounts[limit] != 0 {
			known = true
			break
		}
	}
	var pd *period
	if known {
		pd = p.noted(tk)
	}
	for k := range tk.n {
		c := &tk.charges[k]
		in := p.insts.At(c.inst)
		s := p.sumsOf(c.inst, in)
		s.refs--
		actual := c.Amount
		if known && o.Amounts[c.limit] >= 0 && o.Amounts[c.limit] <= store.MaxAmount {
			actual = o.Amounts[c.limit]
		}
		if s.way == heldWay && c.Mode == meter.Held && actual <= c.Amount {
			less := c.Amount - actual
			s.gone += c.Amount
			s.left += less
			if tk.answered && !s.late { // it was bound first, and what was not used given back
				s.adds += c.Amount
				s.backs += less
			} else {
				s.adds += actual
			}
			if less != 0 {
				if s.unit >= 0 && pd != nil {
					pd.units[s.unit] = max(pd.units[s.unit]-less, 0)
				}
				if s.keeps == keepsPace && tk.class > 0 {
					s.next -= policy.Gap(less, s.size, s.window)
				} else if s.keeps == keepsFloors {
					p.tookLess(tk, c, in, less)
				}
			}
		} else {
			p.closeFast(tk, in, s, c, actual, pd)
		}
	}
	p.endFast(t, tk)
	return true
}

// unstated reports whether a close states use of a limit of which its request asked for nothing.
func (p *Pool) unstated(tk *ticket, o *Done) bool {
	n := 0
	for limit := range p.spec.Limits {
		if o.Amounts[limit] > 0 {
			n++
		}
	}
	for k := range tk.n {
		if o.Amounts[tk.charges[k].limit] > 0 {
			n--
		}
	}
	return n > 0
}

// bindFast says of a charge that its request had arrived by now.
func (p *Pool) bindFast(in *inst, s *sums, c *charge) {
	switch {
	case c.Mode == meter.Held && s.way == heldWay:
		s.gone += c.Amount
		s.adds += c.Amount
		c.Mode, c.Mark = meter.Bound, p.now
	case c.Mode != meter.Bound && s.way != placesWay:
		p.enterSums(s)
		d, r := p.defOf(in), p.ring(in)
		in.Bind(d, r, p.now, &c.Charge)
		s.leaves(in.Room(d, r))
	}
}

// leaves takes in that a meter has room.
func (s *sums) leaves(room int64) {
	if s.way != longWay {
		s.left = room
	}
}

// closeFast settles a charge to what was used, and ends it.
func (p *Pool) closeFast(tk *ticket, in *inst, s *sums, c *charge, actual int64, pd *period) {
	if s.way == placesWay {
		if c.Mode == meter.Held {
			s.gone += c.Amount
			s.left += c.Amount
		}
		return
	}
	if c.Mode == meter.Bound && actual == c.Amount {
		return
	}
	p.enterSums(s)
	d, r := p.defOf(in), p.ring(in)
	if in.Cap > 0 {
		actual = min(actual, mostUsed*in.Cap)
	}
	more := actual - c.Amount
	if tk.answered && !s.late {
		in.Bind(d, r, p.now, &c.Charge)
	}
	in.Settle(d, r, p.now, &c.Charge, actual)
	in.Bind(d, r, p.now, &c.Charge)
	s.leaves(in.Room(d, r))
	if more == 0 {
		return
	}
	if s.unit >= 0 && pd != nil {
		pd.units[s.unit] = max(pd.units[s.unit]+more, 0)
	}
	if s.keeps != keepsNothing {
		p.tookLess(tk, c, in, -more)
		if s.keeps == keepsPace {
			s.next = p.paces.At(in.extra).Next
		}
	}
}

// endFast forgets a ticket. Its meters have been seen to, and it has never waited.
func (p *Pool) endFast(t int32, tk *ticket) {
	p.wheel.remove(p, tk)
	p.names.Drop(tk.who.agent)
	if tk.who.model != 0 {
		p.names.Drop(tk.who.model)
		tk.who.model = 0
	}
	if tk.who.user|tk.who.tool|tk.who.key != 0 {
		p.names.Drop(tk.who.user)
		p.names.Drop(tk.who.tool)
		p.names.Drop(tk.who.key)
		tk.who.user, tk.who.tool, tk.who.key = 0, 0, 0
	}
	p.strikeOut(t, tk.id)
	s := p.sessions.At(tk.session)
	s.open--
	if tk.tie == uint8(store.TieGone) {
		s.watched--
	}
	s.last = p.now
	p.inFlight--
	tk.state, tk.n, tk.granted, tk.ends, tk.note = 0, 0, 0, 0, 0
	tk.answered, tk.retry, tk.emergent = false, false, false
	p.tickets.Recycle(t)
}

// ApplyFast is Apply by the fast path, as far as that goes.
func (p *Pool) ApplyFast(now store.Time, ops []store.Op) {
	if len(ops) == 0 {
		p.Apply(now, ops)
		return
	}
	for i := range ops {
		if !isFast(&ops[i]) {
			p.Apply(now, ops)
			return
		}
	}
	k := 0
	if p.BeginFast(now) {
		for k < len(ops) && p.fast(&ops[k]) {
			k++
		}
		p.EndFast()
	}
	if k < len(ops) {
		p.carryOut(ops[k:])
	}
}

// isFast reports whether an operation is one that the fast path knows. Others may begin a pause, of which the whole
// step is told.
func isFast(op *store.Op) bool {
	switch op.Kind {
	case store.OpAcquire:
		return !op.Emergency && !op.Force && !op.Spent
	case store.OpAnswer:
		return op.Verdict == store.VerdictOK && len(op.Observed) == 0
	case store.OpClose:
		return !op.Spent
	}
	return false
}

func (p *Pool) fast(op *store.Op) bool {
	switch op.Kind {
	case store.OpAcquire:
		if !p.valid(op) {
			return false
		}
		n := p.FastAcquire(&Ask{
			ID: op.ID, Agent: op.Agent, User: op.User, Model: op.Model, Tool: op.Tool, Key: op.Key, Class: op.Class, Tie: uint8(op.Tie), Retry: op.Retry,
			Wait: waitOf(op), Alive: op.Alive.Microseconds(), TTL: op.TTL.Microseconds(), Amounts: op.Amounts,
		})
		if n == 0 {
			return false
		}
		op.ID.N = n
		op.Result = store.Result{ID: op.ID, Now: store.Time(p.now), GrantedAt: store.Time(p.now), State: store.Granted, Reason: store.Reason{Limit: -1}}
	default:
		if !p.FastDone(&Done{ID: op.ID, Answer: op.Kind == store.OpAnswer, Close: op.Kind == store.OpClose, Amounts: op.Amounts}) {
			return false
		}
		op.Result = store.Result{ID: op.ID, Now: store.Time(p.now), State: store.Ended, Reason: store.Reason{Limit: -1}}
		if op.Kind == store.OpAnswer {
			op.Result.State = store.Granted
		}
	}
	return true
}

// waitOf is how long an acquire waits, in microseconds; -1: as long as it takes.
func waitOf(op *store.Op) int64 {
	if op.Wait < 0 {
		return -1
	}
	return op.Wait.Microseconds()
}
