package sluice_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// fleet runs agents that send as fast as they may, in virtual time. A response takes 100 ms.
type fleet struct {
	tb   testing.TB
	gate *sluice.Gate
	// states is what answers state of limits; may be nil.
	states func() []sluice.ObservedLimit
	wg     sync.WaitGroup

	mu    sync.Mutex
	sends []send
}

type send struct {
	agent, class string
	at           time.Duration // since the bubble's start
	waited       time.Duration
}

const serviceTime = 100 * time.Millisecond

// saturate starts workers that send until the context is over.
func (f *fleet) saturate(ctx context.Context, agent, class string, workers int) {
	for range workers {
		f.wg.Go(func() {
			for f.once(ctx, agent, class) {
			}
		})
	}
}

// once sends one request, and reports whether it could.
func (f *fleet) once(ctx context.Context, agent, class string) bool {
	t, err := f.gate.Acquire(ctx, classed(agent, class))
	if err != nil {
		if ctx.Err() == nil {
			f.tb.Errorf("%s: %v", agent, err)
		}
		return false
	}
	f.mu.Lock()
	f.sends = append(f.sends, send{agent, class, time.Since(bubbleStart), t.Waited()})
	f.mu.Unlock()
	time.Sleep(serviceTime)
	a := sluice.Answer{Verdict: store.VerdictOK}
	if f.states != nil {
		a.Limits = f.states()
	}
	_, err = t.Answer(a)
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		f.tb.Error(err)
	}
	return true
}

// count returns how many sends there were from one moment to another, of a class or of all.
func (f *fleet) count(class string, from, to time.Duration) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sends {
		if s.at >= from && s.at < to && (class == "" || class == s.class) {
			n++
		}
	}
	return n
}

// inHour returns how many requests were sent in an hour of the quota. The next hour begins a little late, because the
// reset is not known to the second.
func (f *fleet) inHour(h int) int {
	from := time.Duration(h)*time.Hour + 1200*time.Millisecond
	if h == 0 {
		from = 0
	}
	return f.count("", from, time.Duration(h+1)*time.Hour+1200*time.Millisecond)
}

func (f *fleet) waits(class string) (list []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sends {
		if s.class == class {
			list = append(list, s.waited)
		}
	}
	slices.Sort(list)
	return list
}

func join(tb testing.TB, g *sluice.Gate, m sluice.JoinRequest) *sluice.Lease {
	tb.Helper()
	l, err := g.Join(context.Background(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// hourly is a quota of n until the full hour, as a provider would state it.
func hourly(n int64) sluice.Limit {
	return sluice.Limit{Name: "hour", Kind: sluice.Fixed, Size: n, Window: time.Hour, Reset: bubbleStart}
}

// While an agent of the highest class is live, lower classes spread their use of a rolling window, so that it does not
// wait long.
func TestUrgentRequestsDoNotWaitForAWindow(t *testing.T) {
	for _, pacing := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := openConfig(t, sluice.Config{
				NoPacing: !pacing, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(80, time.Minute)}}},
			})
			f := &fleet{tb: t, gate: g}
			ctx, stop := context.WithCancel(t.Context())
			lease := join(t, g, sluice.JoinRequest{Agent: "urgent", Class: "p0"})
			f.saturate(ctx, "a", "p1", 40)
			f.saturate(ctx, "b", "p2", 40)
			time.Sleep(2 * time.Minute)
			begin := time.Since(bubbleStart)
			for i := range 60 {
				f.once(ctx, "urgent", "p0")
				time.Sleep(time.Duration(3+i%7) * time.Second)
			}
			end := time.Since(bubbleStart)
			stop()
			f.wg.Wait()
			if err := lease.Leave(); err != nil {
				t.Error(err)
			}
			waits := f.waits("p0")
			p95 := waits[len(waits)*95/100]
			use := float64(f.count("", begin, end)) / (80 * (end - begin).Minutes())
			t.Logf("pacing %v: p0 waits %v at the median, %v at p95, %v at most; %.4f of the quota", pacing, waits[len(waits)/2], p95, waits[len(waits)-1], use)
			if pacing && (p95 > 4*time.Second || use < 0.98) {
				t.Errorf("p95 is %v and use %.4f, want at most 4s and at least 0.98", p95, use)
			}
			if !pacing && p95 < 4*time.Second {
				t.Errorf("without pacing p95 is %v as well: the test shows nothing", p95)
			}
		})
	}
}

// A lone agent of any class uses all of a stock by its reset, with or without the light.
func TestLoneAgentUsesAllOfAStock(t *testing.T) {
	for _, class := range []string{"p0", "p1", "p2"} {
		synctest.Test(t, func(t *testing.T) {
			g := openResource(t, sluice.Resource{Limits: []sluice.Limit{hourly(1000)}})
			f := &fleet{tb: t, gate: g}
			ctx, stop := context.WithCancel(t.Context())
			f.saturate(ctx, "alone", class, 10)
			time.Sleep(3 * time.Hour)
			stop()
			f.wg.Wait()
			for h := range 3 {
				if n := f.inHour(h); n < 990 || n > 1000 {
					t.Errorf("%s used %d of 1000 in hour %d", class, n, h)
				}
			}
		})
	}
}

// An hour of lower classes leaves room for an agent of the highest class that comes in the middle.
func TestLightLeavesRoomForTheHighestClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Breaker: sluice.Breaker{Off: true}})
		f := &fleet{tb: t, gate: g}
		ctx, stop := context.WithCancel(t.Context())
		f.saturate(ctx, "b", "p2", 10)
		time.Sleep(30 * time.Minute)
		if n := f.count("p2", 0, time.Hour); n < 880 || n > 905 {
			t.Errorf("%d of 1000 used after half of the hour, want about 900: a fifth, halved, is left", n)
		}
		if light := state(t, g).Light; light != "amber" && light != "green" {
			t.Errorf("the light is %s", light)
		}
		for range 70 { // 5%, halved, is for emergencies
			f.once(ctx, "urgent", "p0")
		}
		if waits := f.waits("p0"); waits[len(waits)-1] != 0 {
			t.Errorf("the highest class waited %v", waits[len(waits)-1])
		}
		if _, err := g.Try(ctx, classed("b", "p2")); wantError(t, err, sluice.ErrNotNow).Reason == "" {
			t.Error("a refusal without a reason")
		}
		stop()
		f.wg.Wait()
	})
}

// The allocation of a dead agent goes to the live ones one lease later.
func TestDeadAgentsAllocationGoesToTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{
			Limits: []sluice.Limit{hourly(1000)}, Light: sluice.Light{Off: true}, Breaker: sluice.Breaker{Off: true},
		})
		dies := join(t, g, sluice.JoinRequest{Agent: "dies", Class: "p0", Machine: "m1"})
		lives := join(t, g, sluice.JoinRequest{Agent: "lives", Class: "p2", Machine: "m2"})
		f := &fleet{tb: t, gate: g}
		ctx, stop := context.WithCancel(t.Context())
		f.saturate(ctx, "lives", "p2", 10)
		time.Sleep(time.Minute)
		// Of 40:25, p0 has 615 reserved; they sink with the time left.
		if n := f.count("p2", 0, time.Minute); n < 390 || n > 400 {
			t.Errorf("p2 used %d, want about 395: the share of a living p0 is kept", n)
		}
		p := pool(t, g)
		if a := p.Allocations["dies"]; a.Allocated != 615 || a.Priority != 0 || a.LeaseExpiry == nil {
			t.Errorf("allocated %+v", a)
		}
		if a := p.Allocations["lives"]; a.Allocated != 384 || a.Used < 350 {
			t.Errorf("allocated %+v", a)
		}
		dies.Kill()
		time.Sleep(5*time.Minute + 10*time.Second)
		if n := f.count("p2", 0, time.Hour); n < 990 {
			t.Errorf("p2 used %d one lease after the other died", n)
		}
		if a := pool(t, g).Allocations["lives"]; a.Allocated != 1000 {
			t.Errorf("allocated %+v, want everything", a)
		}
		stop()
		f.wg.Wait()
		if err := lives.Leave(); err != nil {
			t.Error(err)
		}
	})
}

func pool(tb testing.TB, g *sluice.Gate) inspect.PoolStatus {
	tb.Helper()
	p, err := g.Pool(context.Background(), "api")
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// The owner of a share gets it back within one window if the quota is a stock, and at once if it is a flow.
func TestShareIsTakenBack(t *testing.T) {
	t.Run("stock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := openResource(t, sluice.Resource{Limits: []sluice.Limit{hourly(1000)}})
			f := &fleet{tb: t, gate: g}
			ctx, stop := context.WithCancel(t.Context())
			f.saturate(ctx, "borrows", "p2", 10)
			time.Sleep(90 * time.Minute)
			f.saturate(ctx, "owner", "p1", 10)
			time.Sleep(90*time.Minute + 2*time.Second)
			p1, p2 := f.count("p1", 2*time.Hour, 3*time.Hour), f.count("p2", 2*time.Hour, 3*time.Hour)
			if p1 < 570 || p1+p2 < 980 {
				t.Errorf("in the window after its return p1 had %d and p2 %d, want 35:25 of 1000", p1, p2)
			}
			stop()
			f.wg.Wait()
		})
	})
	t.Run("flow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := openResource(t, sluice.Resource{Limits: []sluice.Limit{bucket(10, time.Second, 10)}})
			f := &fleet{tb: t, gate: g}
			ctx, stop := context.WithCancel(t.Context())
			f.saturate(ctx, "borrows", "p2", 30)
			time.Sleep(time.Minute)
			f.saturate(ctx, "owner", "p1", 30)
			time.Sleep(12 * time.Second)
			p1, p2 := f.count("p1", time.Minute, 72*time.Second), f.count("p2", time.Minute, 72*time.Second)
			if p1 < 65 || p1+p2 < 118 {
				t.Errorf("in the 12 s after its return p1 had %d and p2 %d, want 35:25 of 120", p1, p2)
			}
			stop()
			f.wg.Wait()
		})
	})
}

// With steady overuse the quota lasts until the reset, and no request is refused. A reset just ahead trips nothing.
func TestBreakerMakesAQuotaLast(t *testing.T) {
	for _, mode := range []string{"glide", "open", "off"} {
		synctest.Test(t, func(t *testing.T) {
			g := openResource(t, sluice.Resource{
				Limits: []sluice.Limit{hourly(3000)}, Light: sluice.Light{Off: true},
				Breaker: sluice.Breaker{Open: mode == "open", Off: mode == "off"},
			})
			f := &fleet{tb: t, gate: g}
			f.states = func() []sluice.ObservedLimit {
				in := time.Hour - time.Since(bubbleStart)%time.Hour
				now := time.Since(bubbleStart)
				left := 3000 - f.count("", now-now%time.Hour, now+1)
				return []sluice.ObservedLimit{{Limit: "hour", Size: 3000, Remaining: int64(left), ResetIn: in}}
			}
			ctx, stop := context.WithCancel(t.Context())
			f.saturate(ctx, "greedy", "p2", 4) // 40 a second: gone in 75 s
			time.Sleep(30 * time.Second)
			limit := state(t, g).Limits[0]
			urgent := f.count("", 0, time.Hour)
			time.Sleep(29*time.Minute + 30*time.Second)
			half := f.count("", 0, time.Hour)
			for range 20 {
				f.once(ctx, "urgent", "p0")
			}
			time.Sleep(30*time.Minute - 5*time.Second)
			all := f.inHour(0)
			t.Logf("%s: %s, %d after 30 s, %d after 30 min, %d in the hour; urgent ones waited %v at most",
				mode, limit.Breaker, urgent, half, all, slices.Max(f.waits("p0")))
			switch mode {
			case "glide":
				if limit.Breaker != "gliding" || half > 1700 || all < 2940 {
					t.Errorf("it is %q, with %d used after half of the hour and %d at its end, want about 1500 and all of 3000", limit.Breaker, half, all)
				}
			case "open":
				if limit.Breaker != "open" || half < 50 || half > 1500 { // it lets a few go every two minutes, to see
					t.Errorf("it is %q, with %d used after half of the hour", limit.Breaker, half)
				}
			default:
				if limit.Breaker != "" || half < 2990 {
					t.Errorf("it is %q, with %d used after half of the hour", limit.Breaker, half)
				}
			}
			if mode != "off" && slices.Max(f.waits("p0")) > 0 {
				t.Errorf("the highest class waited %v", slices.Max(f.waits("p0")))
			}
			time.Sleep(time.Minute)
			if n := f.count("p2", time.Hour, 61*time.Minute); n < 8 {
				t.Errorf("%d in the first minute after the reset", n)
			}
			stop()
			f.wg.Wait()
		})
	}
}

// Only p1 and p2: by the reset, the light that protects p0 has cost them nothing.
func TestFleetWithoutTheHighestClassUsesItsHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{Limits: []sluice.Limit{hourly(5000)}})
		f := &fleet{tb: t, gate: g}
		ctx, stop := context.WithCancel(t.Context())
		for i := range 3 {
			f.saturate(ctx, fmt.Sprint("a", i), "p1", 3)
			f.saturate(ctx, fmt.Sprint("b", i), "p2", 3)
		}
		time.Sleep(3*time.Hour + 3*time.Second)
		stop()
		f.wg.Wait()
		for h := range 3 {
			if n := f.inHour(h); n < 4900 || n > 5000 {
				t.Errorf("%d of 5000 in hour %d", n, h)
			}
		}
	})
}
