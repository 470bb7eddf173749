//go:build !peersonly

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// bareStore is a store whose callers ask it themselves: nothing but the store is between a grant and them.
type bareStore struct {
	pool store.Pool
	row  *ContendedRow

	mu    sync.Mutex
	bells map[store.ID]chan struct{} // of waiting requests
}

// bareAgain is how long a caller waits that the store could not tell anything. It also asks that often by itself, as wake-ups can be
// lost.
const bareAgain = 3 * time.Second

func openAsked(ctx context.Context, url string, row *ContendedRow) (contenderGate, error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return contenderGate{}, err
	}
	b := &bareStore{row: row, bells: map[store.ID]chan struct{}{}}
	backoff := store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}
	b.pool, err = s.Pool(ctx, store.Spec{
		Name: resource, MaxWaiting: 100_000, Classes: []store.Class{{Name: "p0", Weight: 1}}, Throttle: backoff, Overload: backoff,
		Limits: []store.Limit{{Name: "requests", Kind: store.Bucket, Unit: "requests", Size: contendedRate, Burst: 1, Window: time.Second, Guard: store.GuardOff}},
	})
	if err != nil {
		return contenderGate{}, errors.Join(err, s.Close())
	}
	b.pool.Watch(func(ids []store.ID) {
		for _, id := range ids {
			b.mu.Lock()
			bell := b.bells[id]
			b.mu.Unlock()
			select {
			case bell <- struct{}{}:
			default: // no caller waits, or the bell has rung
			}
		}
	})
	return contenderGate{b.acquire, s.Close}, nil
}

// acquire asks until it is granted. Asking fails while Redis stands still, which must not cost the place.
func (b *bareStore) acquire(ctx context.Context, caller int) (time.Time, func() error, error) {
	ask := store.Op{Kind: store.OpAcquire, Agent: agentEach(caller), TTL: time.Minute, Wait: -1, Amounts: []store.Amount{{Unit: "requests", N: 1}}}
	got, err := b.apply(ctx, ask)
	if err != nil {
		return time.Time{}, nil, err
	}
	id, bell := got.ID, make(chan struct{}, 1)
	b.mu.Lock()
	b.bells[id] = bell
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.bells, id)
		b.mu.Unlock()
	}()
	for got.State == store.Waiting {
		again := time.NewTimer(bareAgain)
		select {
		case <-bell:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		if got, err = b.apply(ctx, store.Op{Kind: store.OpPoll, ID: id}); err != nil {
			return time.Time{}, nil, err
		}
	}
	if got.State != store.Granted {
		b.row.lost.Add(1)
		return time.Time{}, nil, nil
	}
	end := func() error {
		_, err := b.apply(context.WithoutCancel(ctx), store.Op{Kind: store.OpClose, ID: got.ID})
		return err
	}
	return time.UnixMicro(int64(got.GrantedAt)), end, nil
}

// apply applies an operation, again and again while Redis stands still.
func (b *bareStore) apply(ctx context.Context, op store.Op) (store.Result, error) {
	for {
		ops := []store.Op{op}
		err := b.pool.Apply(ctx, ops)
		if err == nil || b.row.Stall == 0 || !errors.Is(err, store.ErrUnavailable) {
			return ops[0].Result, err
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return store.Result{}, err
		}
	}
}
