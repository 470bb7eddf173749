package metrics

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

// What some pools can do and others cannot. Callers ask a pool which it is, so one with a clock must be able to do the
// same as without, and no more.
const (
	isQuick = 1 << iota
	isRecorder
	isAlarm
)

// quickly measures a store.Quick.
type quickly struct {
	quick    store.Quick
	operated *operated
}

// CloseTicket is that of the pool, measured.
func (q quickly) CloseTicket(id store.ID, spent bool) error {
	began := time.Now()
	err := q.quick.CloseTicket(id, spent)
	q.operated.done(operation(store.OpClose), began, err)
	return err
}

// CollectTicket is that of the pool, measured.
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

// History is that of the pool, measured.
func (r recorded) History(ctx context.Context, since store.Time) (store.History, error) {
	began := time.Now()
	h, err := r.recorder.History(ctx, since)
	r.operated.done(opHistory, began, err)
	return h, err
}

// Watches implements [store.Watcher]: it is asked, so every pool can have it.
func (p *clockedPool) Watches() bool {
	w, ok := p.Pool.(store.Watcher)
	return ok && w.Watches()
}

// Crowded implements [store.Crowd]: likewise.
func (p *clockedPool) Crowded() bool {
	c, ok := p.Pool.(store.Crowd)
	return ok && c.Crowded()
}

// clocked puts a clock on a pool.
func clocked(pool store.Pool, o *operated) store.Pool {
	p := &clockedPool{pool, o}
	can := 0
	quick, ok := pool.(store.Quick)
	if ok {
		can |= isQuick
	}
	recorder, ok := pool.(store.Recorder)
	if ok {
		can |= isRecorder
	}
	alarm, ok := pool.(store.Alarm)
	if ok {
		can |= isAlarm
	}
	q, r := quickly{quick, o}, recorded{recorder, o}
	type (
		base = *clockedPool
		alm  = store.Alarm
	)
	switch can {
	case isQuick:
		return struct {
			base
			quickly
		}{p, q}
	case isRecorder:
		return struct {
			base
			recorded
		}{p, r}
	case isQuick | isRecorder:
		return struct {
			base
			quickly
			recorded
		}{p, q, r}
	case isAlarm:
		return struct {
			base
			alm
		}{p, alarm}
	case isQuick | isAlarm:
		return struct {
			base
			quickly
			alm
		}{p, q, alarm}
	case isRecorder | isAlarm:
		return struct {
			base
			recorded
			alm
		}{p, r, alarm}
	case isQuick | isRecorder | isAlarm:
		return struct {
			base
			quickly
			recorded
			alm
		}{p, q, r, alarm}
	}
	return p
}
