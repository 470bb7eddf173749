package pool

import (
	"fmt"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// inst is the meter of one limit for one scope. The fields that every request reads come first, to share cache lines.
type inst struct {
	limit  uint8
	used   bool  // the record is in use
	stated bool  // the provider stated the size: the meter is kept longer, so that it need not be learned again
	kept   uint8 // set of classes that a policy holds back, in this pass
	ring   int32
	refs   int32  // tickets that use it, if it has a scope; meters without a scope are never dropped
	seen   uint32 // when it was last charged, or its size stated, in ages
	extra  int32  // of a shared meter: its stock or pace
	next   int32  // next meter scoped to the same single name
	pass   uint32 // the pass that claim and kept belong to
	meter.Meter
	claim  int64 // amount claimed by requests ahead, in this pass
	queued int64 // total that waiting tickets ask for
	scope  names // the names that it is scoped to
	model  int32 // how the provider counts, if responses have shown it; 0: as the limit says
}

// unscoped points to the only meter of a limit without a scope. Records do not move.
type unscoped struct {
	inst int32
	at   *inst
	ring *meter.Ring
}

func compile(l *store.Limit) (meter.Def, error) {
	d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
	d.Late = l.Late
	return d, err
}

// derive computes the values that the arithmetic needs for limit i.
func (p *Pool) derive(i int) error {
	l := &p.spec.Limits[i]
	d, err := compile(l)
	if err != nil {
		return err
	}
	d.Part = p.parts[i]
	p.defs[i] = d
	p.setSpan(i)
	if l.Per&^store.Shared == 0 {
		p.shared |= 1 << i
	} else {
		p.ownScopes |= l.Per
	}
	p.anyStrict = p.anyStrict || d.Guard == meter.Strict
	return nil
}

// define sets up limit i, with its meter if it has no scope.
func (p *Pool) define(i int) error {
	if err := p.derive(i); err != nil {
		return err
	}
	l := &p.spec.Limits[i]
	if l.Per&^store.Shared == 0 {
		p.splitLanes(l.Per)
	}
	if l.Per == 0 {
		at, err := p.newInst(i, names{})
		if err == nil {
			p.single[i] = at
			p.findSingle(i)
		}
		return err
	}
	var m meter.Meter
	return m.Resize(&p.defs[i], l.Size, l.Burst)
}

// findSingle sets unscoped for limit i, if it has no scope.
func (p *Pool) findSingle(i int) {
	if at := p.single[i]; at != 0 {
		in := p.insts.At(at)
		p.unscoped[i] = unscoped{at, in, p.ring(in)}
	}
}

// newInst creates a meter and adds it to the indexes.
func (p *Pool) newInst(limit int, scope names) (int32, error) {
	l := &p.spec.Limits[limit]
	i := p.insts.New()
	in := p.insts.At(i)
	in.limit, in.used = uint8(limit), true
	in.scope = names{p.names.Keep(scope.agent), p.names.Keep(scope.user), p.names.Keep(scope.model),
		p.names.Keep(scope.tool), p.names.Keep(scope.key)}
	if p.defs[limit].NeedsRing() {
		in.ring = p.rings.New()
	}
	if p.shared&(1<<limit) != 0 {
		switch p.defs[limit].Kind {
		case meter.Fixed:
			in.extra = p.stocks.New()
		case meter.Rolling:
			in.extra = p.paces.New()
		}
	}
	if err := in.Start(&p.defs[limit], p.ring(in), p.now, l.Size, l.Burst, p.resetOf(limit, scope)); err != nil {
		return 0, err
	}
	p.enroll(limit, scope, i)
	if p.ramps(limit) && in.Cap == 0 && p.crowd[limit] != i && !p.anyKnown() {
		p.startRamp(l.Per, scope.model, scope.key)
	}
	if name := scope.sole(l.Per); name != 0 {
		first := &p.names.Tags(name)[ownTag]
		in.next, *first = *first, i
	} else if l.Per != 0 {
		p.instIx.Add(scopeHash(limit, scope), i)
	}
	p.lose(i)
	return i, nil
}

func (p *Pool) dropInst(i int32) {
	in := p.insts.At(i)
	if name := in.scope.sole(p.spec.Limits[in.limit].Per); name != 0 {
		link := &p.names.Tags(name)[ownTag]
		for *link != i {
			link = &p.insts.At(*link).next
		}
		*link = in.next
	} else {
		p.instIx.Remove(scopeHash(int(in.limit), in.scope), i)
	}
	p.strike(int(in.limit), i)
	p.dropNames(&in.scope)
	if in.ring != 0 {
		p.rings.Free(in.ring)
	}
	switch kind := p.defOf(in).Kind; {
	case p.shared&(1<<in.limit) == 0:
	case kind == meter.Fixed:
		p.stocks.Free(in.extra)
	case kind == meter.Rolling:
		p.paces.Free(in.extra)
	}
	if in.model != 0 {
		p.models.Free(in.model)
	}
	p.insts.Free(i)
}

func scopeHash(limit int, s names) uint32 {
	h := flat.Mix(uint64(limit)<<32 | uint64(uint32(s.agent)))
	if s.user|s.model|s.tool|s.key != 0 {
		h = flat.Mix(h ^ uint64(uint32(s.user))<<32 ^ uint64(uint32(s.model)))
		h = flat.Mix(h ^ uint64(uint32(s.tool))<<32 ^ uint64(uint32(s.key)))
	}
	return uint32(h)
}

func (p *Pool) ring(in *inst) *meter.Ring {
	if in.ring == 0 {
		return nil
	}
	return p.rings.At(in.ring)
}

// instOf returns the meter of a limit for who, and creates it if needed.
func (p *Pool) instOf(limit int, who *names) int32 {
	per := p.spec.Limits[limit].Per
	if per == 0 {
		return p.unscoped[limit].inst
	}
	if name := who.sole(per); name != 0 { // the usual case
		if i := p.ownOf(limit, name); i != 0 {
			return i
		}
	}
	return p.instFor(limit, scoped(who, per))
}

// instFor is instOf for a scope. If the limit has too many meters, it returns the crowd's.
func (p *Pool) instFor(limit int, scope names) int32 {
	if i := p.findInst(limit, scope); i != 0 {
		return i
	}
	per := p.spec.Limits[limit].Per
	p.sweepSome(2)
	if p.crowded(limit) {
		if i := p.crowd[limit]; i != 0 {
			return i
		}
		scope = p.crowdScope(per)
	}
	i, err := p.newInst(limit, scope)
	if err != nil {
		panic(fmt.Sprintf("pool: a limit that was accepted cannot be set up: %v", err))
	}
	return i
}

// findInst returns the meter of a limit for a scope, or 0 if there is none.
func (p *Pool) findInst(limit int, scope names) int32 {
	if name := scope.sole(p.spec.Limits[limit].Per); name != 0 { // the common case: the name's tag leads to it
		return p.ownOf(limit, name)
	}
	h := scopeHash(limit, scope)
	for i, n := p.instIx.Seek(h, 0); i != 0; i, n = p.instIx.Seek(h, n) {
		if in := p.insts.At(i); in.limit == uint8(limit) && in.scope == scope {
			return i
		}
	}
	return 0
}

// ownOf returns the meter of a limit that is scoped to a single name, or 0 if there is none.
func (p *Pool) ownOf(limit int, name int32) int32 {
	i := p.names.Tags(name)[ownTag]
	for i != 0 && p.insts.At(i).limit != uint8(limit) {
		i = p.insts.At(i).next
	}
	return i
}

// sole returns the name of a scope with one attribute. It returns 0 if per has several attributes or the name is empty.
func (n *names) sole(per store.Scope) int32 {
	switch per {
	case store.PerAgent:
		return n.agent
	case store.PerModel:
		return n.model
	case store.PerUser:
		return n.user
	case store.PerTool:
		return n.tool
	case store.PerKey:
		return n.key
	}
	return 0
}

// scoped returns the names of who that per selects.
func scoped(who *names, per store.Scope) names {
	if per == store.PerAgent {
		return names{agent: who.agent}
	}
	var s names
	if per&store.PerAgent != 0 {
		s.agent = who.agent
	}
	if per&store.PerUser != 0 {
		s.user = who.user
	}
	if per&store.PerModel != 0 {
		s.model = who.model
	}
	if per&store.PerTool != 0 {
		s.tool = who.tool
	}
	if per&store.PerKey != 0 {
		s.key = who.key
	}
	return s
}

// touch advances meter i to now and returns it with its definition and ring.
func (p *Pool) touch(i int32) (*inst, *meter.Def, *meter.Ring) {
	in := p.insts.At(i)
	d, r := p.defOf(in), p.ring(in)
	in.Advance(d, r, p.now)
	return in, d, r
}

// meterOf returns the meter of a charge without advancing it.
func (p *Pool) meterOf(c *charge) (*inst, *meter.Def, *meter.Ring) {
	if u := &p.unscoped[c.limit]; u.at != nil {
		return u.at, p.defOf(u.at), u.ring
	}
	in := p.insts.At(c.inst)
	return in, p.defOf(in), p.ring(in)
}

// touchCharge is touch for the meter of a charge.
func (p *Pool) touchCharge(c *charge) (*inst, *meter.Def, *meter.Ring) {
	in, d, r := p.meterOf(c)
	in.Advance(d, r, p.now)
	return in, d, r
}

// room returns the room for a request that needs amount. A request that fits the limit but not its cut capacity may go
// when the meter is empty.
func (in *inst) room(d *meter.Def, r *meter.Ring, amount int64) int64 {
	room := in.Room(d, r)
	if room < amount && in.Used(d, r) == 0 && amount <= in.Cap-in.Withheld(d) {
		return amount
	}
	return room
}

// readyAt returns when the meter will have room for amount if only time passes.
func (in *inst) readyAt(d *meter.Def, r *meter.Ring, t, amount int64) int64 {
	at := in.ReadyAt(d, r, t, amount)
	if most := in.Open(d, r); amount > most && amount <= in.Cap-in.Withheld(d) {
		at = min(at, in.ReadyAt(d, r, t, most)) // when the meter is empty
	}
	return at
}

// age returns the time in ages. An age is 2^20 microseconds, about a second, and cheap to compute.
func (p *Pool) age() uint32 { return uint32(p.now >> ageBits) }

const ageBits = 20

// keepIdle is for how many ages an idle meter is kept. Keeping it for an agent that comes back is cheaper than creating
// it again.
const keepIdle = 60

// spare reports whether a meter can be dropped: no ticket uses it, it is idle, and its guard has learned nothing.
func (p *Pool) spare(i int32) bool {
	in := p.insts.At(i)
	if in.refs > 0 || p.age()-in.seen < p.keepFor(in) || p.spec.Limits[in.limit].Per == 0 {
		return false
	}
	_, _, r := p.touch(i)
	return in.Idle() && (r == nil || r.Sum == 0 && r.Slack == 0 && r.Cut == 0)
}

// sweepSome checks up to n meters, leases, callers and sessions each, and drops those that are no longer needed.
func (p *Pool) sweepSome(n int) {
	for range n {
		if p.sweep++; p.sweep >= p.insts.End() {
			p.sweep = 0
			break
		}
		if p.insts.At(p.sweep).used && p.spare(p.sweep) {
			p.dropInst(p.sweep)
		}
	}
	p.burySome(n)
	p.callers.sweep(&p.names, n, p.now, p.lease)
	p.sweepSessions(n)
}
