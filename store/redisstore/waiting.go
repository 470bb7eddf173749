package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// arm sees to it that somebody looks when time alone may let in one who waits.
func (st *state) arm(now, wake store.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if wake == 0 || st.closed || st.timerAt != 0 && st.timerAt <= wake {
		return
	}
	if _, waiting := st.proc.Notes(); waiting == 0 && !st.store.fixed {
		return // those whose tickets wait see to it
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

// tick looks whether time has let anybody in.
func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	idle := st.closed || st.lost != nil // which looks when it is over
	st.mu.Unlock()
	if idle {
		return
	}
	if err := st.apply(context.Background(), nil); err != nil && !st.store.fixed && !st.isLost.Load() {
		now := st.now()
		st.arm(now, now.Add(time.Second)) // those who wait find out why when they are asked after
	}
}

// keepWaiting says that those who wait are alive, and asks after some of them: each is told when it does not
// wait any more, but a message may have been lost.
func (st *state) keepWaiting() {
	st.mu.Lock()
	alive, some, gone := st.proc.KeepWaiting(maxTogether / 4)
	st.mu.Unlock()
	st.post(gone)
	for part := range slices.Chunk(alive, maxTogether) {
		if st.apply(st.life, part) != nil {
			return
		}
	}
	st.askAfter(some)
}

// askAll asks after all who wait.
func (st *state) askAll() {
	st.mu.Lock()
	ids := st.proc.Queued()
	st.mu.Unlock()
	for part := range slices.Chunk(ids, maxTogether) {
		if !st.askAfter(part) {
			return
		}
	}
}

// askAfter polls tickets. It reports whether the store has answered.
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
