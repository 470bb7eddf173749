package sluice_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// deaf is a store that does not answer when a request is given up.
type deaf struct{ store.Store }

func (d deaf) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := d.Store.Pool(ctx, spec)
	return deafPool{p}, err
}

type deafPool struct{ store.Pool }

func (p deafPool) Apply(ctx context.Context, ops []store.Op) error {
	if len(ops) > 0 && ops[0].Kind == store.OpCancel {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.Pool.Apply(ctx, ops)
}

// mute is a store that carries nothing out and reports no error.
type mute struct{ store.Store }

func (m mute) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := m.Store.Pool(ctx, spec)
	return mutePool{p}, err
}

type mutePool struct{ store.Pool }

func (mutePool) Apply(context.Context, []store.Op) error { return nil }

// The zero result meant granted: a store that lost its pool granted every request.
func TestAResultThatNoStoreWroteIsNoGrant(t *testing.T) {
	g, err := sluice.OpenWithStore(t.Context(), mute{memstore.New()}, sluice.Config{Resources: map[string]sluice.Resource{
		"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a"}); err == nil {
		t.Error("it was granted at once")
	}
	if _, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"}); err == nil {
		t.Error("it was granted")
	}
	if s := (store.Result{}).State; s == store.Granted || s.String() != "none" {
		t.Errorf("the zero result is %v", s)
	}
}

// A caller whose deadline has passed does not wait for a store that does not answer.
func TestADeadlineIsKeptWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := sluice.OpenWithStore(t.Context(), deaf{memstore.New()}, sluice.Config{Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if _, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := g.Acquire(ctx, sluice.Request{Resource: "api", Agent: "b"}); err == nil {
			t.Fatal("it was granted")
		}
		if took := time.Since(began); took > 3200*time.Millisecond {
			t.Errorf("a deadline of 3s took %v", took)
		}
	})
}
