package remotestore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

// Intervals for retrying a lost daemon. They start short and double each time, with jitter, because a whole fleet
// may have lost it.
const (
	firstTry = 100 * time.Millisecond
	lastTry  = time.Second
)

// errLost means that the daemon is unreachable, and the session has to decide what to do.
var errLost = errors.New("the daemon is lost")

// outage is a time in which the daemon cannot be reached.
type outage struct {
	since time.Time
	err   error
}

func (s *Store) isLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost != nil
}

// lose records that the daemon cannot be reached, and notifies waiting requests.
func (s *Store) lose(err error) {
	s.mu.Lock()
	if s.lost != nil || s.closed {
		s.mu.Unlock()
		return
	}
	lost := &outage{time.Now(), err}
	s.lost = lost
	s.running.Go(s.comeBack)
	s.mu.Unlock()
	s.ring(lost, false)
	for _, h := range s.all() {
		if !h.stays() {
			h.tellAll()
		}
	}
}

// stays reports whether waiting requests of a session keep waiting while the daemon is lost. It may be back before
// their timeout. New requests are refused.
func (h *handle) stays() bool { return h.spec.OnFailure == store.FailShare && !h.spec.OneShot }

// comeBack retries the daemon until it can be reached.
func (s *Store) comeBack() {
	pause := firstTry
	for s.life.Err() == nil {
		sleep.For(s.life, pause/2+rand.N(pause)) //nolint:gosec // it spreads, it guards nothing
		pause = min(2*pause, lastTry)
		s.mu.Lock()
		client := s.client
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.life, answerWithin)
		err := s.daemon.ask(ctx, http.MethodPost, "/clients/"+client+"/alive", nil, nil)
		if errors.Is(err, errGone) {
			err = s.renew(ctx, client)
		}
		cancel()
		if err == nil {
			s.isBack()
			return
		}
	}
}

// isBack ends the outage. Every session sends its postponed operations.
func (s *Store) isBack() {
	s.mu.Lock()
	lost := s.lost
	s.lost = nil
	s.mu.Unlock()
	s.ring(lost, true)
	for _, h := range s.all() {
		h.mu.Lock()
		if h.granted = 0; !h.closed && (h.doubt != nil || len(h.later) > 0) {
			h.start()
		}
		h.mu.Unlock()
		h.tellAll()
	}
}

// ring notifies all sessions of an outage.
func (s *Store) ring(lost *outage, over bool) {
	for _, h := range s.all() {
		if f := h.alarm.Load(); f != nil {
			(*f)(h.describe(lost), over)
		}
	}
}

// describe says what an outage means for a session.
func (h *handle) describe(lost *outage) store.Outage {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.clock.Load()
	return store.Outage{Since: m.shown.Add(lost.since.Sub(m.at)), Why: lost.err.Error(), Mode: h.mode(), Granted: h.granted}
}

// mode returns what the session does while the daemon is lost. Only the daemon has a share of the quota. A client
// that has lost it has none, so FailShare becomes FailClosed.
func (h *handle) mode() store.OnFailure {
	if h.spec.OnFailure == store.FailShare {
		return store.FailClosed
	}
	return h.spec.OnFailure
}

// renew makes this process a client again if the daemon has forgotten it.
func (s *Store) renew(ctx context.Context, was string) error {
	s.renewal.Lock()
	defer s.renewal.Unlock()
	s.mu.Lock()
	done, closed := s.client != was, s.closed
	s.mu.Unlock()
	if closed {
		return store.ErrClosed
	}
	if done {
		return nil
	}
	hello, err := s.hello(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.client = hello.Client
	clear(s.byName)
	s.mu.Unlock()
	s.tellAll() // nothing remains of what they waited in
	return nil
}

// local marks the numbers of tickets that were granted while the daemon was lost. Stores never count that far.
const local = 1 << 63

func isLocal(id store.ID) bool { return id.N&local != 0 }

// applyMixed is Apply for batches in which some tickets are known only here.
func (h *handle) applyMixed(ctx context.Context, ops []store.Op) error {
	var there []store.Op
	for i := range ops {
		if !isLocal(ops[i].ID) {
			there = append(there, ops[i])
		}
	}
	if len(there) > 0 {
		if err := h.Apply(ctx, there); err != nil {
			return err
		}
	}
	for i := range ops {
		if op := &ops[i]; isLocal(op.ID) {
			op.Result = store.Result{State: store.Ended, ID: op.ID, Now: h.Now()}
			if op.Kind == store.OpAnswer || op.Kind == store.OpPoll {
				op.Result.State = store.Granted
			}
		} else {
			*op, there = there[0], there[1:]
		}
	}
	return nil
}

// stillWait answers polls of requests that wait: they keep waiting. A request that the daemon has just decided on is one of
// them, because its poll was not answered; it asks again when the daemon is back. stillWait returns false if ops has anything
// else. The handle is locked.
func (h *handle) stillWait(ops []store.Op) bool {
	for i := range ops {
		if op := &ops[i]; op.Kind != store.OpPoll || op.TTL != 0 || op.ID.N == 0 {
			return false
		}
	}
	for i := range ops {
		h.waiting[ops[i].ID] = struct{}{}
		ops[i].Result = store.Result{State: store.Waiting, ID: ops[i].ID, Now: h.Now(), Reason: store.Reason{Code: store.CodeStore}}
	}
	return len(ops) > 0
}

// alone decides without the daemon.
func (h *handle) alone(ops []store.Op) error {
	h.store.mu.Lock()
	lost := h.store.lost
	h.store.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return store.ErrClosed
	}
	if h.stays() && h.stillWait(ops) {
		if lost == nil { // the daemon is just back, and others were told to ask again before these were known to wait
			h.store.running.Go(h.tellAll)
		}
		return nil
	}
	possible := h.mode() == store.FailOpen
	for i := range ops {
		switch ops[i].Kind {
		case store.OpAcquire, store.OpPoll, store.OpRenew, store.OpAnswer, store.OpClose, store.OpCancel:
		default:
			possible = false
		}
	}
	if lost == nil { // the daemon is just back: send what is said now
		defer h.start()
	}
	if !possible {
		h.sayLater(ops...) // ended tickets have ended, whatever the caller does with the error
		for i := range ops {
			if _, waits := h.waiting[ops[i].ID]; !waits {
				continue
			}
			delete(h.waiting, ops[i].ID) // its caller gets the error
			if ops[i].Kind == store.OpPoll {
				h.sayLater(store.Op{Kind: store.OpCancel, ID: ops[i].ID})
			}
		}
		if lost == nil {
			return store.Kept(unavailable(errLost)) // the daemon is just back
		}
		return store.Kept(lost.err)
	}
	now := h.Now()
	for i := range ops {
		op := &ops[i]
		op.Result = store.Result{State: store.Granted, ID: op.ID, Now: now, GrantedAt: now}
		switch op.Kind {
		case store.OpAcquire:
			h.local++
			h.granted++
			op.Result.ID = store.ID{Session: h.session, N: local | h.local}
		case store.OpPoll, store.OpRenew:
			if _, waits := h.waiting[op.ID]; waits { // it need not wait any longer, and its entry is cancelled
				delete(h.waiting, op.ID)
				h.granted++
				h.sayLater(store.Op{Kind: store.OpCancel, ID: op.ID})
			}
		case store.OpAnswer:
			h.sayLater(*op)
		default:
			op.Result.State = store.Ended
			h.sayLater(*op)
		}
	}
	return nil
}
