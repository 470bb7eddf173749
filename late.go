package sluice

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// A ticket takes three operations: acquire, answer, close. Its caller needs the result of the first alone. Where the store is
// shared, each operation takes a round trip, so the other two are reported late: they wait in a short list of their resource, and
// go in front of its next call, in the same batch. A caller that makes one request after the other pays one round trip a ticket.
// What no call takes along leaves by itself: within lateWithin, at once while requests wait for the room that it frees, and at once
// when the list is full. The timer for that runs only while there is something to send.
//
// To report late is safe. An answer bounds when its request arrived, and a close frees what it held: until the store hears of them it
// reckons with more than was used, never with less. A process that dies with reports in its list leaves tickets behind like any
// other that dies, and the store ends them as it ends those.
//
// Only an answer that is ok and states no limits is reported late, and the end of a ticket; only by the process that acquired it; and
// not while a pause, a probe or a ramp holds the resource. Everything else is reported at once, in a batch behind the list: refusals,
// stated limits, tickets that were attached by their ids. Reading the state empties the list first. So does Gate.Close.
//
// A report whose call fails is not lost. Either the store has kept it ([store.ErrKept]), or it goes back into the list and is sent
// again. From the failure until a call succeeds, every report waits for its call and returns its error.
const (
	lateWithin = 2 * time.Millisecond
	lateMost   = 64 // reports in the list, and in a batch
	// How long after a failure the list is sent again if no call takes it along: twice as long each time.
	lateRetry    = 100 * time.Millisecond
	lateRetryMax = 5 * time.Second
)

// late holds the reports of one resource.
type late struct {
	on      bool         // reports may be late
	busy    atomic.Int32 // reports in the list, and answers under way
	held    atomic.Bool  // the latest call found the resource held
	failing atomic.Bool  // the latest call has failed

	mu      sync.Mutex
	list    []report
	due     time.Time // when the list has to leave
	timer   *time.Timer
	armed   time.Time // what the timer is set for; zero: it is not
	leaving bool      // the timer's call is under way
	retry   time.Duration
	closed  bool

	flying  map[store.ID]struct{} // answers under way whose tickets are open: a close must not overtake them
	started uint64                // batches with reports that were sent so far
	open    int                   // those of them that are under way
	waits   []*landing
}

// report is what the store has to be told of one ticket.
type report struct {
	id       store.ID
	answered bool // ok, and no limits stated
	closed   bool
	spent    bool
	used     [store.MaxLimits]int64 // as in a close
}

// isLate reports whether what becomes of the ticket may be reported late.
func (t *Ticket) isLate() bool {
	l := &t.resource.late
	return t.own && !t.held && l.on && !l.held.Load() && !l.failing.Load()
}

// answerLate reports an answer that is ok. It reports false if that has to be done at once.
func (r *resource) answerLate(id store.ID) (done bool, err error) {
	l := &r.late
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false, nil
	}
	if p := l.find(id); p != nil {
		defer l.mu.Unlock()
		if p.closed {
			return true, r.ended(id)
		}
		p.answered = true
		return true, nil
	}
	p := l.add()
	p.id, p.answered = id, true
	return true, r.added()
}

// closeLate reports the end of a ticket. It reports false if that has to be done at once.
func (r *resource) closeLate(id store.ID, spent bool, usage []Amount) (done bool, err error) {
	l := &r.late
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false, nil
	}
	p := l.find(id)
	if p != nil && p.closed { // the first close counts
		l.mu.Unlock()
		return true, nil
	}
	if p == nil {
		p = l.add()
		p.id = id
		_, p.answered = l.flying[id]
	}
	p.closed, p.spent = true, spent
	r.setUsage(&p.used, usage)
	return true, r.added()
}

// find returns the report of a ticket, nil if there is none. The list is locked.
func (l *late) find(id store.ID) *report {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].id == id {
			return &l.list[i]
		}
	}
	return nil
}

// add returns a new report. The list is locked.
func (l *late) add() *report {
	if l.list == nil {
		l.list = make([]report, 0, lateMost)
	}
	if len(l.list) == 0 {
		l.due = time.Now().Add(lateWithin)
	}
	l.list = append(l.list, report{})
	l.busy.Add(1)
	return &l.list[len(l.list)-1]
}

// added sees to it that the list leaves in time, and unlocks it.
func (r *resource) added() error {
	l := &r.late
	if len(l.list) >= lateMost {
		l.mu.Unlock()
		if err := r.send(context.Background(), nil); err != nil {
			return r.storeError(err)
		}
		return nil
	}
	if r.isCrowded() {
		l.due = time.Time{}
	}
	r.arm()
	l.mu.Unlock()
	return nil
}

// isCrowded reports whether requests may wait for what a report frees.
func (r *resource) isCrowded() bool {
	return r.line.entered.Load() > 0 || r.crowd != nil && r.crowd.Crowded()
}

// arm sets the timer. The list is locked.
func (r *resource) arm() {
	l := &r.late
	at := l.due
	if at.IsZero() {
		at = time.Now()
	}
	if l.closed || l.leaving || !l.armed.IsZero() && !at.Before(l.armed) {
		return
	}
	l.armed = at
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Until(at), r.leave)
		return
	}
	l.timer.Reset(time.Until(at))
}

// leave sends the list when its time has come. Calls may have taken along what the timer was set for.
func (r *resource) leave() {
	l := &r.late
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = time.Time{}
	if len(l.list) == 0 || l.leaving || l.closed {
		return
	}
	if time.Now().Before(l.due) {
		r.arm()
		return
	}
	l.leaving = true
	l.mu.Unlock()
	_ = r.send(context.Background(), nil) // what failed is in the list again, and the next report returns its error
	l.mu.Lock()
	l.leaving = false
	if len(l.list) > 0 {
		r.arm()
	}
}
