package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// When the store counts as lost: if a call was not answered for answerWithin, or if one has failed and
// its repetition too, all within againWithin. A server that is busy for a moment (a slow command, a
// fork) answers well before the one, and a connection that broke is there again before the other; a
// failover takes seconds, and is an outage.
const (
	answerWithin = 500 * time.Millisecond
	slowWithin   = 5 * time.Second // the most that it grows to; others take this process for dead after 10 s of silence
	againWithin  = 90 * time.Millisecond
	passerWithin = 5 * time.Second  // for a process that has nothing to go on with anyway
	fixedWithin  = 30 * time.Second // in tests whose clock stands still
	againAfter   = 20 * time.Millisecond
)

// A Redis, or a machine, that is overloaded answers late for minutes. With the same patience as ever, the store would be lost
// and found again every few seconds, and each time the process would spend that long on its return.
const (
	slowFor   = time.Minute      // patience stays larger for so long after the last late answer
	shortLoss = 10 * time.Second // an outage of calls that were not answered in time, and not longer than this, was a late answer
)

// answerFor is the patience that a URL's timeout asks for.
func answerFor(timeout time.Duration) time.Duration {
	return max(answerWithin, min(timeout/4, slowWithin))
}

// slowness is what is known of late answers.
type slowness struct {
	within atomic.Int64 // the patience that they ask for
	until  atomic.Int64 // uptime until which it counts
}

// took notes how long an answer took.
func (s *slowness) took(d time.Duration) {
	if d < answerWithin {
		return
	}
	if s.patience() < 2*d {
		s.within.Store(int64(min(2*d, slowWithin)))
	}
	s.until.Store(int64(uptime() + slowFor))
}

// patience is what late answers ask for; 0 if there were none lately.
func (s *slowness) patience() time.Duration {
	if s.until.Load() < int64(uptime()) {
		return 0
	}
	return time.Duration(s.within.Load())
}

// patience is how long a call may take.
func (st *state) patience() time.Duration {
	switch {
	case st.store.fixed:
		return fixedWithin
	case st.resident.Load():
		return max(time.Duration(st.store.answer.Load()), st.store.slow.patience())
	default:
		return max(passerWithin, st.store.timeout)
	}
}

// wasSlow takes in that an outage is over. The state is locked.
func (st *state) wasSlow(o *loss) {
	if errors.Is(o.first, context.DeadlineExceeded) && st.nowLocked().Sub(o.since) <= shortLoss && !st.store.fixed {
		st.store.slow.took(st.patience())
	}
}
