package pool

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// stateCheck checks the records of a state, and completes the pool with what a state leaves out. It proves what the
// functions that decide rely on: every number of a record leads to one, lists end, sums are right, and no number is out
// of the range in which arithmetic works.
type stateCheck struct {
	p *Pool

	tickets, insts, rings, stocks, paces, models, leases, members, gates, sessions, answers, callers, periods flat.Live

	bad bool
}

// must notes what does not hold.
func (c *stateCheck) must(ok bool) { c.bad = c.bad || !ok }

// name counts a reference to a name; 0 is none.
func (c *stateCheck) name(list ...int32) {
	for _, i := range list {
		if i != 0 {
			if !c.p.names.Has(i) {
				c.bad = true
				continue
			}
			c.p.names.Keep(i)
		}
	}
}

// within reports whether n is one of the times and amounts that the arithmetic can take.
func within(list ...int64) bool {
	for _, n := range list {
		if n < -meter.Never || n > meter.Never {
			return false
		}
	}
	return true
}

// pool checks everything.
func (c *stateCheck) pool() error {
	p := c.p
	c.tickets, c.insts, c.rings, c.stocks, c.paces, c.models = p.tickets.Live(), p.insts.Live(), p.rings.Live(), p.stocks.Live(), p.paces.Live(), p.models.Live()
	c.leases, c.members, c.gates, c.sessions = p.leases.Live(), p.members.Live(), p.gates.Live(), p.sessions.Live()
	c.answers, c.callers, c.periods = p.answers.Live(), p.callers.recs.Live(), p.history.periods.Live()
	if err := c.spec(); err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		check func()
	}{
		{"the single record", c.once},
		{"meters", c.eachInst},
		{"sessions", c.eachSession},
		{"callers", c.eachCaller},
		{"the history", c.eachPeriod},
		{"tickets", c.eachTicket},
		{"the timer", c.wheel},
		{"leases", c.eachLease},
		{"members", c.eachMember},
		{"pauses", c.eachGate},
		{"answers", c.eachAnswers},
		{"the queue", c.queue},
	} {
		if part.check(); c.bad {
			return fmt.Errorf("%s: wrong", part.name)
		}
	}
	if p.names.Unheld() {
		return errors.New("names: wrong")
	}
	return nil
}

// spec checks the spec and derives from it what the pool keeps beside.
func (c *stateCheck) spec() error {
	p := c.p
	if p.retired&^(1<<len(p.spec.Limits)-1) != 0 || p.spec.Restate {
		return errors.New("limits: wrong")
	}
	inForce := p.Stated()
	if err := checkSpec(&inForce); err != nil {
		return err
	}
	for i := range p.spec.Limits {
		if err := checkLimit(&p.spec.Limits[i]); err != nil {
			return err
		}
	}
	if err := checkMeters(&p.spec); err != nil {
		return err
	}
	for i := range p.single {
		l := i < len(p.spec.Limits) && p.spec.Limits[i].Per == 0
		if at := p.single[i]; l != (at != 0) || at != 0 && (!c.insts.Has(at) || int(p.insts.At(at).limit) != i) {
			return errors.New("meters: wrong")
		}
		p.defs[i].Part = p.parts[i]
		if p.parts[i] < 0 || p.parts[i] > meter.Parts || i >= len(p.spec.Limits) && p.parts[i] != 0 {
			return errors.New("withheld parts: wrong")
		}
	}
	for i, live := range c.insts {
		if in := p.insts.At(int32(i)); live && (in.ring != 0 && !c.rings.Has(in.ring) || int(in.limit) >= len(p.spec.Limits)) {
			return errors.New("meters: wrong")
		}
	}
	if err := p.adopt(p.spec); err != nil {
		return err
	}
	p.takeParts()
	return nil
}

func (c *stateCheck) once() {
	p, o := c.p, c.p.once
	c.must(within(o.wake, o.contact, o.awake, o.last429, o.lostAt, o.nextHush, o.nextFree, o.promised, o.hushed, o.failing, o.failed, o.partsRev, o.inFlight) &&
		within(o.aliveTill[:]...) && within(o.scatter.Start, o.scatter.Until) && within(o.crowdSize[:]...))
	c.must(o.scatter.K >= 0 && o.scatter.K < 1<<15 && o.failures >= 0 && o.failures <= maxFailures)
	h := &o.header
	c.must(h.n >= h.seen && h.seen >= 0 && within(h.n, h.median) && within(h.samples[:]...))
	for _, hand := range []struct{ at, end int32 }{
		{o.sweep, p.insts.End()}, {o.sweepDead, p.leases.End()}, {o.sweepSess, p.sessions.End()}, {p.callers.hand, p.callers.recs.End()},
	} {
		c.must(hand.at >= 0 && hand.at <= max(hand.end, 1))
	}
	c.must(o.rival >= 0 && o.rival < max(p.tickets.End(), 1))
	c.must(o.lastSess == 0 || c.sessions.Has(o.lastSess))
	c.must(o.answered == 0 || c.answers.Has(o.answered))
	if c.name(o.other); !c.bad {
		c.must(p.names.Text(o.other) == otherName)
	}
	c.name(o.by[:]...)
	c.name(o.failure, o.unpaidKey)
}

// eachInst checks the meters, and that each has records of its own.
func (c *stateCheck) eachInst() {
	p := c.p
	rings, stocks, paces, models := make([]bool, len(c.rings)), make([]bool, len(c.stocks)), make([]bool, len(c.paces)), make([]bool, len(c.models))
	take := func(live flat.Live, taken []bool, i int32) {
		if !live.Has(i) || taken[i] {
			c.bad = true
			return
		}
		taken[i] = true
	}
	var count [store.MaxLimits]int32
	alone := 0
	preceded := make([]bool, len(c.insts))
	for i, live := range c.insts {
		if !live {
			continue
		}
		in := p.insts.At(int32(i))
		per := p.spec.Limits[in.limit].Per
		c.must(in.used && in.refs >= 0)
		c.must(in.scope == scopeOf(&in.scope, per))
		c.name(in.scope.agent, in.scope.user, in.scope.model, in.scope.tool, in.scope.key)
		if per != 0 {
			count[in.limit]++
		} else {
			c.must(p.single[in.limit] == int32(i))
		}
		if d := &p.defs[in.limit]; d.NeedsRing() {
			take(c.rings, rings, in.ring)
		} else {
			c.must(in.ring == 0)
		}
		if in.model != 0 {
			take(c.models, models, in.model)
		}
		if c.bad {
			return
		}
		c.model(in)
		switch kind := p.defOf(in).Kind; {
		case p.shared&(1<<in.limit) == 0:
			c.must(in.extra == 0)
		case kind == meter.Fixed:
			take(c.stocks, stocks, in.extra)
		case kind == meter.Rolling:
			take(c.paces, paces, in.extra)
		default:
			c.must(in.extra == 0)
		}
		if c.bad {
			return
		}
		c.meter(in)
		if in.next != 0 {
			c.must(c.insts.Has(in.next) && !preceded[in.next])
			if c.bad {
				return
			}
			preceded[in.next] = true
		}
		if in.scope.sole(per) != 0 {
			alone++
			continue
		}
		c.must(in.next == 0)
		if per != 0 {
			c.must(p.findInst(int(in.limit), in.scope) == 0)
			p.instIx.Add(scopeHash(int(in.limit), in.scope), int32(i))
		}
	}
	for i := range c.insts { // the lists of meters that are scoped to one name
		if !c.insts[i] || preceded[i] {
			continue
		}
		in := p.insts.At(int32(i))
		name := in.scope.sole(p.spec.Limits[in.limit].Per)
		if name == 0 {
			continue
		}
		tag := &p.names.Tags(name)[ownTag]
		c.must(*tag == 0)
		*tag = int32(i)
		var limits uint16
		for k := int32(i); k != 0 && !c.bad; k = p.insts.At(k).next {
			in := p.insts.At(k)
			c.must(in.scope.sole(p.spec.Limits[in.limit].Per) == name && limits&(1<<in.limit) == 0)
			limits |= 1 << in.limit
			alone--
		}
	}
	c.must(alone == 0 && count == p.scoped)
	c.must(all(rings, c.rings) && all(stocks, c.stocks) && all(paces, c.paces) && all(models, c.models))
	for limit, at := range p.crowd {
		if at != 0 {
			c.must(c.insts.Has(at) && int(p.insts.At(at).limit) == limit && p.spec.Limits[limit].Per != 0)
		}
	}
}

// scopeOf is scoped for a limit that may have no scope.
func scopeOf(who *names, per store.Scope) names {
	if per == 0 {
		return names{}
	}
	return scoped(who, per)
}

// all reports whether all records in use are taken.
func all(taken []bool, live flat.Live) bool {
	for i := range live {
		if live[i] != taken[i] {
			return false
		}
	}
	return true
}

func (c *stateCheck) model(in *inst) {
	if in.model == 0 {
		return
	}
	m, d := c.p.models.At(in.model), &c.p.defs[in.limit]
	c.must(within(m.Window, m.Slice, m.Slack, m.Most, m.resetAt, m.lastIn, m.late, m.lastOff, m.most, m.quickAt, m.best, m.freeLeft, m.freeIn))
	c.must(m.Part >= 0 && m.Part <= meter.Parts && m.most >= 0)
	if m.differs {
		c.must(d.Kind == meter.Bucket && (m.Kind == meter.Bucket || m.Kind == meter.Rolling) && m.Guard == d.Guard && m.Late == d.Late && d.NeedsRing())
		c.must(m.Window >= leastWindow && m.Slack >= 0 && m.Most >= 0 && m.Slice >= 1)
	}
}

// meter checks the numbers of a meter with its ring, stock and pace.
func (c *stateCheck) meter(in *inst) {
	d, r := c.p.defOf(in), c.p.ring(in)
	c.must(in.Sound(d, r))
	if c.p.shared&(1<<in.limit) == 0 {
		return
	}
	switch d.Kind {
	case meter.Fixed:
		st := c.p.stocks.At(in.extra)
		c.must(within(st.since) && within(st.used[:]...) && slices.Min(st.used[:]) >= 0 && st.breaker.Sound())
	case meter.Rolling:
		c.must(c.p.paces.At(in.extra).Sound())
	}
}

func (c *stateCheck) eachSession() {
	p := c.p
	for i, live := range c.sessions {
		if !live {
			continue
		}
		s := p.sessions.At(int32(i))
		c.must(p.findSession(s.id) == 0 && within(s.last, s.kept))
		p.sessIx.Add(sessionHash(s.id), int32(i))
		c.must(s.member == 0 || c.members.Has(s.member) && p.members.At(s.member).session == int32(i))
		if c.bad {
			return
		}
	}
}

func (c *stateCheck) eachCaller() {
	p := c.p
	for i, live := range c.callers {
		if !live {
			continue
		}
		rec := p.callers.recs.At(int32(i))
		c.must(rec.name != 0 && (rec.class == left || rec.class < store.MaxClasses) && within(rec.sent, rec.waited, rec.first, rec.last))
		c.must(rec.note == 0 || c.periods.Has(int32(rec.note)))
		c.must(rec.lease == 0 || c.leases.Has(rec.lease) && p.leases.At(rec.lease).name == rec.name)
		c.name(rec.name)
		if c.bad {
			return
		}
		tag := &p.names.Tags(rec.name)[callerTag]
		c.must(*tag == 0)
		*tag = int32(i)
	}
	t := &p.callers.total
	c.must(t.lease == 0 && (t.name == 0 || t.name == p.other) && (t.note == 0 || c.periods.Has(int32(t.note))))
	c.must(within(t.sent, t.waited, t.first, t.last))
}

func (c *stateCheck) eachPeriod() {
	p, h := c.p, &c.p.history
	c.must(within(h.second) && h.second <= p.now && h.second >= 0 && len(c.periods) <= maxPeriods+1)
	c.must(h.hand >= 0 && h.hand <= maxPeriods && (h.hand == 0 || h.periods.Len() == maxPeriods))
	c.must(c.periods.Count() == max(len(c.periods)-1, 0)) // they are used again in turn
	for i, live := range c.periods {
		if !live {
			continue
		}
		pd := h.periods.At(int32(i))
		c.must((pd.before == 0 || c.periods.Has(pd.before)) && within(pd.waited) && within(pd.units[:]...) && slices.Min(pd.units[:]) >= 0)
		c.must(pd.sent <= 1<<30 && pd.retried <= pd.sent)
		c.name(pd.name, pd.model)
		if c.bad {
			return
		}
	}
}

func (c *stateCheck) eachTicket() {
	p := c.p
	standing, queued := make([]int32, len(c.insts)), make([]int64, len(c.insts))
	type sums struct{ open, waiting, watched int32 }
	sessions := make([]sums, len(c.sessions))
	type sent struct{ plain, retried uint32 } // what may still be taken back from a period
	noted := map[*period]sent{}
	inFlight := int64(0)
	for i, live := range c.tickets {
		if !live {
			continue
		}
		t := p.tickets.At(int32(i))
		c.must(t.state >= stateWaiting && t.state <= stateSpent && t.class < store.MaxClasses && t.tie <= uint8(store.TieGone) && t.op == 0)
		c.must(within(t.since, t.granted, t.deadline, t.due, t.ttl, t.ends, t.alive) && t.granted >= 0 && t.granted <= p.now)
		c.must(c.sessions.Has(t.session) && t.caller >= 0 && t.who.agent != 0)
		c.must((t.state == stateWaiting) == (t.waiter != 0))
		c.must(t.note >= 0 && t.note < max(p.history.periods.End(), 1) && (t.state == stateWaiting || t.note < p.history.periods.End()))
		c.name(t.who.agent, t.who.user, t.who.model, t.who.tool, t.who.key)
		if other, _ := p.find(t.id); other != 0 {
			c.bad = true
		}
		if c.bad {
			return
		}
		p.enter(int32(i), t.id)
		s := &sessions[t.session]
		c.must(p.sessions.At(t.session).id == t.id.Session)
		s.open++
		switch {
		case t.state == stateWaiting:
			s.waiting++
		case t.state != stateSpent:
			inFlight++
			if pd := p.noted(t); pd != nil {
				n := noted[pd]
				if t.retry {
					n.retried++
				} else {
					n.plain++
				}
				noted[pd] = n
				c.must(n.retried <= pd.retried && n.plain <= pd.sent-pd.retried)
			}
		}
		if t.tie == uint8(store.TieGone) {
			s.watched++
		}
		var limits uint16
		for k := range t.n {
			ch := &t.charges[k]
			c.must(c.insts.Has(ch.inst) && int(ch.limit) < len(p.spec.Limits) && limits&(1<<ch.limit) == 0)
			c.must(ch.Mode <= meter.Placed && within(ch.Amount, ch.Mark) && ch.Mark >= 0)
			if c.bad || p.insts.At(ch.inst).limit != ch.limit {
				c.bad = true
				return
			}
			limits |= 1 << ch.limit
			standing[ch.inst]++
			if t.state == stateWaiting {
				queued[ch.inst] += ch.Amount
			}
		}
	}
	for i, live := range c.insts {
		if !live {
			continue
		}
		in := p.insts.At(int32(i))
		c.must(in.queued == queued[i])
		if p.spec.Limits[in.limit].Per != 0 {
			c.must(in.refs == standing[i])
		}
	}
	for i, live := range c.sessions {
		if live {
			s := p.sessions.At(int32(i))
			c.must(sums{s.open, s.waiting, s.watched} == sessions[i])
		}
	}
	c.must(inFlight == p.inFlight)
}

// mostLate bounds how many steps the timer may be behind, because it goes through them one by one.
const mostLate = 32 * 24 * 60 * minute / wheelStep

// wheel checks that each ticket with a time is where the timer finds it.
func (c *stateCheck) wheel() {
	p, w := c.p, &c.p.wheel
	now := p.now / wheelStep
	c.must(w.tick >= 0 && w.tick <= now && now-w.tick <= mostLate && w.turns <= (now+1)*wheelStep && w.next >= 0 && within(w.next, w.turns) && w.count >= 0)
	left := 0
	for i, live := range c.tickets {
		if live && p.tickets.At(int32(i)).due != 0 {
			left++
		}
	}
	inSlots := 0
	list := func(first int32, slot int32, f func(t *ticket)) (last int32) {
		for i := first; i != 0; i = p.tickets.At(i).next {
			if left--; left < 0 || !c.tickets.Has(i) {
				c.bad = true
				return 0
			}
			t := p.tickets.At(i)
			c.must(t.slot == slot && t.prev == last && t.due > 0 && t.due%wheelStep == 0 && t.due/wheelStep > w.tick)
			f(t)
			last = i
		}
		return last
	}
	for k, first := range w.slots {
		list(first, int32(k), func(t *ticket) {
			s := t.due / wheelStep
			c.must(s%wheelSlots == int64(k) && s >= w.next)
			inSlots++
		})
		if c.bad {
			return
		}
	}
	due := int64(0)
	c.must(list(w.first, inLine, func(t *ticket) {
		c.must(t.due >= due)
		due = t.due
	}) == w.last)
	c.must(left == 0 && inSlots == w.count)
}

func (c *stateCheck) eachLease() {
	p := c.p
	c.must(c.leases.Count() <= store.MaxLeases)
	for i, live := range c.leases {
		if !live {
			continue
		}
		l := p.leases.At(int32(i))
		c.must(l.name != 0 && int(l.n) <= len(l.waits) && l.class < store.MaxClasses && within(l.since, l.expires, l.slotTill, l.beforeTill))
		if c.bad {
			return
		}
		c.name(l.name, l.user, l.machine)
		for k, w := range l.waits {
			c.must((k < int(l.n)) == (w != 0))
			c.name(w)
		}
		if c.bad {
			return
		}
		at := p.names.Tags(l.name)[callerTag]
		c.must(at != 0 && p.callers.recs.At(at).lease == int32(i))
	}
}

// eachMember checks the two lists of members and the shares that they were promised.
func (c *stateCheck) eachMember() {
	p := c.p
	count := c.members.Count()
	c.must(count <= store.MaxMembers)
	left, heard, promised := count, int32(0), int64(0)
	for _, silent := range []bool{false, true} {
		first := p.firstMember
		if silent {
			first = p.firstSilent
		}
		before, touched := int32(0), int64(-meter.Never)
		for i := first; i != 0; i = p.members.At(i).next {
			if left--; left < 0 || !c.members.Has(i) {
				c.bad = true
				return
			}
			m := p.members.At(i)
			c.must(m.silent == silent && m.prev == before && within(m.touched, m.expires) && m.touched <= p.now && m.share >= 0 && m.share <= finest && m.told >= 0 && m.told <= finest)
			c.must(c.sessions.Has(m.session))
			if c.bad {
				return
			}
			c.must(p.sessions.At(m.session).member == i)
			promised += partOf(m.share)
			if !silent {
				c.must(m.touched >= touched)
				touched = m.touched
				heard++
			}
			before = i
		}
		c.must(silent || p.lastMember == before)
	}
	switch { // a time that comes too late would be missed
	case p.firstMember != 0:
		c.must(p.nextHush != 0 && p.nextHush <= p.members.At(p.firstMember).silentFrom())
	case p.firstSilent != 0:
		c.must(p.nextHush != 0 && p.nextFree != 0)
	}
	c.must(p.nextFree == 0 || p.nextHush != 0 && p.nextHush <= p.nextFree)
	c.must(p.firstSilent != 0 || p.parts == [store.MaxLimits]int64{})
	c.must(left == 0 && heard == p.heardOf && promised == p.promised && promised <= whole && p.hushed >= 0 && p.hushed <= whole)
}

func (c *stateCheck) eachGate() {
	p := c.p
	left, before := c.gates.Count(), int32(0)
	c.must(left <= maxGates+1)
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if left--; left < 0 || !c.gates.Has(i) {
			c.bad = true
			return
		}
		g := p.gates.At(i)
		scope, model, key := gateScope(g.scope, g.model, g.key)
		c.must(g.prev == before && g.State.Sound() && scope == g.scope && model == g.model && key == g.key)
		for k := p.firstGate; k != i; k = p.gates.At(k).next {
			o := p.gates.At(k)
			c.must(o.scope != g.scope || o.model != g.model || o.key != g.key)
		}
		c.must(g.scope&^p.laneScopes == 0)
		c.name(g.model, g.key, g.cause, g.agent)
		before = i
	}
	c.must(left == 0 && p.laneScopes&^store.Shared == 0)
}

func (c *stateCheck) eachAnswers() {
	p := c.p
	n := c.answers.Count()
	c.must(n <= maxAnswers+1 && n == max(len(c.answers)-1, 0))
	models := map[int32]bool{}
	for i, live := range c.answers {
		if !live {
			continue
		}
		a := p.answers.At(int32(i))
		c.must(!models[a.model] && within(a.last, a.rejected))
		models[a.model] = true
		c.name(a.model, a.cause)
	}
	c.must(n <= maxAnswers || models[p.other]) // answersOf gives further models that record
}

// queue checks that the queue has exactly the tickets that wait.
func (c *stateCheck) queue() {
	p := c.p
	p.queue.EachMember(func(agent int32) { c.name(agent) })
	waiting := 0
	p.queue.EachWaiter(func(w, t int32) {
		waiting++
		if !c.tickets.Has(t) || p.tickets.At(t).waiter != w {
			c.bad = true
			return
		}
	})
	for i, live := range c.tickets {
		if live && p.tickets.At(int32(i)).state == stateWaiting {
			waiting--
		}
	}
	p.queue.EachParked(func(on int32) { c.must(c.insts.Has(on)) })
	c.must(waiting == 0)
}
