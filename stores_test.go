package sluice_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// shared is a store that several gates open, as separate processes would: closing one gate leaves it open for the
// others. It can be cut off.
type shared struct {
	store.Store
	url  string
	down atomic.Pointer[error] // what every operation fails with, if anything
	// operations on pools whose name is in the way fail as well.
	downPool atomic.Pointer[string]
}

var schemes atomic.Int64

// newShared makes a store and a URL for it.
func newShared(tb testing.TB) *shared {
	tb.Helper()
	st := memstore.New()
	s := &shared{Store: st, url: fmt.Sprintf("shared%d:", schemes.Add(1))}
	store.Register(s.url[:len(s.url)-1], func(context.Context, string) (store.Store, error) { return s, nil })
	tb.Cleanup(func() {
		if err := st.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// open opens a gate with a resource named api, on this store.
func (s *shared) open(tb testing.TB, c sluice.Config, limits ...sluice.Limit) *sluice.Gate {
	tb.Helper()
	c.Store = s.url
	if c.Resources == nil {
		c.Resources = map[string]sluice.Resource{"api": {Limits: limits}}
	}
	return openConfig(tb, c)
}

func (s *shared) fail(err error) { s.down.Store(&err) }
func (s *shared) recover()       { s.down.Store(nil) }

func (s *shared) broken(pool string) error {
	if p := s.downPool.Load(); p != nil && *p == pool {
		return store.ErrUnavailable
	}
	if err := s.down.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *shared) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	if err := s.broken(spec.Name); err != nil {
		return nil, err
	}
	p, err := s.Store.Pool(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &sharedPool{Pool: p, store: s, name: spec.Name}, nil
}

// Close leaves the store open.
func (s *shared) Close() error { return nil }

// sharedPool implements only the required methods: it is no Quick, and keeps no history.
type sharedPool struct {
	store.Pool
	store *shared
	name  string
}

func (p *sharedPool) Apply(ctx context.Context, ops []store.Op) error {
	if err := p.store.broken(p.name); err != nil {
		return err
	}
	return p.Pool.Apply(ctx, ops)
}

func (p *sharedPool) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := p.store.broken(p.name); err != nil {
		return store.Snapshot{}, err
	}
	return p.Pool.Snapshot(ctx)
}
