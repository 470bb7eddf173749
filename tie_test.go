package sluice_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// A plain Acquire made tickets that outlived their process: after a kill they held their concurrency for ten minutes.
func TestATicketIsTiedToItsProcessUnlessItIsDetached(t *testing.T) {
	s := &asking{shared: newShared(t)}
	store.Register("asking", func(context.Context, string) (store.Store, error) { return s, nil })
	s.url = "asking:"
	g := s.open(t, sluice.Config{}, places(10))
	req := sluice.Request{Resource: "api", Agent: "a"}
	plain, err := g.Acquire(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	tried, err := g.Try(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Detached = true
	detached, err := g.Acquire(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Detached, req.Spent = false, true
	if _, err := g.Acquire(context.Background(), req); err != nil { // which ends with its grant
		t.Fatal(err)
	}
	if want := []store.Tie{store.TieBeat, store.TieBeat, store.TieNone, store.TieNone}; !slices.Equal(s.ties, want) {
		t.Errorf("the ties are %v, want %v", s.ties, want)
	}
	for _, ticket := range []sluice.Ticket{plain, tried, detached} {
		if err := ticket.Close(); err != nil {
			t.Error(err)
		}
	}
}

// asking is a store that records the ties of acquires.
type asking struct {
	*shared
	ties []store.Tie
}

func (s *asking) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	return &askingPool{sharedPool{Pool: p, store: s.shared, name: spec.Name}, s}, err
}

type askingPool struct {
	sharedPool
	asking *asking
}

func (p *askingPool) Apply(ctx context.Context, ops []store.Op) error {
	for i := range ops {
		if ops[i].Kind == store.OpAcquire {
			p.asking.ties = append(p.asking.ties, ops[i].Tie)
		}
	}
	return p.sharedPool.Apply(ctx, ops)
}
