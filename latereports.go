package sluice

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// A ticket takes three operations: acquire, answer and close. The caller needs only the result of the first. On a
// shared store each operation takes a round trip, so the other two are reported late: they wait in a short list per
// resource, and go in front of its next call, in the same batch. A caller that makes one request after the other pays
// one round trip per ticket. If no call takes the list along, a timer sends it within lateWithin, or within calmWithin on
// a store that says when requests begin to wait ([store.Calm]). It is sent at once while requests wait for the room that it
// frees, and when it is full. The timer runs only while the list has entries. What is reported much later states its age.
//
// Reporting late is safe. An answer bounds when its request arrived, and a close frees what the request held. Until the
// store learns of them, it assumes more use than there is, never less. If a process dies with reports in its list, the
// store ends its tickets like those of any other dead process.
//
// Only ok answers without stated limits, the ends of tickets and, in mode observe, unsent tickets are reported late. Only
// the process that acquired the ticket does so, and not while a pause, a probe or a ramp holds the resource. All else is reported at once, in a batch
// behind the list: refusals, stated limits, tickets that were attached by their ids. Reading the state and Gate.Close
// send the list first.
//
// A report whose call fails is not lost. Either the store has kept it ([store.ErrKept]), or it goes into the list and is
// sent again. From the failure until a call succeeds, every report waits for its call and returns its error. This holds
// for all stores, and for tickets that are given back: otherwise they would stay in flight until they expire.
const (
	lateWithin = 2 * time.Millisecond
	calmWithin = 150 * time.Millisecond
	// leastAge is the least age that is stated. It takes two bytes, and less makes no difference.
	leastAge = 10 * time.Millisecond
	lateMost = 64 // reports in the list, and in a batch
	// How long after a failure the list is sent again, if no call takes it along. The time doubles with each failure.
	lateRetry    = 100 * time.Millisecond
	lateRetryMax = 5 * time.Second
	// mostKept bounds the list of reports that are sent again. Tickets beyond it expire.
	mostKept = 4096
)

// late holds the reports of one resource.
type late struct {
	on      bool         // reports may be late
	units   []string     // of the resource
	calm    store.Calm   // nil: the store does not say
	busy    atomic.Int32 // reports in the list, and answers in progress
	held    atomic.Bool  // the latest call found the resource paused, probing or ramping
	failing atomic.Bool  // the latest call has failed

	mu      sync.Mutex
	list    []report
	due     time.Time // when to send the list
	timer   *time.Timer
	armed   time.Time // what the timer is set for; zero: not set
	leaving bool      // the timer's call is in progress
	retry   time.Duration
	closed  bool

	flying  map[store.ID]struct{} // answers in progress of open tickets: a close must not overtake them
	started uint64                // batches with reports sent so far
	open    int                   // batches in progress
	waits   []*landing
}

// report is what to tell the store about one ticket.
type report struct {
	id       store.ID
	answered bool // ok, and no limits stated
	closed   bool
	began    time.Time // when it was answered; zero: not known
	ended    time.Time // when it was closed; zero: not known
	spent    bool
	unsent   bool           // closed, and it is to be given back
	tell     *inspect.Event // the event to emit once the store has given the ticket back, or has failed
	used     used
}

// isLate reports whether the ticket's answer and close may be reported late.
func (t *Ticket) isLate() bool {
	l := &t.resource.late
	return t.own && !t.held && l.on && !l.held.Load() && !l.failing.Load() && (!t.resource.observe || !t.resource.isAway())
}

// answerLate queues the report of an ok answer. It returns false if the answer must be reported at once.
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
		p.answered, p.began = true, time.Now()
		return true, nil
	}
	p := l.add()
	p.id, p.answered, p.began = id, true, time.Now()
	return true, r.added()
}

// closeLate queues the report of a ticket's end. It returns false if the end must be reported at once.
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
	p.closed, p.spent, p.ended = true, spent, time.Now()
	p.used = r.usedOf(usage)
	return true, r.added()
}

// cancelLate queues a ticket to be given back. It returns false if that must be done at once.
func (r *resource) cancelLate(t *Ticket) (done bool, err error) {
	var tell *inspect.Event
	if r.events != nil {
		e := t.cancelled()
		e.Time = time.Now().UTC()
		tell = &e
	}
	l := &r.late
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false, nil
	}
	p := l.find(t.id)
	if p != nil && p.closed { // it has ended
		l.mu.Unlock()
		return true, nil
	}
	if p == nil {
		p = l.add()
		p.id = t.id
		_, p.answered = l.flying[t.id]
	}
	p.closed, p.unsent, p.tell = true, true, tell
	return true, r.added()
}

// again queues a report whose call has failed, unless the store has kept it or is closed.
func (r *resource) again(p report, err error) {
	if errors.Is(err, store.ErrKept) || errors.Is(err, store.ErrClosed) {
		return
	}
	l := &r.late
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.find(p.id)
	switch {
	case old == nil && len(l.list) >= mostKept:
		return
	case old == nil:
		*l.add() = p
	case !old.closed:
		if old.answered {
			p.answered, p.began = true, old.began
		}
		*old = p
	}
	l.postpone()
	r.arm()
}

// postpone sets the time of the next try after a failure. The list is locked.
func (l *late) postpone() {
	l.retry = min(max(2*l.retry, lateRetry), lateRetryMax)
	l.due = time.Now().Add(l.retry)
}

// find returns the report about a ticket, or nil. The list is locked.
func (l *late) find(id store.ID) *report {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].id == id {
			return &l.list[i]
		}
	}
	return nil
}

// add adds a report to the list and returns it. The list is locked.
func (l *late) add() *report {
	if l.list == nil {
		l.list = make([]report, 0, lateMost)
	}
	if len(l.list) == 0 {
		within := lateWithin
		if l.calm != nil && l.calm.Calm() {
			within = calmWithin
		}
		l.due = time.Now().Add(within)
	}
	l.list = append(l.list, report{})
	l.busy.Add(1)
	return &l.list[len(l.list)-1]
}

// added makes sure that the list is sent in time, and unlocks it.
func (r *resource) added() error {
	l := &r.late
	if len(l.list) >= lateMost {
		l.mu.Unlock()
		if err := r.sendLate(); err != nil && !r.harmless(err) {
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

// hurry sends the list at once: requests wait that did not before.
func (r *resource) hurry() {
	l := &r.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) > 0 && !l.failing.Load() {
		l.due = time.Time{}
		r.arm()
	}
}

// ageOf returns the age to state of what happened at at. It is less than the true one, because clocks differ.
func ageOf(at, now time.Time) time.Duration {
	age := now.Sub(at)
	if at.IsZero() || age < leastAge {
		return 0
	}
	return min(age-age/32, store.MaxAge).Truncate(time.Millisecond)
}

// sendLate sends the list. In mode observe it takes at most a moment.
func (r *resource) sendLate() error {
	ctx, cancel := r.inBackground(context.Background())
	defer cancel()
	err := r.send(ctx, nil)
	if err != nil && r.observe {
		r.away.Store(int64(uptime() + awayFor))
	}
	return err
}

// isCrowded reports whether requests may be waiting for what a report frees.
func (r *resource) isCrowded() bool {
	return r.waiters.entered.Load() > 0 || r.crowd != nil && r.crowd.Crowded()
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

// leave sends the list when it is due. Calls may have taken along the reports that the timer was set for.
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
	_ = r.sendLate() // failed reports are in the list again, and the next report returns the error
	l.mu.Lock()
	l.leaving = false
	if len(l.list) > 0 {
		r.arm()
	}
}
