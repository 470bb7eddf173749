package pool

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// fleet is several processes that share a pool and cannot always reach it, and the provider.
type fleet struct {
	*rand.Rand
	spec    store.Spec
	p       *Pool
	v       provider
	now     int64
	procs   []*proc
	joined  uint64
	calm    int // the higher, the fewer messages are lost
	stuck   []stuckTouch
	granted int // grants by the pool
	island  int // grants by processes that are cut off
	silence int // steps in which a share was withheld
}

// proc is a process. It knows only what results have told it.
type proc struct {
	session uint64
	next    uint64
	share   int64
	touched int64 // latest time at which a report of it may have reached the pool
	till    int64 // end of its lease
	cut     bool
	isle    *policy.Island
	tickets []*hers
}

// hers is a request of a process.
type hers struct {
	*sent
	id       store.ID // zero: the pool does not know it
	number   int      // of a grant while cut off
	granted  int64
	due      int64
	answered int64
	closed   int64
	owed     bool // the pool does not know yet that it has ended
}

// stuckTouch is a touch that is delayed, perhaps for longer than it is valid.
type stuckTouch struct {
	at int64
	op store.Op
}

const memberLease = 90 * time.Second

func newFleet(seed uint64) (*fleet, error) {
	f := &fleet{Rand: rand.New(rand.NewPCG(seed, 11)), now: 1_767_225_600_123_457}
	f.spec = classesSpec()
	for i := range 1 + f.IntN(3) {
		l := store.Limit{
			Name: strconv.Itoa(i), Unit: "u" + strconv.Itoa(i), Kind: store.Kind(f.IntN(4)), Guard: store.Guard(f.IntN(5) / 4),
			Size: []int64{1, 3, 7, 10, 25}[f.IntN(5)], Window: []time.Duration{5 * time.Second, 7_777_777 * time.Microsecond, 20 * time.Second, time.Minute}[f.IntN(4)],
		}
		switch l.Kind {
		case store.Concurrency:
			l.Window = 0
		case store.Bucket:
			l.Burst = 1 + f.Int64N(2*l.Size)
		case store.Fixed:
			f.v.resets[i] = f.now - f.Int64N(60_000_000)
			if f.IntN(3) > 0 {
				l.Reset = store.Time(f.v.resets[i] + f.Int64N(2_400_001) - 1_200_000)
			}
		}
		f.spec.Limits = append(f.spec.Limits, l)
	}
	f.v.limits = f.spec.Limits
	f.calm = []int{60, 300, 1000}[f.IntN(3)]
	for range 1 + f.IntN(4) {
		f.join()
	}
	var err error
	f.p, err = New(f.spec, store.Time(f.now))
	return f, err
}

func (f *fleet) join() {
	f.joined++
	f.procs = append(f.procs, &proc{session: f.joined})
}

func (f *fleet) apply(ops ...store.Op) []store.Op {
	f.p.Apply(store.Time(f.now), ops)
	return ops
}

func (f *fleet) amounts() (a [store.MaxLimits]int64) {
	for k := range f.spec.Limits {
		a[k] = int64(f.IntN(4)) / 2
	}
	a[f.IntN(len(f.spec.Limits))] = 1 + f.Int64N(2)
	return a
}

// send sends a request that was just granted.
func (f *fleet) send(a [store.MaxLimits]int64, ttl int64) *sent {
	delay := int64(1_000_000) // the slack of all these windows
	switch f.IntN(3) {
	case 0:
		delay = 0
	case 1:
		delay = f.Int64N(delay)
	}
	q := &sent{arrives: f.now + delay, ends: f.now + ttl, amounts: a}
	f.v.got = append(f.v.got, q)
	return q
}

// touch reports a process to the pool. The report or its result may be lost.
func (f *fleet) touch(c *proc, before ...store.Op) {
	op := store.Op{Kind: store.OpTouch, ID: store.ID{Session: c.session}, TTL: memberLease, Share: c.share}
	if c.till != 0 {
		op.Until = store.Time(f.now + 400_000)
	}
	fate := f.IntN(f.calm)
	switch {
	case fate < 2: // lost, as far as the process knows
		c.lose(f, int64(op.Until))
		return
	case fate < 4: // delayed
		if len(before) == 0 && op.Until != 0 {
			f.stuck = append(f.stuck, stuckTouch{f.now + f.Int64N(20_000_000), op})
		}
		c.lose(f, int64(op.Until))
		return
	}
	ops := f.apply(append(before, op)...)
	if fate < 6 { // the result is lost
		c.lose(f, max(int64(op.Until), f.now))
		return
	}
	if res := ops[len(ops)-1].Result; res.State == store.Granted {
		c.share, c.touched, c.till = res.Share, f.now, f.now+memberLease.Microseconds()
		c.cut, c.isle = false, nil
	}
}

// lose cuts a process off. Its last report reached the pool at touched at the latest.
func (c *proc) lose(f *fleet, touched int64) {
	if c.till == 0 {
		return // it never reached the pool
	}
	c.cut, c.touched = true, max(c.touched, touched)
	limits := make([]policy.IslandLimit, len(f.spec.Limits))
	var open []policy.IslandTicket
	var kept []*hers
	for k := range limits {
		in := f.p.unscoped[k].at
		limits[k] = policy.IslandLimit{Def: f.p.defs[k], Size: f.spec.Limits[k].Size, Burst: f.spec.Limits[k].Burst}
		limits[k].Def.Part = 0
		if in.IsStock(&f.p.defs[k]) {
			limits[k].Lo, limits[k].Hi = in.Last, in.Hi
		}
	}
	for _, q := range c.tickets {
		if q.closed == 0 && q.due > f.now && q.id.N != 0 {
			q.number = len(open)
			open = append(open, policy.IslandTicket{Amounts: q.amounts[:], Granted: q.granted, Answered: q.answered, Due: q.due})
			kept = append(kept, q)
			continue
		}
		for k := range limits {
			s := policy.Lingering{Amount: q.amounts[k], Granted: q.granted, Bound: q.granted + limits[k].Def.Most}
			if q.answered != 0 {
				s.Bound = min(s.Bound, q.answered)
			}
			if limits[k].Def.Guard == meter.Strict {
				s.Bound = q.due
			}
			if q.id.N == 0 {
				s.Granted = 0
			}
			if limits[k].Def.Kind == meter.Concurrency {
				s.Granted, s.Bound = 0, 0
				if q.closed == 0 {
					s.Bound = q.due
				}
			}
			limits[k].Standing = append(limits[k].Standing, s)
		}
		if f.now-q.granted < 300_000_000 {
			kept = append(kept, q)
		}
	}
	c.tickets = kept
	c.isle = policy.NewIsland(c.share, c.touched+silentAfter, c.till, limits, open)
	for _, q := range c.tickets {
		if q.id.N == 0 {
			q.number = -1
		}
	}
}

// back reconnects a process. First it reports what it granted on its own.
func (f *fleet) back(c *proc) {
	var ops []store.Op
	for _, q := range c.tickets {
		switch {
		case q.id.N == 0 && (q.closed == 0 && q.due > f.now || f.now-q.granted < 200_000_000):
			c.next++
			op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: c.session, N: c.next}, Agent: "a", Force: true, TTL: time.Minute, Amounts: amountsFor(f.p, q.amounts[:]...)}
			if q.closed == 0 && q.due > f.now {
				op.TTL = time.Duration(q.due-f.now+1) * time.Microsecond
			} else {
				op.Spent = true
			}
			ops = append(ops, op)
		case q.owed:
			ops = append(ops, store.Op{Kind: store.OpAnswer, ID: q.id, Verdict: store.VerdictOK}, store.Op{Kind: store.OpClose, ID: q.id})
		}
	}
	var told []*hers
	for _, q := range c.tickets {
		if q.id.N == 0 {
			told = append(told, q)
		}
	}
	n := c.next - uint64(countForced(ops))
	f.touch(c, ops...)
	if c.cut {
		return
	}
	for _, q := range told {
		if q.closed == 0 && q.due > f.now || f.now-q.granted < 200_000_000 {
			n++
			q.id = store.ID{Session: c.session, N: n}
		}
	}
	for _, q := range c.tickets {
		q.owed = false
	}
}

func countForced(ops []store.Op) (n int) {
	for i := range ops {
		if ops[i].Force {
			n++
		}
	}
	return n
}

// ask makes a process ask for a grant, from the pool or from its own share.
func (f *fleet) ask(c *proc) {
	a := f.amounts()
	ttl := []int64{2_000_000, 10_000_000, 30_000_000}[f.IntN(3)]
	if !c.cut {
		c.next++
		op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: c.session, N: c.next}, Agent: "a", TTL: time.Duration(ttl) * time.Microsecond, Amounts: amountsFor(f.p, a[:]...)}
		if f.apply(op)[0].Result.State == store.Granted {
			f.granted++
			c.tickets = append(c.tickets, &hers{sent: f.send(a, ttl), id: op.ID, granted: f.now, due: f.now + ttl})
		}
		return
	}
	if c.isle == nil {
		return
	}
	if ok, _ := c.isle.Allow(f.now, ttl, a[:]); ok {
		f.island++
		n := c.isle.Take(f.now, ttl, a[:])
		c.tickets = append(c.tickets, &hers{sent: f.send(a, ttl), number: n, granted: f.now, due: f.now + ttl})
	}
}

// end answers and closes a request.
func (f *fleet) end(c *proc) {
	if len(c.tickets) == 0 {
		return
	}
	q := c.tickets[f.IntN(len(c.tickets))]
	if q.closed != 0 || f.now < q.arrives || f.now >= q.due {
		return
	}
	q.closed, q.answered, q.ends = f.now, f.now, f.now
	switch {
	case !c.cut && q.id.N != 0:
		f.apply(store.Op{Kind: store.OpAnswer, ID: q.id, Verdict: store.VerdictOK}, closing(f.Rand, q.id, q.sent, f.spec.Limits))
	case c.isle != nil && q.number >= 0:
		c.isle.Answer(q.number, f.now)
		c.isle.Close(q.number, f.now)
		q.owed = q.id.N != 0
	default:
		q.owed = q.id.N != 0
	}
}

// oneShot sends a request of a process that is not a member.
func (f *fleet) oneShot() {
	a := f.amounts()
	for k := range f.spec.Limits {
		if f.spec.Limits[k].Kind == store.Concurrency {
			a[k] = 0 // it would not hold it
		}
	}
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1_000_000}, Agent: "cli", TTL: 5 * time.Second, Amounts: amountsFor(f.p, a[:]...), Spent: true}
	if f.apply(op)[0].Result.State == store.Granted {
		f.granted++
		f.send(a, 5_000_000).soon(f.now)
	}
}

// soon makes a request arrive within the shortest slack of a request without an answer.
func (q *sent) soon(now int64) { q.arrives = min(q.arrives, now+250_000) }

func (f *fleet) step() {
	switch f.IntN(20) {
	case 0:
		f.now += f.Int64N(10_000_000)
	default:
		f.now += f.Int64N(700_000)
	}
	for i := 0; i < len(f.stuck); i++ {
		if s := f.stuck[i]; s.at <= f.now {
			f.apply(s.op)
			f.stuck = append(f.stuck[:i], f.stuck[i+1:]...)
			i--
		}
	}
	for _, c := range f.procs {
		switch {
		case !c.cut && f.now-c.touched >= 900_000:
			f.touch(c)
		case c.cut && f.IntN(60) == 0:
			f.back(c)
		}
		for range f.IntN(4) {
			f.ask(c)
			f.end(c)
		}
	}
	if f.IntN(3) == 0 {
		f.oneShot()
	}
	if f.IntN(100) == 0 && len(f.procs) < 6 {
		f.join()
	}
	if f.IntN(300) == 0 { // a process leaves or is killed, and another one starts
		i := f.IntN(len(f.procs))
		if c := f.procs[i]; !c.cut && f.IntN(2) == 0 {
			f.apply(store.Op{Kind: store.OpTouch, ID: store.ID{Session: c.session}, Spent: true})
		}
		f.joined++
		f.procs[i] = &proc{session: f.joined}
	}
	if f.p.firstSilent != 0 {
		f.silence++
	}
}

// All processes together never exceed the provider's limits. Some of them are cut off from the pool for any time,
// messages are lost or late, and processes come and go.
func TestMembersThatAreCutOffStayWithinTheLimitsWithAllOthers(t *testing.T) {
	granted, island, silence, total := 0, 0, 0, 0
	for seed := range tape.Seeds(t, 150) {
		f, err := newFleet(seed)
		if err != nil {
			t.Fatal(err)
		}
		for range 600 {
			f.step()
			total++
		}
		if err := f.p.auditMembers(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := f.v.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted, island, silence = granted+f.granted, island+f.island, silence+f.silence
	}
	t.Logf("%d granted by pools, %d by members alone; in %d of %d steps somebody was silent", granted, island, silence, total)
	if island < granted/50 || silence < total/10 {
		t.Error("hardly anybody was ever alone")
	}
}
