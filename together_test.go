package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// Everything at once, in real time, many times: agents join and leave, acquire in all classes, are refused, start jobs,
// and read the state. At the end nothing is left.
func TestStressOfTheWholeFleet(t *testing.T) {
	const callers, visits = 40, 60
	// The reset is far from now, whenever that is.
	stock := sluice.Limit{Name: "day", Kind: sluice.Fixed, Size: 3000, Window: 24 * time.Hour, Reset: time.Now().Add(12 * time.Hour)}
	g := openConfig(t, sluice.Config{
		Slots:  sluice.Slots{Max: 5},
		Agents: map[string]sluice.Agent{"agent0": {WaitsFor: []string{"agent1"}}, "agent1": {WaitsFor: []string{"agent0"}}},
		Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{places(4), stock, rolling(500, time.Second)}, Reserve: 5},
			"flow": {
				Limits: []sluice.Limit{bucket(20_000, time.Second, 100)}, Light: sluice.Light{All: true},
				Backoff: sluice.Backoff{Start: time.Millisecond, Cap: 2 * time.Millisecond},
			},
		},
	})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			v := &visitor{t: t, g: g, rand: rand.New(rand.NewPCG(7, uint64(i))), name: fmt.Sprint("agent", i%15), user: fmt.Sprint("user", i%2)}
			for range visits {
				v.visit()
			}
			if v.lease != nil {
				leave(t, v.lease)
			}
		})
	}
	wg.Wait()
	s := status(t, g)
	for _, r := range s.Resources {
		if r.InFlight != 0 || r.Waiting["p0"]+r.Waiting["p1"]+r.Waiting["p2"] != 0 {
			t.Errorf("left over: %+v", r)
		}
	}
	if len(s.Cycles) != 1 {
		t.Errorf("cycles are %v", s.Cycles)
	}
	for i := range 5 { // all slots are free
		defer leave(t, join(t, g, sluice.JoinRequest{Agent: fmt.Sprint("late", i), User: "user0"}))
	}
}

type visitor struct {
	t          *testing.T
	g          *sluice.Gate
	rand       *rand.Rand
	name, user string
	lease      *sluice.Lease
}

func (v *visitor) visit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(v.rand.Int64N(int64(3*time.Millisecond))))
	defer cancel()
	switch v.rand.IntN(12) {
	case 0, 1:
		v.joinOrLeave()
	case 2:
		v.look()
	default:
		v.ask(ctx)
	}
}

func (v *visitor) joinOrLeave() {
	if v.lease != nil {
		if v.rand.IntN(2) == 0 {
			_ = v.lease.WaitFor(context.Background(), "agent0x", "agent1x")
			_, err := v.lease.StartNewWork(context.Background())
			v.check(err)
		}
		if err := v.lease.Err(); !errors.Is(err, sluice.ErrSlots) { // a namesake has left, and another has its slot
			v.check(err)
		}
		v.check(v.lease.Leave())
		v.lease = nil
		return
	}
	l, err := v.g.Join(context.Background(), sluice.JoinRequest{Agent: v.name, User: v.user, Class: fmt.Sprint("p", v.rand.IntN(3))})
	if errors.Is(err, sluice.ErrSlots) {
		return
	}
	v.check(err)
	v.lease = l
}

func (v *visitor) look() {
	ctx := context.Background()
	_, err := v.g.Status(ctx)
	v.check(err)
	_, err = v.g.Why(ctx, "api")
	v.check(err)
	_, err = v.g.Report(ctx, time.Now().Add(-time.Minute))
	v.check(err)
	_, err = v.g.Diagnose(ctx, time.Time{})
	v.check(err)
	_, err = v.g.Pool(ctx, "flow")
	v.check(err)
	_, err = v.g.StartNewWork(ctx, v.name)
	v.check(err)
	_, err = v.g.StartDelay(ctx, "api", time.Duration(v.rand.Int64N(int64(time.Hour))))
	v.check(err)
}

func (v *visitor) ask(ctx context.Context) {
	class := v.rand.IntN(3)
	req := sluice.Request{
		Resource: []string{"api", "flow"}[v.rand.IntN(2)], Agent: v.name, User: v.user, Class: fmt.Sprint("p", class),
		Emergency: class == 0 && v.rand.IntN(3) == 0, Model: fmt.Sprint("m", v.rand.IntN(12)), Retry: v.rand.IntN(5) == 0,
	}
	t, err := v.g.Acquire(ctx, req)
	if errors.Is(err, sluice.ErrDeadline) || errors.Is(err, sluice.ErrCancelled) {
		return
	}
	v.check(err)
	if err != nil {
		return
	}
	a := sluice.Answer{Verdict: store.VerdictOK}
	if req.Resource == "flow" && v.rand.IntN(20) == 0 {
		a = sluice.Answer{Verdict: store.VerdictThrottled}
	}
	if req.Resource == "api" {
		a.Limits = []sluice.ObservedLimit{{Limit: "day", Size: 3000, Remaining: 3000 - v.rand.Int64N(2000), ResetIn: 12 * time.Hour}}
	}
	_, err = t.Answer(a)
	v.check(err)
	v.check(t.Close())
}

func (v *visitor) check(err error) {
	if err != nil {
		v.t.Errorf("%s: %v", v.name, err)
	}
}
