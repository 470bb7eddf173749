package remotestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// handle is one session on a pool of the daemon.
type handle struct {
	store *Store
	spec  store.Spec
	watch atomic.Pointer[func([]store.ID)]
	alarm atomic.Pointer[func(store.Outage, bool)]
	clock atomic.Pointer[moment]

	mu      sync.Mutex
	free    sync.Cond // signals that busy has become false; its lock is mu
	client  string    // the client that opened the pool
	name    int       // number of the pool among those of the client
	session uint64
	seq     uint64 // number of the last batch
	pending []*request
	busy    bool
	doubt   *batch     // sent without an answer; its callers were told that they got nothing
	later   []store.Op // to be sent to the daemon, for callers that do not wait for it
	resting bool       // the daemon does not accept later now
	waiting map[store.ID]struct{}
	early   map[store.ID]struct{} // decided before it was known that they wait
	heard   int                   // number of notices about its tickets
	granted int64                 // granted while the daemon was lost
	local   uint64                // number of the last of these grants
	closed  bool
}

var (
	_ store.Pool     = (*handle)(nil)
	_ store.Recorder = (*handle)(nil)
	_ store.Alarm    = (*handle)(nil)
	_ store.Foreseer = (*handle)(nil)
)

// moment is a reading of the daemon's clock. at is the local time at which the request for it was sent.
type moment struct {
	shown store.Time
	at    time.Time
}

func newHandle(s *Store, spec store.Spec) *handle {
	h := &handle{store: s, spec: spec, waiting: map[store.ID]struct{}{}, early: map[store.ID]struct{}{}}
	h.free.L = &h.mu
	return h
}

// take records that the pool was opened. The handle is locked, or not shared yet.
func (h *handle) take(client string, o *wire.Opened, sent time.Time) {
	h.client, h.name, h.session, h.seq, h.heard = client, o.Pool, o.Session, 0, 0
	h.clock.Store(&moment{o.Now, sent})
}

// Apply implements [store.Pool].
func (h *handle) Apply(ctx context.Context, ops []store.Op) error {
	if len(ops) > store.MaxBatch {
		return fmt.Errorf("%d operations in a batch: at most %d", len(ops), store.MaxBatch)
	}
	if slices.ContainsFunc(ops, func(op store.Op) bool { return isLocal(op.ID) }) {
		return h.applyMixed(ctx, ops)
	}
	r := &request{ops: make([]store.Op, len(ops)), done: make(chan struct{})}
	for i := range ops {
		r.ops[i] = ops[i].Clone() // the caller may leave and reuse its slices
	}
	if err := h.enqueue(r); err != nil {
		if errors.Is(err, errLost) {
			return h.alone(ops)
		}
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if h.abandon(r) {
			return ctx.Err()
		}
		<-r.done // it was answered just now
	}
	if errors.Is(r.err, errLost) {
		return h.alone(ops)
	}
	if r.err != nil {
		return r.err
	}
	for i := range ops {
		ops[i].ID.Session, ops[i].Result = r.ops[i].ID.Session, r.ops[i].Result
	}
	return nil
}

// Snapshot implements [store.Pool].
func (h *handle) Snapshot(ctx context.Context) (s store.Snapshot, err error) {
	return s, h.look(ctx, http.MethodGet, "/snapshot", nil, &s)
}

// History implements [store.Recorder].
func (h *handle) History(ctx context.Context, since store.Time) (past store.History, err error) {
	return past, h.look(ctx, http.MethodGet, "/history?since="+strconv.FormatInt(int64(since), 10), nil, &past)
}

// Foresee implements [store.Foreseer].
func (h *handle) Foresee(ctx context.Context, ops []store.Op, within time.Duration) error {
	q := wire.Foresee{Within: within, Ops: slices.Clone(ops)}
	for i := range q.Ops {
		q.Ops[i].ID = store.ID{} // the daemon knows its session
	}
	var answer wire.Foreseen
	if err := h.look(ctx, http.MethodPost, "/foresee", &q, &answer); err != nil {
		return err
	}
	if len(answer.Results) != len(ops) {
		return unavailable(wire.ErrCorrupt)
	}
	for i := range ops {
		ops[i].Result = answer.Results[i]
	}
	return nil
}

// look makes a read-only request.
func (h *handle) look(ctx context.Context, method, what string, body, answer any) error {
	for again := false; ; again = true {
		if h.isClosed() {
			return store.ErrClosed
		}
		path, err := h.path(ctx)
		if err != nil {
			return err
		}
		err = h.store.daemon.within(ctx, lookWithin, method, path+what, body, answer)
		switch {
		case errors.Is(err, errGone) && !again:
			h.mu.Lock()
			client := h.client
			h.mu.Unlock()
			if err := h.store.renew(ctx, client); err != nil {
				return err
			}
			continue
		case errors.Is(err, errGone):
			return unavailable(err)
		case errors.Is(err, errSilent) && ctx.Err() == nil:
			h.store.lose(err)
		}
		return err
	}
}

// path returns the pool's path at the daemon. It opens the pool again if the daemon has forgotten this process.
func (h *handle) path(ctx context.Context) (string, error) {
	s := h.store
	s.mu.Lock()
	client, lost := s.client, s.lost
	s.mu.Unlock()
	if lost != nil {
		return "", lost.err
	}
	h.mu.Lock()
	same := h.client == client
	path := h.pathLocked()
	h.mu.Unlock()
	if same {
		return path, nil
	}
	if err := h.reopen(ctx, client); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pathLocked(), nil
}

func (h *handle) pathLocked() string {
	return "/clients/" + h.client + "/pools/" + strconv.Itoa(h.name)
}

// Watch implements [store.Pool].
func (h *handle) Watch(decided func([]store.ID)) { h.watch.Store(&decided) }

// OnOutage implements [store.Alarm].
func (h *handle) OnOutage(f func(o store.Outage, over bool)) { h.alarm.Store(&f) }

// Outage implements [store.Alarm].
func (h *handle) Outage() (store.Outage, bool) {
	h.store.mu.Lock()
	lost := h.store.lost
	h.store.mu.Unlock()
	if lost == nil {
		return store.Outage{}, false
	}
	return h.describe(lost), true
}

// Now implements [store.Pool]. It may be ahead by at most the time of a call, and is never behind: old entries look
// old.
func (h *handle) Now() store.Time {
	if h.store.now != nil {
		return h.store.now()
	}
	m := h.clock.Load()
	return m.shown.Add(time.Since(m.at))
}

// tell notifies the watch function of decided tickets.
func (h *handle) tell(ids []store.ID) {
	if f := h.watch.Load(); f != nil && len(ids) > 0 {
		(*f)(ids)
	}
}

// tellAll makes all waiting requests ask again.
func (h *handle) tellAll() {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.waiting))
	h.mu.Unlock()
	h.tell(ids)
}

func (h *handle) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// settle waits until no batch is in flight. It refuses new requests.
func (h *handle) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for h.busy {
		h.free.Wait()
	}
}

// Close implements [store.Pool].
func (h *handle) Close() error {
	if h.isClosed() {
		return nil
	}
	h.settle()
	s := h.store
	h.mu.Lock()
	client, name, path := h.client, h.name, h.pathLocked()
	h.mu.Unlock()
	s.mu.Lock()
	delete(s.handles, h)
	gone := s.closed || s.lost != nil || client != s.client
	if client == s.client {
		delete(s.byName, name)
	}
	s.mu.Unlock()
	if gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	if err := s.daemon.ask(ctx, http.MethodDelete, path, nil, nil); err != nil && !errors.Is(err, errGone) && !errors.Is(err, errSilent) {
		return err
	}
	return nil
}
