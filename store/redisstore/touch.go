package redisstore

import (
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

const (
	touchEvery  = time.Second
	soonTouch   = 150 * time.Millisecond  // when shares have changed
	soonTouches = 4                       // in a row
	touchWithin = 1500 * time.Millisecond // after which one that was stuck does nothing any more
	silentAfter = 3 * time.Second         // when the pool begins to withhold a silent member's share
)

// membership is this process among those that share a pool. There is one for all its sessions.
type membership struct {
	users   int        // handles
	share   int64      // what it was told last: one part in so many; 0: none
	heard   store.Time // when the pool was last heard to have heard of it
	expires store.Time // the end of its lease, by that
	pending store.Time // until when a touch counts that was not answered; 0: all were
}

// memberID is the session of the process as a member: those of handles begin at 1.
func (st *state) memberID() store.ID { return store.ID{Session: st.store.process << 16} }

// touchOp is what a member says. The state is locked.
func (st *state) touchOp() store.Op {
	m := &st.member
	op := store.Op{Kind: store.OpTouch, ID: st.memberID(), Share: m.share, Until: st.nowLocked().Add(touchWithin)}
	m.pending = max(m.pending, op.Until)
	return op
}

// touched takes in the answer. The state is locked.
func (st *state) touched(r *store.Result) {
	m := &st.member
	m.pending = 0
	if r.State != store.Granted {
		if r.Reason.Code == store.CodeFull {
			m.share = 0
		}
		return // it came too late: the next one will not
	}
	lease := st.spec.Lease
	if lease <= 0 {
		lease = store.DefaultLease
	}
	m.share, m.heard, m.expires = r.Share, r.Now, r.Now.Add(lease)
}

// retire ends the membership. The state is locked.
func (st *state) retire() store.Op {
	st.member = membership{}
	return store.Op{Kind: store.OpTouch, ID: st.memberID(), Spent: true}
}

// touch says that the process is alive. It reports that its share is not what it was: the sooner the pool
// hears that the member knows, the sooner others have theirs.
func (st *state) touch() (changed bool) {
	st.touching.Lock()
	defer st.touching.Unlock()
	st.mu.Lock()
	if st.member.users == 0 || st.lost != nil {
		st.mu.Unlock()
		return false
	}
	epoch := st.epoch
	ops := []store.Op{st.touchOp()}
	st.mu.Unlock()
	if err := st.apply(st.life, ops); err != nil {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.member.users > 0 && st.lost == nil && st.epoch == epoch {
		st.touched(&ops[0].Result)
	}
	return st.member.share == 0 || st.member.share != ops[0].Share
}

// keepUp does what has to be done every so often, as long as the pool is in use.
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
		if n%int(keepEvery/touchEvery) == 0 && !st.isLost.Load() {
			st.keepWaiting()
		}
		if n%rememberEvery == rememberEvery-1 {
			st.remember()
		}
		select {
		case <-tick.C:
		case <-st.life.Done():
			return
		}
	}
}

// keep starts keepUp. The state is locked.
func (st *state) keep() {
	if !st.upkeep && !st.store.fixed && !st.closed {
		st.upkeep = true
		st.running.Go(st.keepUp)
	}
}
