package redisstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// GoTheLongWay has a store decide without the fast path.
func (s *Store) GoTheLongWay() { s.longWay = true }

// Kill ends a store as if its process had been killed.
func (s *Store) Kill() { s.kill() }

// Uphold does what a process does every few seconds about what it states.
func (s *Store) Uphold() {
	s.mu.Lock()
	pools := slices.Collect(maps.Values(s.pools))
	s.mu.Unlock()
	for _, st := range pools {
		_ = st.publish(context.Background())
		if st.unsettled() {
			st.settle(context.Background())
		}
	}
}

// Share is what the process was told that it has of a pool: one part in so many.
func Share(p store.Pool) int64 {
	st := p.(*handle).state
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.proc.Share()
}

// Epoch is that of a pool, as the process knows it.
func Epoch(p store.Pool) int64 {
	st := p.(*handle).state
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.epoch
}

// PutClockForward makes the process believe that the server's clock is earlier than it is.
func PutClockForward(p store.Pool, by store.Time) {
	st := p.(*handle).state
	st.mu.Lock()
	defer st.mu.Unlock()
	st.clock.at -= by
}

// Notes is how much the process has noted: open tickets, those that wait, and calls whose outcome is
// not known.
func Notes(p store.Pool) (open, waiting, void int) {
	st := p.(*handle).state
	st.mu.Lock()
	defer st.mu.Unlock()
	open, waiting = st.proc.Notes()
	return open, waiting, len(st.void)
}

// AnswerWithin sets how long a member waits for an answer before the store counts as lost; 0: as long as without a test.
func (s *Store) AnswerWithin(d time.Duration) { s.answer.Store(int64(cmp.Or(d, answerWithin))) }

// Source is the script, and WhereIn finds a failure in it.
var (
	Source  = applySource
	WhereIn = whereIn
)

var AnswerFor = answerFor

// StopTouching stops the heartbeat of the process on a pool until resume is called.
func StopTouching(p store.Pool) (resume func()) {
	st := p.(*handle).state
	st.touching.Lock()
	return st.touching.Unlock
}

// ShareReading decides whether a view takes the last reading of a large pool.
var ShareReading = share
