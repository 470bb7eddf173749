package sluice_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// alarmed is a store that can become unreachable, and reports it.
type alarmed struct {
	*shared
	mu    sync.Mutex
	specs []store.Spec
	pools []*alarmedPool
}

type alarmedPool struct {
	store.Pool
	mu   sync.Mutex
	told func(store.Outage, bool)
	out  *store.Outage
}

// newAlarmed makes a store that several gates open.
func newAlarmed(tb testing.TB) *alarmed {
	tb.Helper()
	a := &alarmed{shared: newShared(tb)}
	a.url = "alarmed" + a.url
	store.Register(a.url[:len(a.url)-1], func(context.Context, string) (store.Store, error) { return a, nil })
	return a
}

func (a *alarmed) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := a.shared.Pool(ctx, spec)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pool := &alarmedPool{Pool: p}
	a.specs, a.pools = append(a.specs, spec), append(a.pools, pool)
	return pool, nil
}

// lose cuts every pool off; back ends that, with the number of requests granted meanwhile.
func (a *alarmed) lose(why string) {
	a.fail(store.ErrUnavailable)
	for _, p := range a.pools {
		p.mu.Lock()
		o := store.Outage{Since: p.Now(), Why: why, Mode: store.FailOpen}
		p.out = &o
		told := p.told
		p.mu.Unlock()
		if told != nil {
			told(o, false)
		}
	}
}

func (a *alarmed) back(granted int64) {
	a.recover()
	for _, p := range a.pools {
		p.mu.Lock()
		o := *p.out
		o.Granted, p.out = granted, nil
		told := p.told
		p.mu.Unlock()
		if told != nil {
			told(o, true)
		}
	}
}

func (p *alarmedPool) OnOutage(f func(store.Outage, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = f
}

func (p *alarmedPool) Outage() (store.Outage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return store.Outage{}, false
	}
	return *p.out, true
}

func TestOutageIsToldAndShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, kept := newAlarmed(t), &record{}
		g := s.open(t, sluice.Config{Events: kept.add, Agents: map[string]sluice.Agent{"a": {WaitsFor: []string{"b"}}}}, rolling(10, time.Minute))
		pass(t, g, from("a"))
		if got := state(t, g); got.Outage != nil || got.Sent != 1 {
			t.Errorf("the state is %+v before anything has happened", got)
		}
		s.lose("the cable was cut")
		lost := kept.last(t, inspect.EventStoreLost)
		if lost.Resource != "api" || lost.Mode != "open" || lost.Error != "the cable was cut" || lost.Count != 0 || lost.ForMS != 0 {
			t.Errorf("it was told %+v", lost)
		}
		time.Sleep(3 * time.Second)
		for what, read := range map[string]func() (inspect.ResourceStatus, error){
			"status": func() (inspect.ResourceStatus, error) {
				st, err := g.Status(t.Context())
				return st.Resources[0], err
			},
			"resource": func() (inspect.ResourceStatus, error) { return g.Resource(t.Context(), "api") },
		} {
			got, err := read()
			if err != nil || got.Outage == nil || got.Outage.Why != "the cable was cut" || got.Outage.Mode != "open" || got.Outage.Since == nil || got.Name != "api" {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		// What rests on the state of others is not known, and not guessed.
		_, err := g.StartNewWork(t.Context(), "a")
		wantError(t, err, sluice.ErrStore)
		_, err = g.Diagnose(t.Context(), time.Time{})
		wantError(t, err, sluice.ErrStore)
		s.back(7)
		back := kept.last(t, inspect.EventStoreBack)
		if back.Count != 7 || back.ForMS != 3000 || back.Mode != "open" {
			t.Errorf("it was told %+v", back)
		}
		if got := state(t, g); got.Outage != nil || got.Sent != 1 {
			t.Errorf("the state is %+v after all is over", got)
		}
	})
}

// The words for an outage follow what the process does: it waits first, it may have no share, and its lease ends.
func TestAnOutageTellsWhatTheProcessDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAlarmed(t)
		g := s.open(t, sluice.Config{}, rolling(10, time.Minute))
		s.lose("connection refused")
		share := func(unshared ...string) {
			for _, p := range s.pools {
				p.mu.Lock()
				p.out = &store.Outage{Since: p.Now(), Why: "connection refused", Mode: store.FailShare, Start: p.Now().Add(3 * time.Second), End: p.Now().Add(time.Minute), Unshared: unshared}
				p.mu.Unlock()
			}
		}
		told := func(words string) {
			t.Helper()
			got := wantState(t, g, inspect.StateDegraded, "")
			if want := "the store is out of reach: connection refused; this process " + words; got.Reason != want || got.Outage.Meanwhile != words {
				t.Errorf("it says %q and %q, want %q", got.Reason, got.Outage.Meanwhile, want)
			}
		}
		share()
		told("holds requests for another 3 s, then goes on within its share")
		time.Sleep(3 * time.Second)
		told("goes on within its share")
		time.Sleep(time.Minute)
		told("holds all requests: its lease ended at 00:01:00 UTC")
		for _, p := range s.pools {
			p.mu.Lock()
			p.out.Start, p.out.End = p.Now().Add(3*time.Second), p.Now().Add(2*time.Second)
			p.mu.Unlock()
		}
		told("holds all requests: its lease ends before others leave it its share")
		share("hour")
		time.Sleep(3 * time.Second)
		told("goes on within its share; it has no share of the limit hour and holds requests that need it")
		share("hour", "day", "week", "month")
		time.Sleep(3 * time.Second)
		told("goes on within its share; it has no share of the limits hour, day, week and others and holds requests that need them")
		s.back(0)
	})
}

// A one-shot process does not continue on its own: it gets an error for what it cannot read.
func TestPassersByGetTheError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]sluice.Config{"passing": {OneShot: true}, "looking": {ReadOnly: true}} {
		t.Run(name, func(t *testing.T) {
			s := newAlarmed(t)
			g := s.open(t, c, rolling(10, time.Minute))
			s.lose("the cable was cut")
			if _, err := g.Status(t.Context()); !errors.Is(err, sluice.ErrStore) {
				t.Errorf("status: %v", err)
			}
			if _, err := g.Resource(t.Context(), "api"); !errors.Is(err, sluice.ErrStore) {
				t.Errorf("resource: %v", err)
			}
		})
	}
}

func TestStoreIsToldWhatToDoInAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  sluice.Config
		mode    store.OnFailure
		passing bool
	}{
		"default": {}, "closed": {sluice.Config{OnStoreFailure: store.FailClosed}, store.FailClosed, false},
		"open":    {sluice.Config{OnStoreFailure: store.FailOpen}, store.FailOpen, false},
		"passing": {sluice.Config{OneShot: true}, store.FailShare, true}, "look": {sluice.Config{ReadOnly: true}, store.FailShare, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAlarmed(t)
			g := s.open(t, c.config, rolling(10, time.Minute))
			if _, err := g.Status(t.Context()); err != nil { // which opens the fleet's
				t.Fatal(err)
			}
			if len(s.specs) != 2 {
				t.Fatalf("%d pools", len(s.specs))
			}
			for _, spec := range s.specs {
				if spec.OnFailure != c.mode || spec.OneShot != c.passing {
					t.Errorf("%s: %v, passing %v", spec.Name, spec.OnFailure, spec.OneShot)
				}
			}
		})
	}
	_, err := sluice.Open(t.Context(), sluice.Config{OnStoreFailure: 3})
	wantError(t, err, sluice.ErrInvalid)
}

// lasting is a store that outlives the gates on it.
type lasting struct{ store.Store }

func (lasting) Close() error { return nil }

// A silent member may continue on its own: what is withheld for it is shown and explained.
func TestWithheldSharesAreShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		url := "records" + s.url
		store.Register(url[:len(url)-1], func(context.Context, string) (store.Store, error) { return lasting{s.Store}, nil })
		g := openConfig(t, sluice.Config{Store: url, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(100, time.Minute)}}}})
		other, err := s.Store.Pool(t.Context(), store.Spec{Name: "api", ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Apply(t.Context(), []store.Op{{Kind: store.OpTouch}}); err != nil {
			t.Fatal(err)
		}
		if got := state(t, g); got.Members != 1 || got.SilentMembers != 0 || got.Limits[0].Withheld != 0 {
			t.Errorf("the state is %+v", got)
		}
		if got := settings(t, g); len(got) != 0 {
			t.Errorf("advice about %q", got)
		}
		time.Sleep(6 * time.Second)
		got := state(t, g)
		l := got.Limits[0]
		if got.Members != 1 || got.SilentMembers != 1 || l.Withheld == 0 || l.Withheld+l.Used+l.Remaining != l.Limit {
			t.Errorf("the state is %+v", got)
		}
		wantAdvice(t, g, "leases.expire", "1 of 1 processes has not reported to the store", "of rolling) are withheld")
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
