package pool

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// reads are the methods of a pool that look at it. at is any time, also before and long after the latest step.
var reads = map[string]func(c *chaos, p *Pool, at store.Time){
	"AppendState": func(_ *chaos, p *Pool, _ store.Time) { p.AppendState(nil) },
	"Awake":       func(_ *chaos, p *Pool, _ store.Time) { p.Awake() },
	"Decided":     func(_ *chaos, p *Pool, _ store.Time) { p.Decided() },
	"Due":         func(c *chaos, p *Pool, _ store.Time) { p.Due([]store.Spec{c.spec}) },
	"EachOpen":    func(_ *chaos, p *Pool, _ store.Time) { p.EachOpen(func(uint64) {}) },
	"EachWaiting": func(_ *chaos, p *Pool, _ store.Time) { p.EachWaiting(func(uint64) bool { return true }) },
	"EachWatched": func(_ *chaos, p *Pool, _ store.Time) { p.EachWatched(func(uint64) bool { return true }) },
	"Edition":     func(_ *chaos, p *Pool, _ store.Time) { p.Edition() },
	"Fits":        func(c *chaos, p *Pool, _ store.Time) { _ = p.Fits(&c.spec, false) },
	"Foresee": func(c *chaos, p *Pool, at store.Time) {
		op := c.op()
		op.Kind = store.OpAcquire
		_ = p.Foresee(at, op.ID.Session, []store.Op{op})
	},
	"Fork":       func(_ *chaos, p *Pool, _ store.Time) { p.Fork() },
	"HasPlaces":  func(_ *chaos, p *Pool, _ store.Time) { p.HasPlaces() },
	"Hash":       func(_ *chaos, p *Pool, _ store.Time) { p.Hash() },
	"History":    func(_ *chaos, p *Pool, at store.Time) { p.History(at, 0) },
	"Index":      func(_ *chaos, p *Pool, _ store.Time) { p.Index("0") },
	"Is":         func(c *chaos, p *Pool, _ store.Time) { p.Is(&c.spec) },
	"IsMember":   func(_ *chaos, p *Pool, _ store.Time) { p.IsMember(1) },
	"Limits":     func(_ *chaos, p *Pool, _ store.Time) { p.Limits() },
	"Lives":      func(_ *chaos, p *Pool, at store.Time) { p.Lives(at, func(uint64) bool { return false }) },
	"Membership": func(_ *chaos, p *Pool, _ store.Time) { p.Membership(1) },
	"Next":       func(_ *chaos, p *Pool, _ store.Time) { p.Next() },
	"Now":        func(_ *chaos, p *Pool, _ store.Time) { p.Now() },
	"Pending":    func(_ *chaos, p *Pool, _ store.Time) { p.Pending(func(uint64) bool { return true }) },
	"Request":    func(c *chaos, p *Pool, _ store.Time) { p.Request(c.op().ID) },
	"Rules":      func(_ *chaos, p *Pool, _ store.Time) { p.Rules() },
	"Stated":     func(_ *chaos, p *Pool, _ store.Time) { p.Stated() },
	"Stirred":    func(_ *chaos, p *Pool, _ store.Time) { p.Stirred() },
	"Used":       func(_ *chaos, p *Pool, at store.Time) { p.Used(at, func(uint64) bool { return false }) },
	"View": func(_ *chaos, p *Pool, at store.Time) {
		v := p.View()
		v.Snapshot(at)
		v.Snapshot(at)
	},
	"Waiting":   func(_ *chaos, p *Pool, _ store.Time) { p.Waiting(1) },
	"WaitingOf": func(_ *chaos, p *Pool, _ store.Time) { p.WaitingOf(1) },
	"Waits":     func(c *chaos, p *Pool, _ store.Time) { p.Waits(c.op().ID) },
	"Wake":      func(_ *chaos, p *Pool, _ store.Time) { p.Wake() },
}

// explains are reads that first let happen in the records what time has brought by the latest step. So records differ, and
// decisions do not.
var explains = map[string]func(p *Pool){
	"Snapshot": func(p *Pool) { p.Snapshot(p.Now()) },
	"Missing":  func(p *Pool) { p.Missing(p.Fork(), p.Now(), 1, func(uint64) bool { return true }) },
}

// moves are the methods that may change decisions, or prepare for a change.
var moves = []string{
	"Apply", "Collect", "Compact", "CutOff", "HashDecisions", "HearOf", "Recollect", "Reform", "Refresh", "Remember", "Reset", "Serve", "SetRules", "Settle",
}

// Looking changes nothing: no read of a pool changes its state, and no explanation any later decision.
func TestLookingChangesNothing(t *testing.T) {
	for m := range reflect.TypeFor[*Pool]().Methods() {
		_, reading := reads[m.Name]
		_, explaining := explains[m.Name]
		if !reading && !explaining && !slices.Contains(moves, m.Name) {
			t.Errorf("Pool.%s: add it to reads, or say that it explains or moves the pool", m.Name)
		}
	}
	names := slices.Sorted(maps.Keys(reads))
	tripped := 0
	for seed := range tape.Seeds(t, 100) {
		c := newHashed(t, seed)
		draw := c.move
		if seed%2 == 0 {
			draw = c.predicted(t)
		}
		looker := *c
		looker.Rand = newHashed(t, seed+1000).Rand
		plain, explained := c.p.Fork(), c.p.Fork()
		for n := range 120 {
			m := draw()
			name := names[looker.IntN(len(names))]
			at := c.p.Now().Add(looker.pick(0, -1000, 1, 90_000_000, 4_000_000_000_000, 300_000_000_000_000))
			before := c.p.AppendState(nil)
			if reads[name](&looker, c.p, at); !bytes.Equal(c.p.AppendState(nil), before) {
				t.Fatalf("seed %d, step %d: %s at %v changed the pool", seed, n, name, at)
			}
			for _, explain := range explains {
				explain(explained)
			}
			ops, same, told := m.applyTo(c.p), m.applyTo(plain), m.applyTo(explained)
			c.note(ops)
			if got, want := seen(c.p, ops), seen(plain, same); got != want {
				t.Fatalf("seed %d, step %d: with reads\n%s\nand without\n%s", seed, n, got, want)
			}
			if got, want := seen(explained, told), seen(plain, same); got != want {
				t.Fatalf("seed %d, step %d: with explanations\n%s\nand without\n%s", seed, n, got, want)
			}
		}
		for i := int32(1); i < plain.stocks.End(); i++ {
			if plain.stocks.At(i).breaker.From != 0 {
				tripped++
				break
			}
		}
	}
	t.Logf("in %d traces a breaker tripped", tripped)
}

// judge decides the same again, and writes nothing once the meters are at the pool's time.
func TestJudgingWritesNothing(t *testing.T) {
	judged, went := 0, 0
	for seed := range tape.Seeds(t, 50) {
		c := newHashed(t, seed)
		draw := c.move
		if seed%2 == 0 {
			draw = c.predicted(t)
		}
		for n := range 100 {
			m := draw()
			c.note(m.applyTo(c.p))
			p := c.p.Fork()
			for i := int32(1); i < p.tickets.End(); i++ {
				tk := p.tickets.At(i)
				if tk.state != stateWaiting {
					continue
				}
				for _, v := range []view{{Pool: p}, {Pool: p, pass: p.claims}, {Pool: p, whole: true}} {
					first := *v.judge(tk)
					first.kept = slices.Clone(first.kept)
					before := p.AppendState(nil)
					again := *v.judge(tk)
					if !reflect.DeepEqual(first.kept, slices.Clone(again.kept)) {
						t.Fatalf("seed %d, step %d: kept %+v, then %+v", seed, n, first.kept, again.kept)
					}
					if first.kept, again.kept = nil, nil; !reflect.DeepEqual(first, again) {
						t.Fatalf("seed %d, step %d: %+v, then %+v", seed, n, first, again)
					}
					if !bytes.Equal(p.AppendState(nil), before) {
						t.Fatalf("seed %d, step %d: judging changed the pool", seed, n)
					}
					judged++
					if first.goes {
						went++
					}
				}
			}
		}
	}
	t.Logf("%d verdicts, %d go", judged, went)
}

// predicted gives the pool of c stocks with breakers, and returns steps in which responses state that less and less remains.
func (c *chaos) predicted(tb testing.TB) func() move {
	for i := range c.spec.Limits {
		if l := &c.spec.Limits[i]; l.Kind != store.Concurrency {
			l.Kind, l.Per, l.Size, l.Burst, l.Window = store.Fixed, 0, int64(c.pick(20, 100)), 0, time.Hour
			l.Reset, l.Late, l.Guard = c.now+1, false, store.GuardOff
		}
	}
	c.spec.Light, c.spec.Reserve = store.Light{}, 0
	c.spec.Breaker = store.Breaker{Within: c.pick(time.Minute, time.Hour), Samples: 3 + c.IntN(5), Open: c.IntN(2) == 0}
	var err error
	if c.p, err = New(c.spec, c.now); err != nil {
		tb.Fatal(err)
	}
	c.p.HashDecisions()
	remaining := int64(0)
	return func() move {
		c.now = c.now.Add(c.pick(0, time.Millisecond, time.Second, 5*time.Second, 30*time.Second))
		ops := []store.Op{c.usual()}
		if l := &c.spec.Limits[0]; c.IntN(3) == 0 {
			if remaining -= int64(c.IntN(3)); remaining < 1 {
				remaining = l.Size
			}
			ops = append(ops, store.Op{Kind: store.OpObserve, ID: store.ID{Session: 1}, Verdict: store.VerdictOK,
				Observed: []store.Observed{{Limit: l.Name, Size: l.Size, Remaining: remaining, ResetIn: -1}}})
		}
		return move{now: c.now, ops: ops}
	}
}

// usual returns an operation that most steps have.
func (c *chaos) usual() store.Op {
	if c.IntN(3) == 0 && len(c.ids) > 0 {
		return store.Op{Kind: []store.OpKind{store.OpClose, store.OpPoll}[c.IntN(2)], ID: c.ids[c.IntN(len(c.ids))]}
	}
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: c.name("a", 3), Class: uint8(c.IntN(len(c.spec.Classes)))}
	op.Wait, op.TTL = c.pick(-1, 0, time.Minute), time.Minute
	for i := range c.spec.Limits {
		op.Amounts = append(op.Amounts, store.Amount{Limit: c.spec.Limits[i].Name, N: int64(c.pick(1, 1, 3))})
	}
	return op
}
