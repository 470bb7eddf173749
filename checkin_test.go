package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// checkIn sends a heartbeat and returns its result.
func checkIn(tb testing.TB, g *sluice.Gate, m sluice.JoinRequest) inspect.CheckInResult {
	tb.Helper()
	s, err := inside.Of(g).CheckIn(context.Background(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func hundred() sluice.Limit { return rolling(100, time.Minute) }

func TestFirstHeartbeatIsToldWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Agents:    map[string]sluice.Agent{"b": {WaitsFor: []string{"limited"}}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{hundred()}}, "zoo": {Limits: []sluice.Limit{hundred()}}},
		})
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "a"}); s.Allocated != 100 || s.Light != "green" || s.Resource != "api" || !s.Start || s.Chain == nil {
			t.Errorf("alone it is told %+v", s)
		}
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("limited", from("limited"))
		s := checkIn(t, g, sluice.JoinRequest{Agent: "b"})
		if s.Allocated != 25 || s.Start || !slices.Equal(s.Chain, []string{"b", "limited"}) || !strings.Contains(s.Reason, "paused") { // of four: one was refused
			t.Errorf("the second is told %+v", s)
		}
		// What it says of itself now is in the answer, although hardly any time has passed.
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "a", Class: "p0"}); s.Allocated != 61 {
			t.Errorf("in the highest class it is told %+v", s)
		}
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "a", Class: "p0", WaitsFor: []string{"b"}}); s.Start || strings.Join(s.Chain, " ") != "a b limited" {
			t.Errorf("when it waits for another it is told %+v", s)
		}
		c.order()
		time.Sleep(2 * time.Second)
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "b"}); !s.Start || len(s.Chain) != 0 {
			t.Errorf("two seconds after the end it is told %+v", s)
		}
	})
}

// A share that is not known is not a share of less than one request.
func TestHeartbeatWithoutAKnownLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "learned", Kind: sluice.Rolling, Window: time.Minute})
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "a"}); s.Allocated != inspect.Unknown {
			t.Errorf("told %+v, and no limit is known", s)
		}
		g = open(t, rolling(1, time.Minute))
		checkIn(t, g, sluice.JoinRequest{Agent: "a"})
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "b"}); s.Allocated != 0 {
			t.Errorf("told %+v, and two share one request", s)
		}
	})
}

// An agent learns of backpressure within two seconds.
func TestBackpressureIsToldWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{hundred()}}}})
		up := sluice.JoinRequest{Agent: "up", WaitsFor: []string{"down"}}
		if s := checkIn(t, g, up); !s.Start {
			t.Fatalf("told %+v", s)
		}
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("down", from("down"))
		since := time.Now()
		for checkIn(t, g, up).Start {
			if time.Since(since) > 2*time.Second {
				t.Fatal("not told within two seconds")
			}
			time.Sleep(50 * time.Millisecond)
		}
		c.order()
	})
}

// laggard is a slow store that counts how often pools are read.
type laggard struct {
	store.Store
	takes time.Duration
	reads atomic.Int64
	fails atomic.Bool
}

func (s *laggard) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	return &lagging{p, s}, err
}

type lagging struct {
	store.Pool
	of *laggard
}

func (p *lagging) Snapshot(ctx context.Context) (store.Snapshot, error) {
	p.of.reads.Add(1)
	select {
	case <-time.After(p.of.takes):
	case <-ctx.Done():
		return store.Snapshot{}, ctx.Err()
	}
	if p.of.fails.Load() {
		return store.Snapshot{}, store.ErrUnavailable
	}
	return p.Pool.Snapshot(ctx)
}

func openLaggard(t *testing.T, takes time.Duration) (*sluice.Gate, *laggard) {
	t.Helper()
	st := &laggard{Store: memstore.New(), takes: takes}
	g, err := sluice.OpenWithStore(t.Context(), st, sluice.Config{Store: "slow:", Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{hundred()}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, st
}

func TestManyHeartbeatsShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, st := openLaggard(t, 10*time.Millisecond)
		const n = 500
		everyone := func() {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					if s, err := inside.Of(g).CheckIn(t.Context(), sluice.JoinRequest{Agent: fmt.Sprint("agent", i)}); err != nil || !s.Start || s.Resource != "api" {
						t.Errorf("told %+v, %v", s, err)
					}
				})
			}
			all.Wait()
		}
		everyone() // for the first time: each has to be in what it is told
		first := st.reads.Swap(0)
		if first == 0 || first > 10 {
			t.Errorf("the pools were read %d times for %d new agents", first, n)
		}
		everyone()
		if again := st.reads.Swap(0); again != 0 {
			t.Errorf("the pools were read %d times though nothing is old", again)
		}
		for range 100 {
			time.Sleep(20 * time.Millisecond)
			everyone()
		}
		if later := st.reads.Load(); later < 4 || later > 16 { // two pools, for two seconds
			t.Errorf("the pools were read %d times in two seconds", later)
		}
	})
}

// A heartbeat that finds an old view takes it, and the next one is read meanwhile. A view that is too old is no use.
func TestHeartbeatsDoNotWaitForTheNextView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 10 * time.Millisecond
		g, st := openLaggard(t, takes)
		a := sluice.JoinRequest{Agent: "a"}
		checkIn(t, g, a)
		for range 3 {
			time.Sleep(600 * time.Millisecond)
			before, began := st.reads.Load(), time.Now()
			checkIn(t, g, a)
			if took := time.Since(began); took > 0 {
				t.Errorf("it waited %v though a view was there", took)
			}
			time.Sleep(10 * takes)
			if st.reads.Load() == before {
				t.Error("the old view was not read again")
			}
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		checkIn(t, g, a)
		if time.Since(began) < takes {
			t.Error("after two seconds it was told what was true then")
		}
	})
}

// In a large fleet an agent that joins is told what others of its class have, at once. One that waits for another, or is
// the first of its class, needs a view of its own.
func TestJoiningALargeFleetNeedsNoView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 40 * time.Millisecond
		g, st := openLaggard(t, takes)
		for i := range 500 {
			if err := g.Heartbeat(t.Context(), sluice.JoinRequest{Agent: fmt.Sprint("agent", i)}); err != nil {
				t.Fatal(err)
			}
		}
		checkIn(t, g, sluice.JoinRequest{Agent: "agent0"})
		st.reads.Store(0)
		began := time.Now()
		for i := range 100 {
			if s := checkIn(t, g, sluice.JoinRequest{Agent: fmt.Sprint("new", i)}); !s.Start || s.Resource != "api" || s.Allocated != 0 || s.Light != "green" {
				t.Errorf("told %+v", s)
			}
		}
		if reads := st.reads.Load(); reads != 0 || time.Since(began) != 0 {
			t.Errorf("the pools were read %d times in %v for agents that need no view", reads, time.Since(began))
		}
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "urgent", Class: "p0"}); s.Allocated < 50 || st.reads.Swap(0) == 0 {
			t.Errorf("the first of its class is told %+v", s)
		}
		if checkIn(t, g, sluice.JoinRequest{Agent: "child", WaitsFor: []string{"agent1"}}); st.reads.Load() == 0 {
			t.Error("what it waits for was not looked at")
		}
	})
}

// far is a store in which every operation takes a while.
type far struct{ store.Store }

func (s far) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	return farPool{p}, err
}

type farPool struct{ store.Pool }

func (p farPool) Apply(ctx context.Context, ops []store.Op) error {
	time.Sleep(100 * time.Millisecond)
	return p.Pool.Apply(ctx, ops)
}

// A heartbeat goes to the fleet's pool, which may refuse it, and then to all resources at once.
func TestAHeartbeatTakesTwoRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := far{memstore.New()}, sluice.Config{Store: "far:", Resources: map[string]sluice.Resource{}}
		for i := range 8 {
			c.Resources[fmt.Sprint("api", i)] = sluice.Resource{Limits: []sluice.Limit{hundred()}}
		}
		g, err := sluice.OpenWithStore(t.Context(), st, c)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "a"}); s.Allocated != 100 {
			t.Errorf("told %+v", s)
		}
		if took := time.Since(began); took != 200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if err := errors.Join(g.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	})
}

// If the caller that reads the shared view goes away, another one reads it. An error of the store is for all callers.
func TestLookWhoseReaderGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, st := openLaggard(t, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := inside.Of(g).CheckIn(ctx, sluice.JoinRequest{Agent: "first"}); err == nil {
				t.Error("it was told, though it had gone")
			}
		})
		synctest.Wait()
		for i := range 5 {
			all.Go(func() {
				if s, err := inside.Of(g).CheckIn(t.Context(), sluice.JoinRequest{Agent: fmt.Sprint("other", i)}); err != nil || s.Resource != "api" {
					t.Errorf("told %+v, %v", s, err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		cancel()
		all.Wait()
		time.Sleep(time.Minute)
		st.fails.Store(true)
		for range 3 {
			all.Go(func() {
				_, err := inside.Of(g).CheckIn(t.Context(), sluice.JoinRequest{Agent: "other1"})
				wantError(t, err, sluice.ErrStore)
			})
		}
		all.Wait()
	})
}

func TestHeartbeatsWithoutLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Leases: sluice.Leases{Off: true}, Resources: map[string]sluice.Resource{"api": {}}})
		if s := checkIn(t, g, sluice.JoinRequest{Agent: "a"}); !s.Start || s.Light != "green" {
			t.Errorf("told %+v", s)
		}
		_, err := inside.Of(g).CheckIn(t.Context(), sluice.JoinRequest{Agent: "a", Class: "p9"})
		wantError(t, err, sluice.ErrInvalid)
		_, err = inside.Of(g).CheckIn(t.Context(), sluice.JoinRequest{Agent: "\x7fa"})
		wantError(t, err, sluice.ErrInvalid)
	})
}

// An agent that uses nothing yet is told about a resource of the configuration that is in use, not about an idle preset
// whose name comes first.
func TestHeartbeatTellsAboutAConfiguredResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := func(n int64) []sluice.Limit { return []sluice.Limit{rolling(n, time.Minute)} }
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{
			"admob": {Limits: limits(900), Preset: true}, "github": {Limits: limits(500), Preset: true},
			"api": {Limits: limits(100)}, "zoo": {Limits: limits(1000)},
		}})
		told := func(want string) {
			t.Helper()
			time.Sleep(2 * time.Second) // a new view
			if s := checkIn(t, g, sluice.JoinRequest{Agent: "a"}); s.Resource != want {
				t.Errorf("it is told %+v, want %s", s, want)
			}
			if a := agent(t, g, "a"); a.Resource != want {
				t.Errorf("listed as %+v, want %s", a, want)
			}
		}
		told("api")
		pass(t, g, sluice.Request{Resource: "zoo", Agent: "b"})
		told("zoo")
		pass(t, g, sluice.Request{Resource: "github", Agent: "a"})
		told("github")
	})
}
