//go:build linux || darwin || windows

package filestore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Somebody has to look when time alone lets a waiter go. One process of those that wait is the
// keeper of the time: it sleeps until then. The others sleep a little longer, and look only at whether
// the keeper has done its duty. So a crowd of waiters costs next to nothing, and a keeper that
// was killed or stopped is soon replaced.

const (
	grace  = 100 * time.Millisecond // how late a keeper may be
	jitter = 50 * time.Millisecond
	rounds = 5 * time.Second // how often one looks who waits for others only
	// sweepEvery is how often those who wait are looked after: some may have been killed.
	sweepEvery = 2 * second
	maxSwept   = 64 // processes at a time
	maxWatched = 1024
)

// note notes what a step has done: which tickets of this process wait, and who is to be told
// of those that were decided.
func (st *state) note(ops []store.Op) {
	for i := range ops {
		if op := &ops[i]; op.Result.State == store.Waiting {
			st.waiting[op.ID] = struct{}{}
		} else if len(st.waiting) > 0 {
			delete(st.waiting, op.ID)
		}
	}
	for _, id := range st.core.Decided() {
		if processOf(id.Session) == st.process {
			st.mine = append(st.mine, id)
			delete(st.waiting, id)
		} else {
			st.fellow = append(st.fellow, id)
		}
	}
}

// lookAround notes whether anybody waits. The pool is locked.
func (st *state) lookAround() {
	crowded := false
	st.core.EachWaiting(func(uint64) bool {
		crowded = true
		return false
	})
	if st.crowded.Load() != crowded {
		st.crowded.Store(crowded)
	}
}

// keepTime settles who looks next, and when. The pool is locked.
func (st *state) keepTime() {
	h, wake := st.head, st.core.Wake()
	was := store.Time(h.wake.Load())
	if wake == 0 && was == 0 {
		if len(st.waiting) > 0 {
			st.arm(st.now(), st.now().Add(rounds))
		}
		return
	}
	now := st.now()
	waits := len(st.waiting) > 0
	keeper := h.keeper.Load()
	sooner := was == 0 || wake < was || was+store.Time(grace.Microseconds()) < now
	switch {
	case wake == 0:
		keeper = 0
	case waits && (keeper == 0 || sooner):
		keeper = st.process
	case !waits && (keeper == 0 || keeper == st.process || sooner):
		if keeper = st.otherWaiter(); keeper != 0 {
			st.fellow = append(st.fellow, store.ID{Session: keeper << 16}) // it has to set its clock
		} else {
			keeper, waits = st.process, true // a grant that nobody may collect
		}
	}
	h.keeper.Store(keeper)
	h.wake.Store(int64(wake))
	if !waits {
		return
	}
	d := rounds
	if wake != 0 {
		d = min(d, st.until(now, wake, keeper))
	}
	st.arm(now, now.Add(d))
}

// until returns how long to sleep before looking whether somebody can go at wake.
func (st *state) until(now, wake store.Time, keeper uint64) time.Duration {
	d := max(wake.Sub(now), 0)
	if keeper != st.process {
		d += grace + rand.N(jitter)
	}
	return d
}

// otherWaiter returns a process that waits, other than this one.
func (st *state) otherWaiter() (process uint64) {
	st.core.EachWaiting(func(session uint64) bool {
		if processOf(session) != st.process {
			process = processOf(session)
		}
		return process == 0
	})
	return process
}

// arm sets the timer. One that is set for earlier is left alone: it finds nothing to do and
// sets itself again.
func (st *state) arm(now, at store.Time) {
	if st.timerAt != 0 && st.timerAt <= at {
		return
	}
	st.timerAt = at
	if st.timer == nil {
		st.timer = st.store.clock.AfterFunc(at.Sub(now), st.tick)
		return
	}
	st.timer.Reset(at.Sub(now))
}

// tick is called when the timer has run out.
func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	if st.closed {
		st.mu.Unlock()
		return
	}
	// Others may have made the step meanwhile: then there is nothing to lock for.
	now := st.now()
	var wake store.Time
	var keeper uint64
	_ = st.faultless(func() { wake, keeper = store.Time(st.head.wake.Load()), st.head.keeper.Load() })
	if wake > now && now < st.roundAt {
		st.arm(now, now.Add(min(st.until(now, wake, keeper), st.roundAt.Sub(now))))
		st.mu.Unlock()
		return
	}
	st.mu.Unlock()
	st.look()
	st.goRound()
}

// goRound tells of tickets that were decided by a process which was killed before it could say
// so. It happens every few seconds.
func (st *state) goRound() {
	var missed []store.ID
	st.mu.Lock()
	if now := st.now(); now >= st.roundAt && !st.closed {
		st.roundAt = now.Add(rounds)
		if len(st.waiting) > 0 {
			missed = st.missed(now)
		}
	}
	st.mu.Unlock()
	st.notify(missed)
}

// missed returns tickets of this process that are thought to wait and do not. If another process has the lock, it is tried again soon.
func (st *state) missed(now store.Time) (ids []store.ID) {
	err := st.lockedBriefly(func() error {
		for id := range st.waiting {
			if !st.core.Waits(id) {
				ids = append(ids, id)
				delete(st.waiting, id)
			}
		}
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) && !st.closed {
		st.roundAt = now.Add(briefly)
		st.arm(now, st.roundAt)
	}
	return ids
}

// look makes a step in which nobody wants anything: time has passed.
func (st *state) look() {
	if err := st.apply(context.Background(), nil, nil); err != nil {
		st.retry()
		return
	}
	st.sweep()
}

// retry looks again a second later: the store could not be used, and may be by then. Those who
// wait are told to look for themselves: they find out why.
func (st *state) retry() {
	st.mu.Lock()
	var ids []store.ID
	if !st.closed && len(st.waiting) > 0 {
		now := st.now()
		st.arm(now, now.Add(time.Second))
		ids = slices.Collect(maps.Keys(st.waiting))
	}
	st.mu.Unlock()
	st.notify(ids)
}

// heard is called with what other processes say.
func (st *state) heard(ids []store.ID, all bool) {
	var mine []store.ID
	look := all
	for _, id := range ids {
		if id.N == 0 {
			look = true
		} else {
			mine = append(mine, id)
		}
	}
	st.mu.Lock()
	for _, id := range mine {
		delete(st.waiting, id)
	}
	if all { // some may be missing
		mine = append(mine, st.missed(st.now())...)
	}
	st.mu.Unlock()
	st.notify(mine)
	if look {
		st.look()
	}
}

// tell rings those whose tickets were decided. st.mu is held, and given back.
func (st *state) tell() {
	mine, fellow := st.mine, st.fellow
	if len(mine)+len(fellow) == 0 {
		st.mu.Unlock()
		return
	}
	st.mine, st.fellow = nil, nil
	st.mu.Unlock()
	st.notify(mine)
	slices.SortFunc(fellow, func(a, b store.ID) int {
		return cmp.Or(cmp.Compare(processOf(a.Session), processOf(b.Session)), cmp.Compare(a.N, b.N))
	})
	for len(fellow) > 0 {
		process := processOf(fellow[0].Session)
		n := 1
		for n < len(fellow) && processOf(fellow[n].Session) == process {
			n++
		}
		if !ring(st.dir, process, fellow[:n]) {
			st.bury(process)
		}
		fellow = fellow[n:]
	}
}

// notify tells handles of this process.
func (st *state) notify(ids []store.ID) {
	for len(ids) > 0 {
		session := ids[0].Session
		n := 1
		for n < len(ids) && ids[n].Session == session {
			n++
		}
		st.mu.Lock()
		h := st.sessions[session]
		st.mu.Unlock()
		if h != nil {
			if f := h.watch.Load(); f != nil {
				(*f)(ids[:n])
			}
		}
		ids = ids[n:]
	}
}

// bury gives back what a process that has died was waiting for, and bounds the tickets that are tied to it. It makes its step by itself:
// whoever leads the line may be the one who has noticed.
func (st *state) bury(process uint64) {
	_ = os.Remove(bellPath(st.dir, process))
	st.mu.Lock()
	_ = st.lockedBriefly(func() error { // if this fails, they expire
		var ops []store.Op
		st.core.EachWatched(func(session uint64) bool {
			if processOf(session) == process {
				ops = append(ops, store.Op{Kind: store.OpGone, ID: store.ID{Session: session}})
			}
			return len(ops) < store.MaxBatch
		})
		for _, id := range st.core.Pending(func(session uint64) bool { return processOf(session) == process }) {
			if len(ops) < store.MaxBatch {
				ops = append(ops, store.Op{Kind: store.OpCancel, ID: id})
			}
		}
		if len(ops) == 0 {
			return nil
		}
		if err := st.step(st.now(), ops); err != nil {
			return err
		}
		st.note(ops)
		st.keepTime()
		return nil
	})
	st.tell()
}

// sweepSoon is sweep for one who was refused, at most once a second: those who hold what it wants may be dead.
func (st *state) sweepSoon() {
	now := int64(st.now())
	if was := st.soon.Load(); now-was > int64(second) && st.soon.CompareAndSwap(was, now) {
		st.sweep()
	}
}

// sweep looks whether those who wait are alive, and those who hold tickets that are tied to them.
func (st *state) sweep() {
	var dead []uint64
	st.mu.Lock()
	_ = st.lockedBriefly(func() error {
		now := st.now()
		if now-store.Time(st.head.swept) < sweepEvery {
			return nil
		}
		st.head.swept = int64(now)
		var seen []uint64
		st.core.EachWaiting(func(session uint64) bool {
			process := processOf(session)
			if process != st.process && !slices.Contains(seen, process) {
				seen = append(seen, process)
				if !ring(st.dir, process, nil) {
					dead = append(dead, process)
				}
			}
			return len(seen) < maxSwept
		})
		clear(seen)
		seen = seen[:0]
		st.core.EachWatched(func(session uint64) bool {
			process := processOf(session)
			if process != st.process && !slices.Contains(seen, process) {
				seen = append(seen, process)
				if !slices.Contains(dead, process) && !ring(st.dir, process, nil) {
					dead = append(dead, process)
				}
			}
			return len(seen) < maxWatched
		})
		return nil
	})
	st.mu.Unlock()
	for _, process := range dead {
		st.bury(process)
	}
}
