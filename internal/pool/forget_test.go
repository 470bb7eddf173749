package pool

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// forgetful is a pool that loses its memory now and then, with its callers and the provider.
type forgetful struct {
	*rand.Rand
	spec    store.Spec
	p       *Pool
	v       provider
	now     int64
	open    []*hers
	n       uint64
	asserts bool // callers report the tickets that they hold
	after   int  // number of grants within a minute of a loss
	lost    int64
}

func newForgetful(seed uint64) *forgetful {
	f := &forgetful{Rand: rand.New(rand.NewPCG(seed, 13)), now: 1_767_225_600_123_457, lost: -1 << 60}
	f.asserts = f.IntN(2) == 0
	f.spec = classesSpec()
	for i := range 1 + f.IntN(3) {
		l := store.Limit{
			Name: strconv.Itoa(i), Unit: "u" + strconv.Itoa(i), Kind: store.Kind(f.IntN(3)),
			Size: []int64{3, 7, 10, 25}[f.IntN(4)], Window: []time.Duration{5 * time.Second, 7_777_777 * time.Microsecond, time.Minute, 10 * time.Minute}[f.IntN(4)],
			Per: []store.Scope{0, 0, store.PerModel}[f.IntN(3)],
		}
		switch l.Kind {
		case store.Bucket:
			l.Burst = 1 + f.Int64N(l.Size)
		case store.Fixed:
			f.v.resets[i] = f.now - f.Int64N(600_000_000)
			if f.IntN(3) > 0 {
				l.Reset = store.Time(f.v.resets[i] + f.Int64N(2_400_001) - 1_200_000)
			}
		}
		f.spec.Limits = append(f.spec.Limits, l)
	}
	f.v.limits = f.spec.Limits
	f.fresh()
	return f
}

func (f *forgetful) fresh() {
	var err error
	if f.p, err = New(f.spec, store.Time(f.now)); err != nil {
		panic(err)
	}
}

func (f *forgetful) apply(ops ...store.Op) []store.Op {
	f.p.Apply(store.Time(f.now), ops)
	return ops
}

func (f *forgetful) acquire(id store.ID, a [store.MaxLimits]int64, ttl int64) store.Op {
	return store.Op{Kind: store.OpAcquire, ID: id, Agent: "a", Model: "m", TTL: time.Duration(ttl) * time.Microsecond, Amounts: amountsFor(f.p, a[:]...)}
}

func (f *forgetful) ask() {
	var a [store.MaxLimits]int64
	for k := range f.spec.Limits {
		a[k] = f.Int64N(3)
	}
	a[f.IntN(len(f.spec.Limits))]++
	f.n++
	const ttl = 20_000_000
	op := f.acquire(store.ID{Session: 1, N: f.n}, a, ttl)
	op.Spent = f.IntN(4) == 0 // its caller holds no ticket afterwards
	if f.apply(op)[0].Result.State != store.Granted {
		return
	}
	if f.now-f.lost < 60_000_000 {
		f.after++
	}
	delays := []int64{0, 500_000, 1_000_000}
	if op.Spent {
		delays = []int64{0, 100_000, 250_000} // within the shortest slack of a request without an answer
	}
	q := &sent{arrives: f.now + delays[f.IntN(3)], amounts: a}
	f.v.got = append(f.v.got, q)
	if !op.Spent {
		f.open = append(f.open, &hers{sent: q, id: op.ID, due: f.now + ttl})
	}
}

func (f *forgetful) step() {
	f.now += f.Int64N([]int64{3, 200_000, 1_000_000, 20_000_000}[f.IntN(4)])
	for range f.IntN(5) {
		f.ask()
	}
	for i := 0; i < len(f.open); i++ {
		q := f.open[i]
		switch {
		case f.now >= q.due:
		case f.now >= q.arrives && f.IntN(3) == 0:
			f.apply(store.Op{Kind: store.OpAnswer, ID: q.id, Verdict: store.VerdictOK}, closing(f.Rand, q.id, q.sent, f.spec.Limits))
		case f.now < q.arrives && f.IntN(8) == 0: // it was never sent
			f.apply(store.Op{Kind: store.OpCancel, ID: q.id})
			q.amounts = [store.MaxLimits]int64{}
		default:
			continue
		}
		f.open = append(f.open[:i], f.open[i+1:]...)
		i--
	}
	if f.IntN(60) == 0 {
		f.lose()
	}
}

// lose replaces the pool by a new one.
func (f *forgetful) lose() {
	f.lost = f.now
	f.fresh()
	f.apply(store.Op{Kind: store.OpForget})
	for range f.IntN(3) { // others report the same loss
		f.now += f.Int64N(1_000_000)
		if f.asserts {
			for _, q := range f.open {
				op := f.acquire(q.id, q.amounts, max(q.due-f.now, 1))
				op.Force = true
				f.apply(op)
			}
		}
		f.apply(store.Op{Kind: store.OpForget})
	}
}

// A pool that has lost its memory never exceeds the provider's limits on windows up to ten minutes. It does not depend on
// what it had granted before, or on callers reporting their tickets.
func TestAForgetfulPoolStaysWithinTheLimits(t *testing.T) {
	granted, after := 0, 0
	for seed := range tape.Seeds(t, 150) {
		f := newForgetful(seed)
		for range 400 {
			f.step()
		}
		if err := f.p.audit(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := f.v.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		granted, after = granted+len(f.v.got), after+f.after
	}
	t.Logf("%d granted, %d of them within a minute of a loss", granted, after)
	if after < granted/50 {
		t.Error("after a loss hardly anything goes on")
	}
}

// The effect of time on withheld shares does not depend on reads in between.
func TestWhatIsWithheldDoesNotDependOnWhoLooks(t *testing.T) {
	for seed := range tape.Seeds(t, 100) {
		f, err := newFleet(seed)
		if err != nil {
			t.Fatal(err)
		}
		other, err := New(f.spec, store.Time(f.now))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 300 {
			f.now += f.Int64N([]int64{300_000, 2_000_000, 100_000_000}[f.IntN(3)])
			a := f.amounts()
			asked := amountsFor(f.p, a[:]...)
			ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 9}, Agent: "a", TTL: time.Second, Amounts: asked}}
			if f.IntN(2) == 0 {
				ops = append(ops, store.Op{Kind: store.OpTouch, ID: store.ID{Session: 1 + f.Uint64N(4)}, Share: f.Int64N(5), TTL: time.Minute, Spent: f.IntN(9) == 0})
			}
			mine, theirs := append([]store.Op(nil), ops...), append([]store.Op(nil), ops...)
			f.p.Apply(store.Time(f.now), mine)
			other.Apply(store.Time(f.now), theirs)
			if !reflect.DeepEqual(mine, theirs) {
				t.Fatalf("seed %d, step %d: who looks is told\n%+v\nand who does not\n%+v", seed, n, mine[0].Result, theirs[0].Result)
			}
			for range f.IntN(4) {
				f.now += f.Int64N(3_000_000)
				f.p.Serve(store.Time(f.now))
				f.p.Snapshot(store.Time(f.now))
			}
		}
		if a, b := f.p.Snapshot(store.Time(f.now)), other.Snapshot(store.Time(f.now)); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: who looks sees\n%+v\nand who does not\n%+v", seed, a, b)
		}
	}
}

// A meter created after a loss counts as spent until the reset is certain. A stated reset may be off by 1.2 s, so the
// window may still be open.
func TestAMeterMadeAroundAResetAfterALossIsFull(t *testing.T) {
	const start, second = int64(1_767_225_600_000_000), int64(1_000_000)
	spec := classesSpec()
	spec.Limits = []store.Limit{{Name: "l", Unit: "u", Kind: store.Fixed, Size: 7, Window: time.Minute, Per: store.PerModel, Reset: store.Time(start)}}
	p, err := New(spec, store.Time(start+40*second))
	if err != nil {
		t.Fatal(err)
	}
	p.Apply(store.Time(start+40*second), []store.Op{{Kind: store.OpForget}})
	n := uint64(0)
	ask := func(at int64, model string) bool {
		n++
		op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1, N: n}, Agent: "a", Model: model, TTL: time.Second, Spent: true}
		op.Amounts = amountsFor(p, 1)
		ops := []store.Op{op}
		p.Apply(store.Time(at), ops)
		return ops[0].Result.State == store.Granted
	}
	// The reset is stated for 60 s: it may come as late as 61.2 s.
	if ask(start+61*second, "early") {
		t.Error("a request went while the window before may still be open")
	}
	if !ask(start+61*second+300_000, "late") {
		t.Error("a request was held after a reset that is certain")
	}
	if !ask(start+64*second, "early") { // when the probe no longer counts
		t.Error("what was forgotten counts after the reset")
	}
}
