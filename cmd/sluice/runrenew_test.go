package main

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// forgetful is a store that takes its callers for dead: it has ended every ticket that they want to renew, and its clock
// makes every ticket look old.
type forgetful struct {
	store.Store
	asked int
}

func (f *forgetful) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := f.Store.Pool(ctx, spec)
	return &forgetfulPool{p, f}, err
}

type forgetfulPool struct {
	store.Pool
	of *forgetful
}

func (p *forgetfulPool) Now() store.Time { return p.Pool.Now().Add(time.Hour) }

func (p *forgetfulPool) Apply(ctx context.Context, ops []store.Op) error {
	for i := range ops {
		switch ops[i].Kind {
		case store.OpAcquire:
			p.of.asked++
		case store.OpRenew:
			ops[i].Kind = store.OpCancel
		}
	}
	return p.Pool.Apply(ctx, ops)
}

// A run whose ticket had ended when it wanted to renew it failed. Gate.Do and the proxy ask again.
func TestRunAsksAgainWhenItsTicketHasEnded(t *testing.T) {
	st := &forgetful{Store: memstore.New()}
	gate, err := sluice.OpenWithStore(t.Context(), st, sluice.Config{Store: "mem:", Leases: sluice.Leases{Off: true}, Resources: map[string]sluice.Resource{
		"api": {Limits: []sluice.Limit{{Name: "minute", Size: 10, Window: time.Minute}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Close() }()
	r := &runner{s: &session{gate: gate}, quiet: true}
	r.req = sluice.Request{Resource: "api", Agent: "a"}
	ticket, err := r.turn(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if st.asked != 2 {
		t.Errorf("it asked %d times, want 2", st.asked)
	}
	if err := ticket.Close(); err != nil {
		t.Error(err)
	}
}
