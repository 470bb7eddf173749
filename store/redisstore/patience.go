package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// The store counts as lost when a call gets no reply for answerWithin, or when a call and its repeats fail within
// againWithin. A server that is busy for a moment (a slow command, a fork) replies well within answerWithin. A broken
// connection is replaced within againWithin. A failover takes seconds, and is an outage.
const (
	answerWithin = 500 * time.Millisecond
	slowWithin   = 5 * time.Second // answerWithin grows to this at most; after 10 s of silence others take this process for dead
	againWithin  = 90 * time.Millisecond
	passerWithin = 5 * time.Second  // for one-shot commands, which cannot go on without the store anyway
	fixedWithin  = 30 * time.Second // in tests whose clock stands still
	againAfter   = 20 * time.Millisecond
)

// An overloaded server or machine replies late for minutes. With a constant timeout the store would be lost and found
// again every few seconds, and the process would spend that time on its returns. So late replies raise the timeout.
const (
	slowFor   = time.Minute      // how long after the last late reply the timeout stays raised
	shortLoss = 10 * time.Second // an outage by timeout that is no longer than this counts as a late reply
)

// answerFor returns how long a call may take, given the timeout of the URL.
func answerFor(timeout time.Duration) time.Duration {
	return max(answerWithin, min(timeout/4, slowWithin))
}

// slowness records late replies.
type slowness struct {
	within atomic.Int64 // the timeout that they ask for
	until  atomic.Int64 // the uptime until which it counts
}

// took records how long a reply took.
func (s *slowness) took(d time.Duration) {
	if d < answerWithin {
		return
	}
	if s.patience() < 2*d {
		s.within.Store(int64(min(2*d, slowWithin)))
	}
	s.until.Store(int64(uptime() + slowFor))
}

// patience returns the timeout that late replies ask for, or 0 if there were none lately.
func (s *slowness) patience() time.Duration {
	if until := s.until.Load(); until == 0 || until < int64(uptime()) {
		return 0
	}
	return time.Duration(s.within.Load())
}

// patience returns how long a call may take.
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

// wasSlow counts a short outage by timeout as a late reply. The caller holds st.mu.
func (st *state) wasSlow(o *loss) {
	if errors.Is(o.first, context.DeadlineExceeded) && st.nowLocked().Sub(o.since) <= shortLoss && !st.store.fixed {
		st.store.slow.took(st.patience())
	}
}
