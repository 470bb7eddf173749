package proof_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
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

// saturate asks for one more as soon as there is room, n times, and returns the part of the rate that was
// reached and how many requests the provider refused.
func saturate(l store.Limit, n int, answered bool, net sim.Delay, seed uint64) (reached float64, refused int, err error) {
	l.Name, l.Unit = "l", "u"
	rng := rand.New(rand.NewPCG(seed, 7))
	p, err := pool.New(backlog(l, 1, 1, sim.Delay{}, sim.Delay{}).spec, sim.Epoch)
	if err != nil {
		return 0, 0, err
	}
	type answer struct {
		at store.Time
		id store.ID
	}
	var due []answer
	var arrivals, grants []store.Time
	now := sim.Epoch
	for len(grants) < n {
		op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Minute, Spent: !answered}
		op.Amounts[0] = 1
		ops := []store.Op{op}
		p.Apply(now, ops)
		next := now + 1000
		if r := ops[0].Result; r.State == store.Granted {
			grants = append(grants, now)
			there := drawn(rng, net)
			arrivals = append(arrivals, now+there)
			if answered {
				due = append(due, answer{now + min(max(there, there+drawn(rng, net)), max(there, 150_000)), r.ID})
			}
			continue
		} else if r.Reason.At > now {
			next = r.Reason.At
		} else if len(due) > 0 {
			next = now + 1_000_000
		}
		slices.SortFunc(due, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
		if len(due) > 0 && due[0].at <= next {
			now = max(due[0].at, now)
			p.Apply(now, []store.Op{{Kind: store.OpAnswer, ID: due[0].id, Verdict: store.VerdictOK}, {Kind: store.OpClose, ID: due[0].id}})
			due = due[1:]
			continue
		}
		now = next
	}
	slices.Sort(arrivals)
	j := newJudge(&l, sim.Epoch)
	for _, at := range arrivals {
		j.arrive(at, at, 1)
	}
	// From the moment on at which the first burst is gone.
	first := int(max(l.Size, l.Burst))
	rate := float64(l.Size) / l.Window.Seconds()
	return float64(n-1-first) / grants[n-1].Sub(grants[first]).Seconds() / rate, j.refused, nil
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

func TestSmallLimitsReachTheirRateWithoutRefusals(t *testing.T) {
	t.Parallel()
	var worst [2]float64
	worst[0], worst[1] = 1, 1
	for seed := range tape.Seeds(t, 200) {
		l := smallLimit(rand.New(rand.NewPCG(seed, 8)))
		for k, least := range []float64{0.75, 0.85} {
			reached, refused, err := saturate(l, 300+4*int(max(l.Size, l.Burst)), k == 1, near, seed)
			if err != nil {
				t.Fatal(err)
			}
			worst[k] = min(worst[k], reached)
			if reached < least || refused > 0 {
				t.Fatalf("seed %d: %v %d/%v burst %d, answered %t: %.3f of the rate, want %.2f; %d refused",
					seed, l.Kind, l.Size, l.Window, l.Burst, k == 1, reached, least, refused)
			}
		}
	}
	t.Logf("at least %.3f of the rate without answers, %.3f with answers within 150 ms", worst[0], worst[1])
}

// The table in docs/performance.md: go test ./test/proof -run SmallLimitsTable -v.
func TestSmallLimitsTable(t *testing.T) {
	t.Parallel()
	for _, l := range []store.Limit{
		{Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Second},
		{Kind: store.Bucket, Size: 5, Burst: 5, Window: time.Second},
		{Kind: store.Bucket, Size: 5, Burst: 10, Window: time.Second},
		{Kind: store.Rolling, Size: 1, Window: time.Second},
		{Kind: store.Rolling, Size: 30, Window: 3 * time.Second},
	} {
		line := fmt.Sprintf("%-8v %2d/%v burst %2d", l.Kind, l.Size, l.Window, l.Burst)
		for _, answered := range []bool{true, false} {
			for _, net := range []sim.Delay{near, sim.LightTail} {
				const n = 20_000
				reached, refused, err := saturate(l, n, answered, net, 1)
				if err != nil {
					t.Fatal(err)
				}
				line += fmt.Sprintf("  answered %t, median %v: %5.1f%%, %.3f%% refused", answered, net.Median, 100*reached, 100*float64(refused)/n)
			}
		}
		t.Log(line)
	}
}
