package metrics

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Abilities returns the pool's abilities. It measures the slow ones.
func (p *clockedPool) Abilities() store.Abilities {
	can := store.Can(p.Pool)
	if can.Quick != nil {
		can.Quick = quickly{can.Quick, p.operated}
	}
	if can.Recorder != nil {
		can.Recorder = recorded{can.Recorder, p.operated}
	}
	if can.Foreseer != nil {
		can.Foreseer = foreseen{can.Foreseer, p.operated}
	}
	return can
}

// quickly measures a store.Quick.
type quickly struct {
	quick    store.Quick
	operated *operated
}

// CloseTicket calls and measures the pool's CloseTicket.
func (q quickly) CloseTicket(id store.ID, spent bool) error {
	began := time.Now()
	err := q.quick.CloseTicket(id, spent)
	q.operated.done(operation(store.OpClose), began, err)
	return err
}

// CollectTicket calls and measures the pool's CollectTicket.
func (q quickly) CollectTicket(id store.ID) (store.Result, error) {
	began := time.Now()
	r, err := q.quick.CollectTicket(id)
	q.operated.done(operation(store.OpPoll), began, err)
	return r, err
}

// recorded measures a store.Recorder.
type recorded struct {
	recorder store.Recorder
	operated *operated
}

// History calls and measures the pool's History.
func (r recorded) History(ctx context.Context, since store.Time) (store.History, error) {
	began := time.Now()
	h, err := r.recorder.History(ctx, since)
	r.operated.done(opHistory, began, err)
	return h, err
}

// foreseen measures a store.Foreseer.
type foreseen struct {
	foreseer store.Foreseer
	operated *operated
}

// Foresee calls and measures the pool's Foresee.
func (f foreseen) Foresee(ctx context.Context, ops []store.Op, within time.Duration) error {
	began := time.Now()
	err := f.foreseer.Foresee(ctx, ops, within)
	f.operated.done(opSnapshot, began, err)
	return err
}
