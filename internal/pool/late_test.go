package pool

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// The provider counts a request when it arrives, which is at the latest when its response begins. Whatever is reported late
// of that, and however late: no window of the provider has more than its size.
func TestLateReportsKeepWindows(t *testing.T) {
	const size = 10
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		window := []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}[r.IntN(3)]
		p, err := New(classesSpec(store.Limit{
			Name: "window", Kind: store.Rolling, Unit: "requests", Size: size, Window: window, Guard: store.GuardStrict, Late: r.IntN(3) == 0,
		}), storeStart)
		if err != nil {
			t.Fatal(err)
		}
		type sent struct {
			id       store.ID
			answered store.Time
			due      store.Time
		}
		var open []sent
		var arrived []store.Time
		for now := storeStart; len(arrived) < 300; now = now.Add(time.Duration(r.Int64N(int64(window / 8)))) {
			for i := len(open) - 1; i >= 0; i-- {
				if s := open[i]; s.due <= now {
					age := min(now.Sub(s.answered), store.MaxAge)
					p.Apply(now, []store.Op{
						{Kind: store.OpAnswer, ID: s.id, Verdict: store.VerdictOK, Age: age}, {Kind: store.OpClose, ID: s.id, Age: age},
					})
					open = slices.Delete(open, i, i+1)
				}
			}
			ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Hour, Amounts: []store.Amount{{Unit: "requests", N: 1}}}}
			if p.Apply(now, ops); ops[0].Result.State == store.Granted {
				answered := now.Add(time.Duration(r.Int64N(int64(2 * window))))
				open = append(open, sent{ops[0].Result.ID, answered, answered.Add(time.Duration(r.Int64N(int64(2 * store.MaxAge))))})
				arrived = append(arrived, answered)
			}
		}
		slices.Sort(arrived)
		for i, at := range arrived {
			if n, _ := slices.BinarySearch(arrived[i:], at.Add(window)); n > size {
				t.Fatalf("seed %d: %d arrived within %v, of %d", seed, n, window, size)
			}
		}
	}
}

const storeStart = store.Time(1_700_000_000_000_000)

// A window counts a request from its answer on, and the median of header times has the time of the answer, although both are
// reported later.
func TestALateReportCountsFromTheAnswer(t *testing.T) {
	p, err := New(classesSpec(store.Limit{Name: "window", Kind: store.Rolling, Unit: "requests", Size: 1, Window: 10 * time.Second, Guard: store.GuardStrict}), storeStart)
	if err != nil {
		t.Fatal(err)
	}
	acquire := func(at time.Duration) store.Result {
		ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Hour, Amounts: []store.Amount{{Unit: "requests", N: 1}}}}
		p.Apply(storeStart.Add(at), ops)
		return ops[0].Result
	}
	id := acquire(0).ID
	p.Apply(storeStart.Add(900*time.Millisecond), []store.Op{{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK, Age: 800 * time.Millisecond}})
	p.Apply(storeStart.Add(time.Second), []store.Op{{Kind: store.OpClose, ID: id, Age: time.Second}})
	if got := p.Snapshot(storeStart.Add(time.Second)).HeaderTime; got != 100*time.Millisecond {
		t.Errorf("header times are %v", got)
	}
	if got := acquire(10*time.Second + 90*time.Millisecond); got.State == store.Granted {
		t.Error("a request goes before the window of the one before is over")
	}
	if got := acquire(10*time.Second + 200*time.Millisecond); got.State != store.Granted {
		t.Errorf("a request that should have room by now: %+v", got)
	}
}
