package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// arm sets a timer for when time alone may grant a waiting request.
func (st *state) arm(now, wake store.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if wake == 0 || st.closed || st.timerAt != 0 && st.timerAt <= wake {
		return
	}
	if _, waiting := st.proc.Notes(); waiting == 0 && !st.store.fixed {
		return // the processes whose tickets wait set the timer
	}
	st.timerAt = wake
	d := max(wake.Sub(now), 0)
	if !st.store.fixed {
		d += jitter()
	}
	if st.timer == nil {
		st.timer = st.store.clock.AfterFunc(d, st.tick)
		return
	}
	st.timer.Reset(d)
}

// tick makes a call without operations, so that the pool grants what time allows.
func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	idle := st.closed || st.lost != nil // comeBack ticks after an outage
	st.mu.Unlock()
	if idle {
		return
	}
	if err := st.apply(context.Background(), nil); err != nil && !st.store.fixed && !st.isLost.Load() {
		now := st.now()
		st.arm(now, now.Add(time.Second)) // callers learn of the error when their tickets are polled
	}
}

// keepWaiting keeps the waiting tickets of this process alive, and polls some of them: a message that a ticket was decided
// may have been lost.
func (st *state) keepWaiting() {
	st.mu.Lock()
	alive, some, gone := st.proc.KeepWaiting(maxTogether / 4)
	st.mu.Unlock()
	st.post(gone)
	for chunk := range slices.Chunk(alive, maxTogether) {
		if st.apply(st.life, chunk) != nil {
			return
		}
	}
	st.askAfter(some)
}

// askAll polls all waiting tickets.
func (st *state) askAll() {
	st.mu.Lock()
	ids := st.proc.Queued()
	st.mu.Unlock()
	for chunk := range slices.Chunk(ids, maxTogether) {
		if !st.askAfter(chunk) {
			return
		}
	}
}

// askAfter polls tickets and tells their sessions. It returns false if the store did not answer.
func (st *state) askAfter(ids []store.ID) bool {
	ops := make([]store.Op, len(ids))
	for i, id := range ids {
		ops[i] = store.Op{Kind: store.OpPoll, ID: id}
	}
	if err := st.apply(st.life, ops); err != nil {
		return false
	}
	st.mu.Lock()
	over, undo := st.proc.AskedAfter(ops, uptime())
	st.mu.Unlock()
	st.tell(over)
	st.post(undo)
	return true
}
