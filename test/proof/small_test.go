package proof_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Small limits: one that comes back within a few seconds, and holds at least what a second brings.
// On them the slack is as long as the limit itself.

// near is a network on which answers begin within 150 ms.
var near = sim.Delay{Median: 40 * time.Millisecond, Sigma: 0.4}

// small saturates a small limit: it asks for one more as soon as there is room.
type small struct {
	answered bool                        // else tickets are spent with their grant
	mixed    bool                        // but every third is answered
	tells    bool                        // of a spent ticket, that the provider refused it
	delay    func(*rand.Rand) store.Time // of a message, one way

	limit   store.Limit
	pool    *pool.Pool
	judge   *judge
	rng     *rand.Rand
	now     store.Time
	grants  []store.Time
	coming  []coming
	refused []store.Time
	told    store.Time // when the pool first learned of that
}

// coming is a message on its way.
type coming struct {
	at      store.Time
	id      store.ID
	held    bool // an answer is told
	there   bool // it has arrived at the provider, and is its answer
	refused bool
}

func lognormal(d sim.Delay) func(*rand.Rand) store.Time {
	return func(rng *rand.Rand) store.Time { return drawn(rng, d) }
}

// within draws evenly.
func within(d time.Duration) func(*rand.Rand) store.Time {
	return func(rng *rand.Rand) store.Time { return store.Time(rng.Int64N(d.Microseconds() + 1)) }
}

// run has n requests granted, and waits until all have arrived.
func (s *small) run(t *testing.T, l store.Limit, n int, seed uint64) {
	t.Helper()
	l.Name, l.Unit = "l", "u"
	p, err := pool.New(backlog(l, 1, 1, sim.Delay{}, sim.Delay{}).spec, sim.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	s.limit, s.pool, s.judge, s.now = l, p, newJudge(&l, sim.Epoch), sim.Epoch
	s.rng = rand.New(rand.NewPCG(seed, 7))
	for len(s.grants) < n {
		again := s.ask()
		if len(s.coming) > 0 && s.coming[0].at <= again {
			s.next()
		} else {
			s.now = again
		}
	}
	for len(s.coming) > 0 {
		s.next()
	}
}

// ask asks once and returns when to ask again, if nothing happens before.
func (s *small) ask() store.Time {
	held := s.answered || s.mixed && len(s.grants)%3 == 0
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Minute, Spent: !held}
	op.Amounts = []store.Amount{{Unit: "u", N: 1}}
	ops := []store.Op{op}
	s.pool.Apply(s.now, ops)
	r := ops[0].Result
	switch {
	case r.State == store.Granted:
		s.grants = append(s.grants, s.now)
		s.send(coming{at: s.now + s.delay(s.rng), id: r.ID, held: held})
		return s.now
	case r.Reason.At > s.now:
		return r.Reason.At
	case len(s.coming) > 0:
		return s.coming[0].at
	default:
		return s.now + 1000
	}
}

func (s *small) send(c coming) {
	i, _ := slices.BinarySearchFunc(s.coming, c, func(a, b coming) int { return cmp.Compare(a.at, b.at) })
	s.coming = slices.Insert(s.coming, i, c)
}

// next lets the next message arrive.
func (s *small) next() {
	c := s.coming[0]
	s.coming = s.coming[1:]
	s.now = c.at
	if !c.there {
		c.there = true
		if c.refused = !s.judge.arrive(s.now, s.now, 1); c.refused {
			s.refused = append(s.refused, s.now)
		}
		c.at += s.delay(s.rng)
		s.send(c)
		return
	}
	verdict := store.VerdictOK
	if c.refused {
		verdict = store.VerdictThrottled
		if s.told == 0 && (c.held || s.tells) {
			s.told = s.now
		}
	}
	switch {
	case c.held:
		s.pool.Apply(s.now, []store.Op{{Kind: store.OpAnswer, ID: c.id, Verdict: verdict}, {Kind: store.OpClose, ID: c.id}})
	case s.tells && c.refused:
		s.pool.Apply(s.now, []store.Op{{Kind: store.OpObserve, ID: store.ID{Session: 1}, Verdict: verdict}})
	}
}

// reached returns the part of the rate that was reached after a moment at which the first burst was gone.
func (s *small) reached(from store.Time) float64 {
	first := int(max(s.limit.Size, s.limit.Burst))
	for s.grants[first] < from {
		first++
	}
	last := len(s.grants) - 1
	rate := float64(s.limit.Size) / s.limit.Window.Seconds()
	return float64(last-first) / s.grants[last].Sub(s.grants[first]).Seconds() / rate
}

// smallLimit draws a limit that comes back within three seconds and holds a second's worth.
func smallLimit(rng *rand.Rand) store.Limit {
	window := []time.Duration{time.Second, time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second}[rng.IntN(5)]
	l := store.Limit{Kind: store.Rolling, Size: 1 + rng.Int64N(30), Window: window}
	if rng.IntN(3) > 0 {
		l.Kind = store.Bucket
		l.Burst = l.Size + rng.Int64N(2*l.Size)
	}
	return l
}

// No seed can make it fail by chance: all delays are within what is promised.
func TestSmallLimitsReachTheirRateWithoutRefusals(t *testing.T) {
	t.Parallel()
	worst := [3]float64{1, 1, 1}
	for seed := range tape.Seeds(t, 100) {
		rng := rand.New(rand.NewPCG(seed, 8))
		l := smallLimit(rng)
		if seed < 2 {
			l = []store.Limit{{Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Second}, {Kind: store.Rolling, Size: 1, Window: time.Second}}[seed]
		}
		for k, c := range []struct {
			small
			least float64
		}{
			{small{delay: within(250 * time.Millisecond)}, 0.75},
			{small{delay: within(75 * time.Millisecond), answered: true}, 0.85},
			{small{delay: lognormal(sim.Delay{Median: 75 * time.Millisecond}), answered: true}, 0.85}, // all after 150 ms
		} {
			c.run(t, l, 200+4*int(max(l.Size, l.Burst)), seed)
			worst[k] = min(worst[k], c.reached(0))
			if c.reached(0) < c.least || len(c.refused) > 0 {
				t.Fatalf("seed %d: %v %d/%v burst %d, answered %t: %.3f of the rate, want %.2f; refused at %v",
					seed, l.Kind, l.Size, l.Window, l.Burst, c.answered, c.reached(0), c.least, c.refused)
			}
		}
	}
	t.Logf("at least %.3f of the rate without answers, %.3f with answers within 150 ms, %.3f with all after 150 ms", worst[0], worst[1], worst[2])
}

// One a second without answers, on a network that is too slow for that: what the provider refuses is told
// once, and from then on requests have the whole slack to arrive.
func TestOneRefusalEndsRefusalsOnASmallLimit(t *testing.T) {
	t.Parallel()
	for _, l := range []store.Limit{
		{Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Second},
		{Kind: store.Rolling, Size: 1, Window: time.Second},
	} {
		for seed := range uint64(3) {
			silent := small{delay: lognormal(sim.LightTail)}
			silent.run(t, l, 3000, seed)
			told := small{delay: lognormal(sim.LightTail), tells: true}
			told.run(t, l, 3000, seed)
			if len(silent.refused) < 3 {
				t.Errorf("%v, seed %d: refused %d times: the trace shows nothing", l.Kind, seed, len(silent.refused))
			}
			if len(told.refused) != 1 || told.refused[0] != silent.refused[0] {
				t.Fatalf("%v, seed %d: told of it, refused at %v; not told, at %v", l.Kind, seed, told.refused, silent.refused)
			}
			mixed := small{delay: lognormal(sim.LightTail), mixed: true}
			mixed.run(t, l, 3000, seed)
			if last := mixed.refused[len(mixed.refused)-1]; mixed.told == 0 || last > mixed.told {
				t.Fatalf("%v, seed %d: refused at %v, though an answer told of it at %v", l.Kind, seed, last, mixed.told)
			}
			t.Logf("%v, seed %d: refused %d times, 1 if told; then %.3f of the rate", l.Kind, seed, len(silent.refused), told.reached(told.refused[0]+600_000_000))
		}
	}
}

// The table in docs/performance.md: go test ./test/proof -run SmallLimitsTable -v.
func TestSmallLimitsTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		store.Limit
	}{
		{"1/s, burst 1", store.Limit{Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Second}},
		{"2/s, burst 2", store.Limit{Kind: store.Bucket, Size: 2, Burst: 2, Window: time.Second}},
		{"5/s, burst 5", store.Limit{Kind: store.Bucket, Size: 5, Burst: 5, Window: time.Second}},
		{"1/s, rolling", store.Limit{Kind: store.Rolling, Size: 1, Window: time.Second}},
		{"30/3s, rolling", store.Limit{Kind: store.Rolling, Size: 30, Window: 3 * time.Second}},
	} {
		row := "| " + c.name + " |"
		for _, answered := range []bool{true, false} {
			for _, net := range []sim.Delay{near, sim.LightTail} {
				const n = 10_000
				s := small{delay: lognormal(net), answered: answered}
				s.run(t, c.Limit, n, 1)
				row += fmt.Sprintf(" %.1f%%, %d |", 100*s.reached(0), len(s.refused))
			}
		}
		t.Log(row)
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/performance.md does not have this row: %s", row)
		}
	}
}
