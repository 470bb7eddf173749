package redisstore

import (
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

const (
	touchEvery  = time.Second
	soonTouch   = 150 * time.Millisecond // after the share has changed, or another process has created the pool
	soonTouches = 4                      // at most, in a row
)

// touch is the heartbeat of this process as a member. It reports whether the share has changed. Touch again soon then: the
// other members get their shares once the pool knows that this one has noticed.
func (st *state) touch() (changed bool) {
	st.touching.Lock()
	defer st.touching.Unlock()
	st.mu.Lock()
	op, member := store.Op{}, false
	if st.lost == nil {
		op, member = st.proc.Touch(st.nowLocked())
	}
	epoch := st.epoch
	st.mu.Unlock()
	if !member {
		return false
	}
	ops := []store.Op{op}
	if err := st.apply(st.life, ops); err != nil {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.lost == nil && st.epoch == epoch {
		st.proc.Touched(&ops[0])
	}
	return st.proc.Share() == 0 || st.proc.Share() != op.Share
}

// keepUp does the periodic work of a pool until it is no longer used.
func (st *state) keepUp() {
	tick := time.NewTicker(touchEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		for range soonTouches {
			if !st.touch() || !sleep.For(st.life, soonTouch) {
				break
			}
		}
		st.bury()
		st.uphold(n%statedEvery == statedEvery-1)
		if n%int(outage.KeepEvery/touchEvery) == 0 && !st.isLost.Load() {
			st.keepWaiting()
		}
		if n%rememberEvery == rememberEvery-1 {
			st.remember(false)
		}
		select {
		case <-tick.C:
		case <-st.life.Done():
			return
		}
	}
}

// keep starts keepUp. The caller holds st.mu.
func (st *state) keep() {
	if !st.upkeep && !st.store.fixed && !st.closed {
		st.upkeep = true
		st.running.Go(st.keepUp)
	}
}
