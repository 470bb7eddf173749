package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// line is a pool in which n requests of many agents wait and one can go each millisecond.
type line struct {
	pool   *Pool
	now    store.Time
	agents []string
	next   int
	open   store.ID // ticket of the last grant
	ops    [3]store.Op
}

func newLine(tb testing.TB, n int) *line {
	tb.Helper()
	l := &line{now: 1_767_225_600_000_000}
	p, err := New(store.Spec{
		Name:       "p",
		Limits:     []store.Limit{{Name: "l", Unit: "requests", Kind: store.Bucket, Size: 1000, Burst: 1, Window: time.Second, Guard: store.GuardOff}},
		Classes:    []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		MaxWaiting: 2 * n,
		Throttle:   store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Overload:   store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}, l.now)
	if err != nil {
		tb.Fatal(err)
	}
	l.pool = p
	for i := range max(n/4, 1) {
		l.agents = append(l.agents, fmt.Sprintf("agent-%d", i))
	}
	for range n + 1 {
		l.ops[0] = l.acquire()
		p.Apply(l.now, l.ops[:1])
	}
	if got := p.queue.Len(); got != n {
		tb.Fatalf("%d wait, want %d", got, n)
	}
	return l
}

var one = []store.Amount{{Unit: "requests", N: 1}}

func (l *line) acquire() store.Op {
	l.next++
	op := store.Op{
		Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: l.agents[l.next%len(l.agents)], Class: uint8(l.next % 3), Wait: -1, TTL: time.Minute,
	}
	op.Amounts = one
	return op
}

// step queues one more request and grants one, which the next step collects and closes.
func (l *line) step(tb testing.TB) {
	l.now += 1000
	l.ops[0] = l.acquire()
	l.ops[1] = store.Op{Kind: store.OpPoll, ID: l.open}
	l.ops[2] = store.Op{Kind: store.OpClose, ID: l.open}
	l.pool.Apply(l.now, l.ops[:])
	switch d := l.pool.Decided(); {
	case len(d) == 1:
		l.open = d[0]
	case len(d) == 0 && l.ops[0].Result.State == store.Granted: // its agent had no waiting request
		l.open = l.ops[0].Result.ID
	default:
		tb.Fatalf("%d were let in and the newcomer is %v", len(d), l.ops[0].Result.State)
	}
}

func BenchmarkEnqueueAndGrant(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			l := newLine(b, n)
			b.ReportAllocs()
			for b.Loop() {
				l.step(b)
			}
		})
	}
}

// A grant visits the heads of the lanes once or twice, however many requests wait. Only the depth of the trees grows
// with the queue.
func TestPassesPerGrantDoNotGrowWithTheLine(t *testing.T) {
	const steps = 1000
	passes := func(n int) float64 {
		l := newLine(t, n)
		before := l.pool.claims
		for range steps {
			l.step(t)
		}
		return float64(l.pool.claims-before) / steps
	}
	few, many := passes(100), passes(100_000)
	t.Logf("passes per enqueue and grant: %.2f with 100 waiting, %.2f with 100,000", few, many)
	if many > few+0.01 || many > 3 {
		t.Errorf("%.2f passes with 100,000 waiting, %.2f with 100", many, few)
	}
}

// BenchmarkRamps measures an acquire while requests for many models wait, each model in a ramp of its own.
func BenchmarkRamps(b *testing.B) {
	for _, models := range []int{1, 16, maxRamps} {
		b.Run(fmt.Sprintf("models=%d", models), func(b *testing.B) {
			now := store.Time(1_767_225_600_000_000)
			p, err := New(store.Spec{
				Name:       "p",
				Limits:     []store.Limit{{Name: "l", Unit: "requests", Kind: store.Rolling, Per: store.PerModel, Window: time.Minute, Guard: store.GuardOff}},
				Classes:    []store.Class{{Name: "p0", Weight: 1}},
				MaxWaiting: 4 * models,
				Throttle:   store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
				Overload:   store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
			}, now)
			if err != nil {
				b.Fatal(err)
			}
			ops := make([]store.Op, 1)
			ask := func(i int, wait time.Duration) {
				ops[0] = store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", Model: fmt.Sprint("m", i%models), Wait: wait, TTL: time.Minute}
				ops[0].Amounts = one
				p.Apply(now, ops)
			}
			for i := range 4 * models {
				ask(i, -1)
			}
			b.ResetTimer()
			for i := range b.N {
				now += 1000
				ask(i, 0)
			}
		})
	}
}
