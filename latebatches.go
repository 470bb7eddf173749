package sluice

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// batch holds operations on their way to the store, with reports in front.
type batch struct {
	reports []report
	ops     []store.Op
	amounts []store.Amount // of ops
	number  uint64
}

// landing is a caller that waits for the batches in progress.
type landing struct {
	upTo uint64
	left int
	done chan struct{}
}

var batches = sync.Pool{New: func() any { return &batch{reports: make([]report, 0, 4), ops: make([]store.Op, 0, 8)} }}

// send applies ops, in one batch behind the reports of the list.
func (r *resource) send(ctx context.Context, ops []store.Op) error {
	l := &r.late
	if l.busy.Load() == 0 {
		if len(ops) == 0 {
			return nil
		}
		err := r.pool.Apply(ctx, ops)
		if l.on {
			l.heard(ctx, ops, err)
		}
		return err
	}
	b := l.board(ops)
	if len(b.ops) == 0 {
		batches.Put(b)
		return nil
	}
	err := r.pool.Apply(ctx, b.ops)
	copy(ops, b.ops[len(b.ops)-len(ops):])
	l.heard(ctx, b.ops, err)
	r.landed(ctx, b, err)
	return err
}

// board makes a batch of the list and ops.
func (l *late) board(ops []store.Op) *batch {
	b := batches.Get().(*batch)
	b.ops, b.amounts, b.number = b.ops[:0], b.amounts[:0], 0
	l.mu.Lock()
	n := min(len(l.list), lateMost)
	b.reports = append(b.reports[:0], l.list[:n]...)
	l.list = l.list[:copy(l.list, l.list[n:])]
	for i := range ops {
		if _, flies := l.flying[ops[i].ID]; flies && ops[i].Kind == store.OpClose {
			b.ops = append(b.ops, store.Op{Kind: store.OpAnswer, ID: ops[i].ID, Verdict: store.VerdictOK}) // a second answer changes nothing
		}
	}
	var now time.Time
	if n > 0 {
		now = time.Now()
	}
	for i := range b.reports {
		p := &b.reports[i]
		if p.answered {
			b.ops = append(b.ops, store.Op{Kind: store.OpAnswer, ID: p.id, Verdict: store.VerdictOK, Age: ageOf(p.began, now)})
		}
		switch {
		case p.unsent:
			if p.tell != nil { // was it open until now?
				b.ops = append(b.ops, store.Op{Kind: store.OpPoll, ID: p.id})
			}
			b.ops = append(b.ops, store.Op{Kind: store.OpCancel, ID: p.id})
			continue
		case p.closed:
			from := len(b.amounts)
			b.amounts = p.used.appendTo(b.amounts, l.units)
			b.ops = append(b.ops, store.Op{Kind: store.OpClose, ID: p.id, Spent: p.spent, Amounts: b.amounts[from:], Age: ageOf(p.ended, now)})
			continue
		}
		if l.flying == nil {
			l.flying = map[store.ID]struct{}{}
		}
		l.flying[p.id] = struct{}{}
	}
	if n > 0 {
		l.started++
		l.open++
		b.number = l.started
	}
	l.count()
	l.mu.Unlock()
	b.ops = append(b.ops, ops...)
	return b
}

// count updates busy, which tells send whether reports must precede ops. The list is locked.
func (l *late) count() { l.busy.Store(int32(len(l.list) + len(l.flying))) } //nolint:gosec // there are few

// heard records what a call shows about the store and the resource.
func (l *late) heard(ctx context.Context, ops []store.Op, err error) {
	if err != nil {
		if !endedBy(ctx, err) {
			l.failing.Store(true)
		}
		return
	}
	if l.failing.Load() {
		l.failing.Store(false)
	}
	held := false
	for i := range ops {
		held = held || ops[i].Result.Held
	}
	if l.held.Load() != held {
		l.held.Store(held)
	}
}

// endedBy reports whether err only says that the caller has left, and nothing about the store.
func endedBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// landed records the end of a batch's call.
func (r *resource) landed(ctx context.Context, b *batch, err error) {
	l := &r.late
	r.tellCancelled(b, err)
	l.mu.Lock()
	for i := range b.reports {
		if p := &b.reports[i]; !p.closed {
			delete(l.flying, p.id)
		}
	}
	switch {
	case err == nil:
		l.retry = 0
	case errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrKept):
	default:
		l.putBack(b.reports)
		if l.due = time.Now().Add(lateWithin); !endedBy(ctx, err) || r.observe {
			l.postpone()
		}
		if len(l.list) > 0 {
			r.arm()
		}
	}
	if b.number > 0 {
		l.open--
		l.tellLanded(b.number)
	}
	l.count()
	l.mu.Unlock()
	clear(b.ops)
	batches.Put(b)
}

// tellCancelled emits the events of tickets that a batch has given back. If its call failed, the tickets count as given
// back: the list is sent again.
func (r *resource) tellCancelled(b *batch, err error) {
	for i := range b.reports {
		p := &b.reports[i]
		if p.tell == nil {
			continue
		}
		was := store.Granted
		for k := range b.ops {
			if op := &b.ops[k]; err == nil && op.Kind == store.OpPoll && op.ID == p.id {
				was = op.Result.State
				break
			}
		}
		if was == store.Granted {
			r.emit(*p.tell)
		}
		p.tell = nil
	}
}

// putBack puts the reports of a failed call back into the list. The list is locked.
func (l *late) putBack(reports []report) {
	kept := l.list
	l.list = make([]report, 0, max(lateMost, len(reports)+len(kept)))
	l.list = append(l.list, reports...)
	for i := range kept {
		p := l.find(kept[i].id)
		switch {
		case p == nil:
			l.list = append(l.list, kept[i])
		case !p.closed: // its close has been added meanwhile
			was := *p
			*p = kept[i]
			if was.answered {
				p.answered, p.began = true, was.began
			}
		}
	}
}

// tellLanded wakes the callers that wait for a batch. The list is locked.
func (l *late) tellLanded(number uint64) {
	rest := l.waits[:0]
	for _, w := range l.waits {
		if number <= w.upTo {
			w.left--
		}
		if w.left == 0 {
			close(w.done)
		} else {
			rest = append(rest, w)
		}
	}
	clear(l.waits[len(rest):])
	l.waits = rest
}

// wait waits for the batches in progress.
func (l *late) wait(ctx context.Context) {
	l.mu.Lock()
	if l.open == 0 {
		l.mu.Unlock()
		return
	}
	w := &landing{l.started, l.open, make(chan struct{})}
	l.waits = append(l.waits, w)
	l.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done(): // w stays in the list until the batches have landed
	}
}

// flush sends everything that was reported so far.
func (r *resource) flush(ctx context.Context) (err error) {
	l := &r.late
	for l.busy.Load() > 0 && err == nil {
		l.mu.Lock()
		empty := len(l.list) == 0
		l.mu.Unlock()
		if empty {
			break
		}
		err = r.send(ctx, nil)
	}
	l.wait(ctx)
	return err
}

// endLate sends the list for the last time. From now on every report waits for its call.
func (r *resource) endLate() error {
	l := &r.late
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	l.wait(ctx) // failed reports are in the list again
	if err := r.flush(ctx); err != nil {
		return r.storeError(err)
	}
	return nil
}
