package pool

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// audit counts all references to records and names, and compares them with the counts that the pool keeps.
func (p *Pool) audit() error {
	refs := map[int32]int64{}
	hold := func(names ...int32) {
		for _, n := range names {
			if n != 0 {
				refs[n]++
			}
		}
	}
	hold(p.other)
	standing := map[int32]int32{}
	open, waiting := 0, 0
	for i := int32(1); i < p.tickets.End(); i++ {
		t := p.tickets.At(i)
		if t.state == 0 {
			continue
		}
		hold(t.who.agent, t.who.user, t.who.model, t.who.tool, t.who.key)
		if t.state == stateWaiting {
			waiting++
		}
		if t.state == stateHeld || t.state == stateReady {
			open++
		}
		for k := range t.n {
			standing[t.charges[k].inst]++
		}
	}
	if int64(open) != p.inFlight || waiting != p.queue.Len() {
		return fmt.Errorf("%d of %d in flight, %d of %d in the queue", open, p.inFlight, waiting, p.queue.Len())
	}
	stocks, paces, rings, models := 0, 0, 0, 0
	var scoped [store.MaxLimits]int32
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if !in.used {
			if standing[i] != 0 {
				return fmt.Errorf("%d tickets stand on meter %d, which is gone", standing[i], i)
			}
			continue
		}
		if p.spec.Limits[in.limit].Per != 0 && in.refs != standing[i] {
			return fmt.Errorf("meter %d has %d references, and %d tickets stand on it", i, in.refs, standing[i])
		}
		hold(in.scope.agent, in.scope.user, in.scope.model, in.scope.tool, in.scope.key)
		if p.spec.Limits[in.limit].Per != 0 {
			scoped[in.limit]++
		}
		if in.ring != 0 {
			rings++
		}
		if in.model != 0 {
			models++
		}
		if p.shared&(1<<in.limit) == 0 {
			continue
		}
		switch p.defOf(in).Kind {
		case meter.Fixed:
			stocks++
			for c, used := range p.stocks.At(in.extra).used {
				if used < 0 {
					return fmt.Errorf("class %d has used %d of meter %d", c, used, i)
				}
			}
		case meter.Rolling:
			paces++
		}
	}
	if stocks != p.stocks.Len() || paces != p.paces.Len() || rings != p.rings.Len() || models != p.models.Len() {
		return fmt.Errorf("%d of %d stocks, %d of %d paces, %d of %d rings and %d of %d models are some meter's",
			stocks, p.stocks.Len(), paces, p.paces.Len(), rings, p.rings.Len(), models, p.models.Len())
	}
	if scoped != p.scoped {
		return fmt.Errorf("limits have %v scoped meters, and count %v", scoped, p.scoped)
	}
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		hold(g.model, g.key, g.cause, g.agent)
	}
	for i := int32(1); i < p.callers.recs.End(); i++ {
		c := p.callers.recs.At(i)
		hold(c.name)
		if c.name != 0 && p.names.Tags(c.name)[callerTag] != i {
			return fmt.Errorf("caller %d is not where its name leads to", i)
		}
	}
	for i := int32(1); i < p.leases.End(); i++ {
		if l := p.leases.At(i); l.name != 0 {
			hold(l.name, l.user, l.machine)
			hold(l.waits[:l.n]...)
			if c := p.callers.recs.At(p.names.Tags(l.name)[callerTag]); c.lease != i {
				return fmt.Errorf("lease %d is not where its agent leads to", i)
			}
		}
	}
	if err := p.auditMembers(); err != nil {
		return err
	}
	hold(p.by[:]...)
	hold(p.failure, p.unpaidKey)
	for i := int32(1); i < p.answers.End(); i++ {
		hold(p.answers.At(i).model, p.answers.At(i).cause)
	}
	for i := int32(1); i < p.history.periods.End(); i++ {
		pd := p.history.periods.At(i)
		hold(pd.name, pd.model)
		for _, u := range pd.units {
			if u < 0 || pd.sent > 1<<30 || pd.retried > pd.sent {
				return fmt.Errorf("period %+v", *pd)
			}
		}
	}
	each(reflect.ValueOf(&p.queue).Elem().FieldByName("members"), func(_ int32, m reflect.Value) {
		hold(int32(m.FieldByName("agent").Int()))
	})
	var err error
	each(reflect.ValueOf(&p.names).Elem().FieldByName("recs"), func(i int32, r reflect.Value) {
		if got := r.FieldByName("refs").Int(); got != refs[i] && err == nil {
			err = fmt.Errorf("name %q has %d references, and %d records refer to it", p.names.Text(i), got, refs[i])
		}
	})
	return err
}

// auditMembers adds up the shares that members were promised, and compares them with the pool's sum.
func (p *Pool) auditMembers() error {
	heard, silent, promised := 0, 0, int64(0)
	last := int64(0)
	for i := p.firstMember; i != 0; i = p.members.At(i).next {
		m := p.members.At(i)
		if m.silent || m.touched < last || m.silentFrom() <= p.now {
			return fmt.Errorf("member %d is heard of, and %+v", i, *m)
		}
		heard, last, promised = heard+1, m.touched, promised+partOf(m.share)
	}
	for i := p.firstSilent; i != 0; i = p.members.At(i).next {
		m := p.members.At(i)
		if !m.silent {
			return fmt.Errorf("member %d is silent, and %+v", i, *m)
		}
		silent, promised = silent+1, promised+partOf(m.share)
	}
	if heard+silent != p.members.Len() || heard != int(p.heardOf) {
		return fmt.Errorf("%d members are heard of and %d silent of %d", heard, silent, p.members.Len())
	}
	if promised != p.promised || promised > whole {
		return fmt.Errorf("%d is promised, %d in all, of %d", promised, p.promised, int64(whole))
	}
	for i := int32(1); i < p.sessions.End(); i++ {
		if m := p.sessions.At(i).member; m != 0 && p.members.At(m).session != i {
			return fmt.Errorf("member %d is not that of session %d", m, i)
		}
	}
	for k := range p.parts {
		if p.parts[k] != p.defs[k].Part || silent == 0 && p.parts[k] != 0 {
			return fmt.Errorf("%d parts are withheld of limit %d, %d in effect, with %d silent", p.parts[k], k, p.defs[k].Part, silent)
		}
	}
	return nil
}

// each visits the records of a slab of another package.
func each(slab reflect.Value, f func(i int32, rec reflect.Value)) {
	chunks := slab.FieldByName("chunks")
	used := int(slab.FieldByName("head").Elem().FieldByName("used").Int())
	for i := 1; i < used; i++ {
		c := chunks.Index(0).Elem().Len()
		f(int32(i), chunks.Index(i/c).Elem().Index(i%c))
	}
}

// chaos applies random operations to a pool.
type chaos struct {
	*rand.Rand
	p     *Pool
	spec  store.Spec
	now   store.Time
	ids   []store.ID
	alike bool // charge limits of the same unit the same, as a sluice.Gate does
}

func (c *chaos) pick(n ...time.Duration) time.Duration { return n[c.IntN(len(n))] }

func (c *chaos) name(kind string, n int) string {
	if c.IntN(40) == 0 {
		return kind + strings.Repeat("x", 200) + strconv.Itoa(c.IntN(n))
	}
	return kind + strconv.Itoa(c.IntN(n))
}

func (c *chaos) policy() {
	s := &c.spec
	s.Classes = []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}, {Name: "p3", Weight: 1}}[:1+c.IntN(4)]
	s.Light = store.Light{}
	if c.IntN(2) == 0 {
		s.Light.Green = int64(c.IntN(1000))
		s.Light.Red = int64(c.IntN(int(s.Light.Green) + 1))
		s.Light.All, s.Light.Static = c.IntN(2) == 0, c.IntN(2) == 0
	}
	s.Breaker = store.Breaker{}
	if c.IntN(2) == 0 {
		s.Breaker = store.Breaker{Within: c.pick(time.Second, 2*time.Minute, time.Hour), Samples: 3 + c.IntN(62), Open: c.IntN(2) == 0}
	}
	s.Reserve = int64([]int{0, 0, 100, 900}[c.IntN(4)])
	s.Shares, s.Pace = c.IntN(2) == 0, c.IntN(2) == 0
	s.Lease = c.pick(0, time.Second, time.Minute, time.Hour, -1)
	s.Order = store.Order(c.IntN(3))
}

func newChaos(seed uint64) (*chaos, error) {
	c := &chaos{Rand: rand.New(rand.NewPCG(seed, 7)), now: 1_767_225_600_000_000}
	c.spec = classesSpec()
	for i := range 1 + c.IntN(5) {
		l := store.Limit{
			Name: strconv.Itoa(i), Unit: "unit" + strconv.Itoa(i/2), Kind: store.Kind(c.IntN(4)), Guard: store.Guard(c.IntN(3)),
			Size: int64(c.pick(1, 5, 20, 1000)), Window: c.pick(time.Second, 10*time.Second, time.Minute, 15*time.Minute, time.Hour),
			Per:  []store.Scope{0, 0, 0, store.PerModel, store.PerModel | store.PerKey, store.PerAgent, store.PerUser}[c.IntN(7)],
			Late: c.IntN(4) == 0, Estimated: c.IntN(2) == 0,
		}
		switch l.Kind {
		case store.Concurrency:
			l.Window, l.Late = 0, false
		case store.Bucket:
			l.Burst = 1 + c.Int64N(l.Size)
		case store.Fixed:
			if c.IntN(2) == 0 {
				l.Reset = c.now + 1
			}
		}
		c.spec.Limits = append(c.spec.Limits, l)
	}
	if c.IntN(4) == 0 {
		c.spec.MaxWaiting = 1 + c.IntN(8)
	}
	c.policy()
	var err error
	c.p, err = New(c.spec, c.now)
	return c, err
}

func (c *chaos) op() (op store.Op) {
	op = store.Op{ID: store.ID{Session: 1 + c.Uint64N(2)}}
	if len(c.ids) > 0 {
		op.ID = c.ids[c.IntN(len(c.ids))]
	}
	op.Agent, op.User, op.Model, op.Key = c.name("a", 6), c.name("u", 2), c.name("m", 3), c.name("k", 2)
	op.Machine = c.name("h", 3)
	op.Class = uint8(c.IntN(4))
	if c.alike {
		defer func() { c.even(&op) }()
	}
	switch k := c.IntN(34); {
	case k < 9:
		op.Kind, op.ID = store.OpAcquire, store.ID{Session: op.ID.Session}
		op.Emergency = op.Class == 0 && c.IntN(4) == 0
		op.Wait, op.TTL = c.pick(-1, -1, 0, time.Second, time.Hour), c.pick(time.Second, time.Minute, time.Hour)
		op.Alive = c.pick(0, 0, 0, time.Second)
		op.Retry = c.IntN(4) == 0
		for i := range c.p.spec.Limits {
			op.Amounts = append(op.Amounts, store.Amount{Limit: c.p.spec.Limits[i].Name, N: int64(c.pick(0, 1, 1, 1, 3, 20))})
		}
	case k < 12:
		op.Kind = store.OpPoll
	case k < 14:
		op.Kind = store.OpCancel
	case k < 15:
		op.Kind, op.Wait = store.OpRenew, c.pick(-1, 0, time.Second)
	case k < 18:
		op.Kind = store.OpAnswer
		op.Age = c.pick(0, 0, 150*time.Millisecond, time.Hour)
	case k < 21:
		op.Kind, op.Spent = store.OpClose, c.IntN(4) == 0
		op.Age = c.pick(0, 0, 150*time.Millisecond, time.Hour)
		if c.IntN(2) == 0 {
			for i := range c.p.spec.Limits {
				op.Amounts = append(op.Amounts, store.Amount{Limit: c.p.spec.Limits[i].Name, N: int64(c.pick(-1, 0, 1, 5, 50))})
			}
		}
	case k < 23:
		op.Kind, op.ID.N = store.OpObserve, 0
	case k < 24:
		op.Kind, op.RetryAfter, op.Scope = store.OpPause, c.pick(time.Second, time.Minute), store.Scope(c.IntN(32))
		op.Cause = c.name("cause", 3)
	case k < 25:
		op.Kind = store.OpResume
	case k < 28:
		op.Kind = store.OpHeartbeat
		op.TTL = c.pick(0, time.Second, time.Hour)
		if c.IntN(2) == 0 {
			op.Slots = store.Slots{Max: 1 + c.IntN(3), TTL: c.pick(time.Second, time.Minute, time.Hour)}
		}
		for range c.IntN(4) {
			op.WaitsFor = append(op.WaitsFor, c.name("a", 6))
		}
	case k < 29:
		op.Kind = store.OpLeave
	case k < 32:
		op.Kind, op.ID = store.OpTouch, store.ID{Session: 1 + c.Uint64N(6)}
		op.TTL, op.Spent = c.pick(0, time.Second, time.Minute, time.Hour), c.IntN(8) == 0
		op.Share = int64(c.IntN(8))
		if c.IntN(8) == 0 {
			op.Until = c.now - 1 + store.Time(c.IntN(3))
		}
	case k < 33:
		if op.Kind = store.OpForget; c.IntN(4) > 0 {
			op.Kind = store.OpTouch
		}
	default:
		op.Kind, op.Wait = store.OpLaunch, c.pick(0, time.Second, time.Hour)
	}
	if op.Kind == store.OpAnswer || op.Kind == store.OpObserve {
		op.Verdict = store.Verdict(c.IntN(7))
		if c.IntN(2) == 0 {
			op.Verdict = store.VerdictOK
		}
		op.RetryAfter = c.pick(0, 0, time.Second)
		for range c.IntN(3) {
			op.Observed = append(op.Observed, store.Observed{
				Limit: c.spec.Limits[c.IntN(len(c.spec.Limits))].Name, Size: int64(c.pick(-1, -1, 5, 20)), Remaining: int64(c.IntN(20)) - 1,
				ResetIn: c.pick(-1, 0, time.Second, 5*time.Minute, 30*time.Minute),
			})
		}
	}
	return op
}

func (c *chaos) step() {
	switch c.IntN(10) {
	case 0, 1, 2:
		c.now = c.now.Add(c.pick(1000, time.Millisecond, 300*time.Millisecond, 5*time.Second, time.Minute, 20*time.Minute))
		if c.IntN(50) == 0 {
			c.now = c.now.Add(c.pick(time.Hour, 30*time.Hour, 40*24*time.Hour))
		}
		c.p.Serve(c.now)
	case 3:
		if w := c.p.Wake(); w != 0 && w.Sub(c.now) < 2*time.Hour {
			c.now = max(c.now, w)
			c.p.Serve(c.now)
		}
	case 4:
		if c.IntN(10) == 0 {
			c.policy()
			if err := c.p.Reform(c.spec, false); err != nil {
				panic(err)
			}
			c.p.Serve(c.now)
		} else {
			c.p.Snapshot(c.now)
			c.p.History(c.now, c.now-3_600_000_000)
		}
	default:
		ops := make([]store.Op, 1+c.IntN(3))
		for i := range ops {
			ops[i] = c.op()
		}
		c.p.Apply(c.now, ops)
		for i := range ops {
			if ops[i].Kind == store.OpAcquire && ops[i].Result.ID.N != 0 {
				c.ids = append(c.ids, ops[i].Result.ID)
			}
		}
		if len(c.ids) > 40 {
			c.ids = c.ids[20:]
		}
	}
}

// After any operations, every reference is counted. When all tickets have ended, only the history and the sizes that the
// provider stated are left.
func TestNothingIsLeftOfAnything(t *testing.T) {
	for seed := range tape.Seeds(t, 150) {
		c, err := newChaos(seed)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 250 {
			c.step()
			if n%10 == 0 {
				if err := c.p.audit(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, n, err)
				}
			}
		}
		c.end(t, seed)
		if t.Failed() {
			return
		}
	}
}

// end ends all tickets, leases and members, and lets time pass.
func (c *chaos) end(t *testing.T, seed uint64) {
	c.now = c.now.Add(holdAfterLoss * time.Microsecond) // resume cannot end that pause
	c.p.Apply(c.now, []store.Op{{Kind: store.OpResume}})
	for i := int32(1); i < c.p.tickets.End(); i++ { // some would wait forever
		if tk := c.p.tickets.At(i); tk.state == stateWaiting {
			c.p.Apply(c.now, []store.Op{{Kind: store.OpCancel, ID: tk.id}})
		}
	}
	for range 400 { // the longest memory is a day
		c.now = c.now.Add(7 * time.Minute)
		ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "last", TTL: time.Second}}
		c.p.Apply(c.now, ops)
		c.p.Apply(c.now, []store.Op{{Kind: store.OpClose, ID: ops[0].Result.ID}})
	}
	c.p.Snapshot(c.now)
	if err := c.p.audit(); err != nil {
		t.Errorf("seed %d, when all is over: %v", seed, err)
	}
	p := c.p
	scoped := 0
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); in.used && p.spec.Limits[in.limit].Per != 0 && !in.stated {
			if p.ring(in) == nil || p.ring(in).Slack == 0 {
				scoped++
			}
		}
	}
	if p.tickets.Len() != 0 || p.inFlight != 0 || p.queue.Len() != 0 || scoped > 0 || p.firstGate != 0 || p.leases.Len() != 0 || p.members.Len() != 0 || p.sessions.Len() > 1 {
		t.Errorf("seed %d, when all is over: %d tickets, %d in flight, %d waiting, %d meters, gate %d, %d leases, %d members, %d sessions",
			seed, p.tickets.Len(), p.inFlight, p.queue.Len(), scoped, p.firstGate, p.leases.Len(), p.members.Len(), p.sessions.Len())
	}
	known := map[int32]bool{p.names.Hold("last"): true}
	for i := int32(1); i < p.history.periods.End(); i++ {
		known[p.history.periods.At(i).name] = true
	}
	for i := int32(1); i < p.callers.recs.End(); i++ {
		if r := p.callers.recs.At(i); r.name != 0 && !known[r.name] {
			t.Errorf("seed %d, when all is over: caller %q is remembered, with lease %d", seed, p.names.Text(r.name), r.lease)
		}
	}
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if !in.used || (in.stated || c.alike) && p.defs[in.limit].Kind == meter.Bucket { // it may take weeks to drain at the stated rate
			continue
		}
		if _, d, r := p.touch(i); in.Cap > 0 && (in.Used(d, r) != 0 || in.Held != 0) {
			t.Errorf("seed %d, when all is over: %d used and %d held of limit %d", seed, in.Used(d, r), in.Held, in.limit)
		}
	}
}
