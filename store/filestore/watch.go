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

// When time alone makes a grant possible, a process has to wake up and make the step. One of the waiting processes
// is the keeper: it sleeps until that time. The others sleep a little longer and only check that the keeper woke. So
// many waiting processes cost next to nothing, and a keeper that was killed or stopped is soon replaced.

const (
	grace  = 100 * time.Millisecond // how late a keeper may be
	jitter = 50 * time.Millisecond
	rounds = 5 * time.Second // how often a process checks that waits only for steps of others
	// sweepEvery is how often a process checks that the waiting processes are alive.
	sweepEvery = 2 * second
	maxSwept   = 64 // processes at a time
	maxWatched = 1024
)

// note records the result of a step: the waiting tickets of this process, and the decided tickets whose owners must
// be told.
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

// lookAround records whether any request waits. The pool is locked.
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

// keepTime decides which process wakes next, and when. The pool is locked.
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
			st.fellow = append(st.fellow, store.ID{Session: keeper << 16}) // it has to set its timer
		} else {
			keeper, waits = st.process, true // no process waits: this one grants requests whose owner may be gone
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

// until returns how long to sleep before checking for the grant that is possible at wake.
func (st *state) until(now, wake store.Time, keeper uint64) time.Duration {
	d := max(wake.Sub(now), 0)
	if keeper != st.process {
		d += grace + rand.N(jitter)
	}
	return d
}

// otherWaiter returns another process that waits, or 0.
func (st *state) otherWaiter() (process uint64) {
	st.core.EachWaiting(func(session uint64) bool {
		if processOf(session) != st.process {
			process = processOf(session)
		}
		return process == 0
	})
	return process
}

// arm sets the timer. It leaves an earlier setting alone: the timer then finds nothing to do and sets itself again.
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
	// Another process may have made the step already. Then there is no need to lock.
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

// goRound reports tickets whose decision this process was not told about, because the deciding process was killed
// first. It runs every few seconds.
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

// missed returns tickets of this process that it believes to be waiting but that are decided. If another process has
// the lock, missed runs again soon.
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

// look makes a step without operations, to grant what the passed time allows.
func (st *state) look() {
	if err := st.apply(context.Background(), nil); err != nil {
		st.retry()
		return
	}
	st.sweep()
}

// retry looks again in a second, because the store could not be used. It notifies the waiting requests, which then
// get the error themselves.
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

// heard handles notices from other processes. all says that some ids may be missing.
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
	if all { // some ids may be missing
		mine = append(mine, st.missed(st.now())...)
	}
	st.mu.Unlock()
	st.notify(mine)
	if look {
		st.look()
	}
}

// tell notifies the owners of decided tickets. st.mu is held, and tell unlocks it.
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

// notify calls the watch functions of this process's sessions.
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

// bury cancels the waiting requests of a dead process, and bounds the arrival of the tickets tied to it. It makes
// its own step instead of using the combiner, because the combiner's leader may be the caller.
func (st *state) bury(process uint64) {
	_ = os.Remove(bellPath(st.dir, process))
	st.mu.Lock()
	_ = st.lockedBriefly(func() error { // if this fails, the tickets expire
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

// sweepSoon sweeps after a refusal, at most once a second: the holders of the quota may be dead.
func (st *state) sweepSoon() {
	now := int64(st.now())
	if was := st.soon.Load(); now-was > int64(second) && st.soon.CompareAndSwap(was, now) {
		st.sweep()
	}
}

// sweep checks that the processes with waiting requests, and those with tickets tied to them, are alive.
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
