package pool

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

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

// proc is a process. It knows only what its replica of the pool does.
type proc struct {
	session uint64
	next    uint64
	rep     *Pool
	missed  []moment
	share   int64
	touched int64 // latest time at which a report of it may have reached the pool
	till    int64 // end of its lease; 0: it was not heard since it was last cut off
	cut     bool
	isle    *Share
	tickets []*hers
}

func (c *proc) owns(session uint64) bool { return session == c.session }

// hers is a request of a process.
type hers struct {
	*sent
	id     store.ID
	here   bool // granted while cut off, and the log does not know it
	due    int64
	closed int64
	owed   bool // the log does not know yet that it has ended
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
	var err error
	if f.p, err = New(f.spec, store.Time(f.now)); err != nil {
		return f, err
	}
	for range 1 + f.IntN(4) {
		f.join()
	}
	return f, nil
}

func (f *fleet) join() {
	f.joined++
	c := &proc{session: f.joined}
	c.load(f.p)
	f.procs = append(f.procs, c)
}

// load gives a process a new replica.
func (c *proc) load(p *Pool) {
	c.rep, c.missed = p.Fork(), nil
	c.rep.Remember(c.owns)
}

// catchUp brings a replica up to date.
func (c *proc) catchUp(f *fleet) {
	if f.IntN(3) == 0 { // it is far behind
		c.load(f.p)
	}
	for _, m := range c.missed {
		c.rep.Apply(store.Time(m.at), m.ops)
	}
	c.missed = nil
}

// apply carries out operations in the log and in all replicas.
func (f *fleet) apply(ops ...store.Op) []store.Op {
	for _, c := range f.procs {
		copied := slices.Clone(ops)
		if c.cut {
			c.missed = append(c.missed, moment{f.now, copied})
		} else {
			c.rep.Apply(store.Time(f.now), copied)
		}
	}
	f.p.Apply(store.Time(f.now), ops)
	return ops
}

// applyFor is apply for operations of a process. Their fate may remain unknown to it: then it is cut off.
func (f *fleet) applyFor(c *proc, ops ...store.Op) (known bool) {
	switch fate := f.IntN(f.calm); {
	case fate > 1:
		f.apply(ops...)
		return true
	case fate == 0:
		c.cut = true
		f.apply(ops...)
	}
	unsure := map[store.ID]bool{}
	for i := range ops {
		unsure[ops[i].ID] = true
	}
	c.lose(f, c.touched, unsure)
	return false
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
func (f *fleet) touch(c *proc) {
	op := store.Op{Kind: store.OpTouch, ID: store.ID{Session: c.session}, TTL: memberLease, Share: c.share}
	if c.till != 0 {
		op.Until = store.Time(f.now + 400_000)
	}
	fate := f.IntN(f.calm)
	switch {
	case fate < 2: // lost, as far as the process knows
		c.lose(f, int64(op.Until), nil)
		return
	case fate < 4: // delayed
		if op.Until != 0 {
			f.stuck = append(f.stuck, stuckTouch{f.now + f.Int64N(20_000_000), op})
		}
		c.lose(f, int64(op.Until), nil)
		return
	}
	if c.cut = fate < 6; c.cut { // the result is lost
		f.apply(op)
		c.lose(f, max(int64(op.Until), f.now), nil)
		return
	}
	if res := f.apply(op)[0].Result; res.State == store.Granted {
		c.share, c.touched, c.till = res.Share, f.now, f.now+memberLease.Microseconds()
	}
}

// lose cuts a process off. Its last report reached the pool at touched at the latest.
func (c *proc) lose(f *fleet, touched int64, unsure map[store.ID]bool) {
	c.cut, c.isle, c.touched = true, nil, max(c.touched, touched)
	if c.till == 0 || c.share == 0 {
		return // it was not heard
	}
	var err error
	c.isle, err = c.rep.CutOff(store.Time(f.now), &CutOff{
		Share: c.share, Heard: store.Time(c.touched), End: store.Time(c.till), Mine: c.owns, Unsure: unsure,
	})
	if err != nil {
		panic(err)
	}
}

// back reconnects a process. First it states what it granted on its own, and what has ended.
func (f *fleet) back(c *proc) {
	var ops []store.Op
	for _, q := range c.tickets {
		if q.owed && !q.here {
			ops = append(ops, store.Op{Kind: store.OpAnswer, ID: q.id, Verdict: store.VerdictOK}, store.Op{Kind: store.OpClose, ID: q.id})
		}
	}
	if c.isle != nil {
		ops = append(ops, c.isle.Missing(store.Time(f.now), c.session)...)
	}
	switch fate := f.IntN(5); {
	case fate == 0:
		return
	case fate == 1:
		f.apply(ops[:f.IntN(len(ops)+1)]...)
		return
	}
	f.apply(ops...)
	c.catchUp(f)
	c.cut, c.isle, c.till = false, nil, 0
	for _, q := range c.tickets {
		q.owed, q.here = false, false
	}
	f.touch(c)
}

// ask makes a process ask for a grant, from the pool or from its own share.
func (f *fleet) ask(c *proc) {
	a := f.amounts()
	ttl := []int64{2_000_000, 10_000_000, 30_000_000}[f.IntN(3)]
	c.next++
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: c.session, N: c.next}, Agent: "a", TTL: time.Duration(ttl) * time.Microsecond, Amounts: amountsFor(f.p, a[:]...)}
	switch {
	case c.cut && c.isle == nil:
		return
	case c.cut:
		c.isle.Do(store.Time(f.now), &op)
	default:
		ops := []store.Op{op}
		if !f.applyFor(c, ops...) {
			return
		}
		op.Result.State, _ = f.p.Request(op.ID)
	}
	if op.Result.State != store.Granted {
		return
	}
	c.tickets = append(c.tickets, &hers{sent: f.send(a, ttl), id: op.ID, here: c.cut, due: f.now + ttl})
	if c.cut {
		f.island++
	} else {
		f.granted++
	}
}

// end answers and closes a request.
func (f *fleet) end(c *proc) {
	if len(c.tickets) == 0 {
		return
	}
	i := f.IntN(len(c.tickets))
	q := c.tickets[i]
	if q.closed != 0 || f.now < q.arrives || f.now >= q.due {
		if f.now >= q.due+1_000_000 && !q.owed && !q.here {
			c.tickets = slices.Delete(c.tickets, i, i+1)
		}
		return
	}
	q.closed, q.ends = f.now, f.now
	ops := []store.Op{{Kind: store.OpAnswer, ID: q.id, Verdict: store.VerdictOK}, closing(f.Rand, q.id, q.sent, f.spec.Limits)}
	if !c.cut && f.applyFor(c, ops...) {
		return
	}
	q.owed = true
	for i := range ops {
		switch {
		case c.isle == nil:
		case q.here:
			c.isle.Do(store.Time(f.now), &ops[i])
		default:
			c.isle.Know(store.Time(f.now), &ops[i])
		}
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
		f.procs[i].load(f.p)
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
