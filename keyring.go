package sluice

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// ringEvery is how often waiting requests are offered to the other keys of their ring. A request that waits for one key
// does not notice by itself that another has room.
const ringEvery = 250 * time.Millisecond

// ring holds the waiting requests of this process that may use any of several keys.
type ring struct {
	mu      sync.Mutex
	waiting []*ringWaiter // oldest first
	over    chan struct{} // closed when no request waits any more; nil: none waits
}

// ringWaiter is a request that waits in the queue for one of its keys.
type ringWaiter struct {
	req    Request // with the key that it waits for
	cancel context.CancelCauseFunc
	ticket Ticket // granted by another key, if has is set
	has    bool
}

// Why a wait for one key is interrupted.
var (
	errOtherKey = errors.New("another key grants it")
	errKeyHeld  = errors.New("the key is paused, and another is not")
)

// awaitAny waits for the first of several keys that is available. It tries them in the order of req.Keys.
func (r *resource) awaitAny(ctx context.Context, req *Request, wait time.Duration, t *Ticket) error {
	began := time.Now()
	until, bounded := began.Add(wait), wait > 0
	for {
		key, err := r.tryKeys(ctx, req, t)
		if err == nil || wait == 0 || !errors.Is(err, ErrNotNow) {
			return err
		}
		left := wait
		if bounded {
			if left = time.Until(until); left <= 0 {
				return r.overdue(req)
			}
		}
		if err = r.awaitKey(ctx, req, key, left, t); errors.Is(err, errKeyHeld) {
			continue
		}
		if err == nil { // it may have waited for several keys
			t.waited = max(t.waited, time.Since(began))
		}
		return err
	}
}

// tryKeys asks for each key in turn, without waiting. If none is available, it returns the key that is expected to be
// first.
func (r *resource) tryKeys(ctx context.Context, req *Request, t *Ticket) (best string, err error) {
	best, err = r.eachKey(req, func() error { return r.ask(ctx, req, 0, t) })
	if err == nil {
		t.key = best
	}
	return best, err
}

// eachKey sets each key in turn, until try succeeds. If it does not, eachKey returns the key that is expected to be
// available first.
func (r *resource) eachKey(req *Request, try func() error) (best string, err error) {
	var first, last *Error
	waiting := r.ring.counts()
	for _, key := range req.Keys {
		req.Key = key
		asked := try()
		if asked == nil {
			return key, nil
		}
		var e *Error
		if !errors.As(asked, &e) || !errors.Is(asked, ErrNotNow) && !errors.Is(asked, ErrCapacity) && !errors.Is(asked, ErrFull) {
			return "", asked
		}
		if last = e; !errors.Is(e, ErrNotNow) {
			continue // another key may have room
		}
		if first == nil || e.sooner(first, waiting[key] < waiting[best]) {
			best, first = key, e
		}
	}
	if first == nil {
		first = last
	}
	return best, first
}

// sooner reports whether a request for one key is expected to go before a request for another. A paused key comes last,
// because its pause may be renewed. If the times are unknown, the key with fewer waiting requests wins; fewer says so.
func (e *Error) sooner(than *Error, fewer bool) bool {
	switch {
	case e.held() != than.held():
		return than.held()
	case e.RetryAt.IsZero() || than.RetryAt.IsZero() || e.RetryAt.Equal(than.RetryAt):
		return fewer
	}
	return e.RetryAt.Before(than.RetryAt)
}

// held reports whether a pause caused the refusal.
func (e *Error) held() bool { return e.Reason == store.CodePaused.String() }

// awaitKey waits in the queue for one key, and takes the grant of another key if that comes first. The error is
// errKeyHeld if the request should choose again.
func (r *resource) awaitKey(ctx context.Context, req *Request, key string, wait time.Duration, t *Ticket) error {
	one, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req.Key = key
	w := &ringWaiter{req: *req, cancel: cancel}
	r.ring.enter(r, w)
	err := r.awaitOne(one, req, wait, t)
	r.ring.leave(w)
	switch {
	case err == nil:
		if t.key = key; w.has { // both keys granted it at the same time
			_ = w.ticket.Cancel()
		}
	case w.has:
		*t, req.Key, err = w.ticket, w.req.Key, nil
	case ctx.Err() == nil && errors.Is(context.Cause(one), errKeyHeld):
		err = errKeyHeld
	}
	return err
}

// counts returns how many requests of this process wait, by key; nil if none waits.
func (x *ring) counts() (by map[string]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.waiting {
		if by == nil {
			by = map[string]int{}
		}
		by[w.req.Key]++
	}
	return by
}

func (x *ring) enter(r *resource, w *ringWaiter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waiting = append(x.waiting, w); x.over == nil {
		x.over = make(chan struct{})
		go x.look(r, x.over)
	}
}

func (x *ring) leave(w *ringWaiter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.waiting, w); i >= 0 {
		x.waiting = slices.Delete(x.waiting, i, i+1)
	}
	if len(x.waiting) == 0 {
		close(x.over)
		x.over = nil
	}
}

// look offers waiting requests to the other keys of their ring, until none waits.
func (x *ring) look(r *resource, over <-chan struct{}) {
	tick := time.NewTicker(ringEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		held := map[string]bool{}
		for _, key := range x.keys() {
			granted := true
			for granted {
				granted, held[key] = x.offer(r, key)
			}
		}
		x.release(held)
	}
}

// keys returns all keys that waiting requests could use.
func (x *ring) keys() (all []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.waiting {
		for _, key := range w.req.Keys {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// oldest returns the oldest request that waits for a key, otherwise the oldest that could use it; nil if there is none.
func (x *ring) oldest(key string) (could *ringWaiter, req Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.waiting {
		if w.has {
			continue
		}
		if w.req.Key == key {
			could = w
			break
		}
		if could == nil && slices.Contains(w.req.Keys, key) {
			could = w
		}
	}
	if could != nil {
		req = could.req
	}
	return could, req
}

// offer asks for a key on behalf of the oldest request that could use it. It reports whether the key was granted, and
// whether it is paused.
func (x *ring) offer(r *resource, key string) (granted, held bool) {
	w, req := x.oldest(key)
	if w == nil {
		return false, false
	}
	req.Key = key
	ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin*10)
	defer cancel()
	var t Ticket
	if err := r.ask(ctx, &req, 0, &t); err != nil {
		var e *Error
		return false, errors.As(err, &e) && errors.Is(err, ErrNotNow) && e.held()
	}
	t.key = key
	x.mu.Lock()
	waits := slices.Contains(x.waiting, w) && !w.has
	if waits {
		w.ticket, w.has, w.req.Key = t, true, key
	}
	x.mu.Unlock()
	if !waits {
		_ = t.Cancel()
		return false, false
	}
	w.cancel(errOtherKey)
	return true, false
}

// release lets requests choose again that wait for a paused key while another key is not paused.
func (x *ring) release(held map[string]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range x.waiting {
		if held[w.req.Key] && slices.ContainsFunc(w.req.Keys, func(key string) bool { return !held[key] }) {
			w.cancel(errKeyHeld)
		}
	}
}
