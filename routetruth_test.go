package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// The light of a fixed window holds a lower class although there is room.
func TestRouteAppliesTheCallersLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": {
				Light:  sluice.Light{Green: 20, Red: 5, All: true, Static: true},
				Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Unit: sluice.Requests, Size: 100, Window: time.Hour}},
			}},
			NoShares: true,
			Routes:   map[string][]sluice.RouteChoice{"simple": {{Resource: "api", Model: "m", USDPerMTok: 1}}},
		})
		for range 82 {
			end(t, acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Class: "p0"}))
		}
		low, high := sluice.Request{Agent: "b", Class: "p2"}, sluice.Request{Agent: "b", Class: "p0"}
		r, err := g.Route(t.Context(), "simple", low)
		if err != nil || r.Wait == 0 || r.Reason != `no model has room now; this one has room first (light on limit "hour")` {
			t.Errorf("p2: %+v %v", r, err)
		}
		if r, err = g.Route(t.Context(), "simple", high); err != nil || r.Wait != 0 || r.Unknown {
			t.Errorf("p0: %+v %v", r, err)
		}
	})
}

// world is a gate under random load, for comparing what Route says with what Try does.
type world struct {
	*testing.T
	*rand.Rand
	gate    *sluice.Gate
	open    []sluice.Ticket
	waiting []context.CancelFunc
	seen    [2]int // how often there was no room, and room
}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	limit := func(name string, kind sluice.Kind, unit string, size int64, window time.Duration, per ...sluice.Scope) sluice.Limit {
		return sluice.Limit{Name: name, Kind: kind, Unit: unit, Size: size, Window: window, Per: per}
	}
	all := []sluice.Limit{
		limit("hour", sluice.Fixed, sluice.Requests, 60, time.Hour),
		limit("minute", sluice.Rolling, sluice.Requests, 20, time.Minute),
		limit("second", sluice.Bucket, sluice.Requests, 3, time.Second),
		limit("tokens", sluice.Rolling, "tokens", 3000, time.Minute, sluice.PerModel),
		limit("places", sluice.Concurrency, sluice.Requests, 6, 0),
		limit("own", sluice.Rolling, sluice.Requests, 5, time.Minute, sluice.PerAgent),
		limit("person", sluice.Bucket, sluice.Requests, 4, time.Minute, sluice.PerUser),
	}
	all[0].Reset = bubbleStart
	var limits []sluice.Limit
	for _, l := range all {
		if r.IntN(2) == 0 {
			limits = append(limits, l)
		}
	}
	res := sluice.Resource{Limits: limits, SplitKeys: true, Light: sluice.Light{Green: 30, Red: 10, All: r.IntN(2) == 0, Static: r.IntN(2) == 0}}
	res.Breaker.Open = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		res.Reserve = 10
	}
	over := []string{sluice.OverDeny, sluice.OverSlow, sluice.OverDowngrade}
	budgets := []sluice.Budget{
		{Name: "each", Per: sluice.BudgetAgent, Micros: 60_000, Period: sluice.BudgetDay, Over: over[r.IntN(3)]},
		{Name: "all", Micros: 200_000, Period: sluice.BudgetDay, Over: over[r.IntN(3)]},
	}
	g := openConfig(t, sluice.Config{
		Resources: map[string]sluice.Resource{"api": res}, NoShares: r.IntN(2) == 0, Budgets: budgets[:r.IntN(3)],
		Routes: map[string][]sluice.RouteChoice{"simple": {{Resource: "api", Model: "m", USDPerMTok: 1}}},
	})
	return &world{T: t, Rand: r, gate: g}
}

// caller returns a random request. It states its cost in every unit, so that Route adds nothing.
func (w *world) caller() sluice.Request {
	req := sluice.Request{
		Resource: "api", Agent: fmt.Sprint("agent", w.IntN(3)), User: fmt.Sprint("user", w.IntN(2)), Class: fmt.Sprint("p", w.IntN(3)), Model: "m",
		Cost: []sluice.Amount{{Unit: "tokens", N: w.Int64N(1500)}}, TTL: time.Duration(1+w.IntN(120)) * time.Second,
	}
	if w.IntN(2) == 0 {
		req.Cost = append(req.Cost, sluice.Amount{Unit: sluice.USD, N: w.Int64N(20_000)})
	}
	switch w.IntN(4) {
	case 0:
		req.Key = "k1"
	case 1:
		req.Keys = []string{"k1", "k2"}
	}
	req.Emergency = req.Class == "p0" && w.IntN(3) == 0
	return req
}

// happen lets something happen that may change the room.
func (w *world) happen() {
	ctx := w.Context()
	switch w.IntN(9) {
	case 0:
		time.Sleep(time.Duration(w.IntN(90_000)) * time.Millisecond)
	case 1:
		time.Sleep(time.Duration(w.IntN(900)) * time.Millisecond)
	case 2, 3, 4:
		if t, err := w.gate.Try(ctx, w.caller()); err == nil {
			w.open = append(w.open, t)
		}
	case 5: // a request that waits, until it goes or gives up
		if len(w.waiting) > 0 && w.IntN(2) == 0 {
			w.waiting[0]()
			synctest.Wait()
			w.waiting = w.waiting[1:]
			break
		}
		req := w.caller()
		wait, cancel := context.WithCancel(ctx)
		w.waiting = append(w.waiting, cancel)
		go func() { _, _ = w.gate.Acquire(wait, req) }()
		synctest.Wait()
	case 6:
		a := sluice.Answer{Verdict: sluice.VerdictOK}
		if w.IntN(10) == 0 {
			a = sluice.Answer{Verdict: sluice.VerdictThrottled, RetryAfter: time.Duration(w.IntN(20)) * time.Second}
		}
		if len(w.open) > 0 {
			_, _ = w.open[0].Answer(a)
		}
	case 7:
		if len(w.open) > 0 {
			_ = w.open[0].Close([]sluice.Amount{{Unit: "tokens", N: w.Int64N(800)}}...)
			w.open = w.open[1:]
		}
	case 8:
		if w.IntN(10) == 0 {
			_ = w.gate.Pause(ctx, "api", time.Duration(1+w.IntN(30))*time.Second, "test")
		}
	}
}

func (w *world) route(req sluice.Request) inspect.Route {
	w.Helper()
	r, err := w.gate.Route(w.Context(), "simple", req)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// Route says that there is room exactly if Try with the same request is granted. The time that it names is not later
// than the grant. Asking changes nothing.
func TestRouteSaysWhatTryDoes(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			for step := range 120 {
				w.happen()
				synctest.Wait()
				req := w.caller()
				before := w.status()
				said := w.route(req)
				if again := w.route(req); again != said {
					t.Fatalf("seed %d, step %d: %+v, then %+v", seed, step, said, again)
				}
				if after := w.status(); !reflect.DeepEqual(before, after) {
					t.Fatalf("seed %d, step %d: looking changed\n%+v\n%+v", seed, step, before, after)
				}
				open := said.Wait == 0 && !said.Unknown
				got, err := w.gate.Try(t.Context(), req)
				if granted := err == nil; granted != open {
					t.Fatalf("seed %d, step %d: %+v\nroute: %+v\ntry: %v", seed, step, req, said, err)
				}
				if open {
					w.seen[1]++
					if w.IntN(2) == 0 {
						_ = got.Cancel()
					} else {
						w.open = append(w.open, got)
					}
					continue
				}
				w.seen[0]++
				if said.Unknown || w.IntN(4) > 0 || errors.Is(err, sluice.ErrBudget) {
					continue
				}
				began := time.Now()
				limited, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
				got, err = w.gate.Acquire(limited, req)
				cancel()
				if waited := time.Since(began); err == nil && waited+time.Millisecond < said.Wait {
					t.Fatalf("seed %d, step %d: %+v\nroute: %+v, granted after %v", seed, step, req, said, waited)
				}
				if err == nil {
					_ = got.Close()
				}
			}
			for _, cancel := range w.waiting {
				cancel()
			}
			if seed < 3 {
				t.Logf("seed %d: no room %d times, room %d times", seed, w.seen[0], w.seen[1])
			}
		})
	}
}

func (w *world) status() inspect.Status {
	s, err := w.gate.Status(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return s
}
