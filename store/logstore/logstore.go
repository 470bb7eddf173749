// Package logstore keeps pools in a log that processes share, so that callers on many machines share the pools.
//
// A pool is a deterministic state machine. Its processes share only its input: a log of entries in an engine, such as
// Redis (see package sharedlog). Every process applies all entries in order to a replica of its own (package replica), and
// finds the results of its own operations there. So all decide the same, and nothing decides but the Go code of package
// pool.
//
// # One call
//
// A goroutine's operations join a [line]. The goroutine that leads the line makes one entry of what has gathered there,
// and appends it. The reply brings the entries of others since the last call, and the entry's stamp. The leader applies
// these, then its own entry, and hands the results out: exchange.go. That is one round trip, for one caller or a thousand.
// While it lasts, the next requests gather. Nothing has a result before it was applied.
//
// # Waiting
//
// waiting.go: what lets a request go is an entry, or time. The writer of an entry wakes the processes whose requests it
// decided; they read. What time alone decides is certain once an entry of a later time is in the log. The process whose
// request comes next appends one at that moment.
//
// # Errors of the log
//
//   - No answer: the same entry is appended again. Every replica passes over the second copy. After a second without an
//     answer an outage begins (outage.go): each session does what its [store.OnFailure] says, and a process with a share
//     decides within it by a pool of its own (share.go). When the log is back, it is told what happened meanwhile.
//   - The segment has ended: the process reads to its end and goes on in the next one. It writes a snapshot itself when
//     the log has become long (snapshot.go).
//   - The log, or its end, is lost: whoever knows most begins it anew with its replica, and the others state what they
//     knew besides (heal.go).
//   - Full: the process writes a snapshot at once. If the engine has no memory left, that is an outage.
//   - Far behind, or in another incarnation: the replica is loaded anew.
//   - An entry at which the replica fails: the replica is loaded anew, and passes over the entry, as all do.
//   - Another process has decided otherwise: the replica is loaded anew.
//
// An entry whose fate is unknown when its callers were told so may turn up later. Then the requests that it was to grant
// are given back.
package logstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// Store keeps pools in the logs of an engine.
type Store struct {
	engine   sharedlog.Engine
	clock    Clock
	touch    time.Duration
	patience time.Duration
	leastLog int64
	memories func(pool string) *memory // nil: this machine remembers nothing
	passive  bool

	mu     sync.Mutex
	pools  map[string]*state
	closed bool
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Lister  = (*Store)(nil)
	_ store.Secrets = (*Store)(nil)
)

// Option changes how a store works.
type Option func(*Store)

// WithClock replaces the machine's clock, for tests.
func WithClock(c Clock) Option { return func(s *Store) { s.clock = c } }

// WithTouch sets how often a process says that it lives if it has nothing else to say; 0: never, for tests in which days
// pass.
func WithTouch(every time.Duration) Option { return func(s *Store) { s.touch = every } }

// Passive has the store do nothing that its callers did not ask for: it collects no grants for them, and is no member with a
// share. It is for tests that compare stores.
func Passive() Option { return func(s *Store) { s.passive = true } }

// WithPatience sets how long the engine may take before it counts as out of reach.
func WithPatience(d time.Duration) Option { return func(s *Store) { s.patience = d } }

// WithLeastLog sets how long the log becomes, in bytes, before a snapshot is written.
func WithLeastLog(n int64) Option { return func(s *Store) { s.leastLog = n } }

// answerWithin is how long the engine may take before it counts as out of reach. One that is busy for a moment replies well
// within it.
const answerWithin = time.Second

// New returns a store on an engine. Its Close closes the engine.
func New(engine sharedlog.Engine, opts ...Option) *Store {
	s := &Store{engine: engine, clock: systemClock(), touch: store.BeatEvery, patience: answerWithin, leastLog: leastLog, pools: map[string]*state{}}
	for _, o := range opts {
		o(s)
	}
	if s.clock.after == nil {
		s.clock.after = afterFunc
	}
	return s
}

// Pool implements [store.Store].
func (s *Store) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	spec.Limits, spec.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, store.ErrClosed
	}
	st := s.pools[spec.Name]
	if st == nil {
		st = newState(s, spec.Name, spec.OneShot)
		s.pools[spec.Name] = st
	}
	st.uses++
	s.mu.Unlock()
	h, err := st.open(ctx, spec)
	if err != nil {
		s.release(st)
		return nil, err
	}
	return h, nil
}

// release ends one use of a pool, and stops the pool after the last.
func (s *Store) release(st *state) {
	s.mu.Lock()
	st.uses--
	last := st.uses == 0
	if last && s.pools[st.name] == st {
		delete(s.pools, st.name)
	}
	s.mu.Unlock()
	if last {
		st.stop()
	}
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	pools := slices.Collect(maps.Values(s.pools))
	s.mu.Unlock()
	var errs []error
	for _, st := range pools {
		errs = append(errs, st.close())
	}
	return errors.Join(append(errs, s.engine.Close())...)
}

// Secret implements [store.Secrets].
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	secret, err := s.engine.Secret(ctx, name, fresh)
	return secret, Unavailable(err)
}

// listWithin bounds how long listing pools takes.
const listWithin = 3 * time.Second

// Pools implements [store.Lister].
func (s *Store) Pools(ctx context.Context) (list store.Listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	names, whole, err := s.engine.Pools(ctx)
	if err != nil {
		return list, Unavailable(err)
	}
	if !whole {
		list.Skip("the engine holds so much that not all of it was looked at: there may be more pools")
	}
	for _, name := range names {
		if strings.HasPrefix(name, "(") {
			continue
		}
		spec, exists, err := s.stated(ctx, name)
		if err != nil && ctx.Err() != nil {
			return list, Unavailable(err)
		}
		if err != nil {
			err = fmt.Errorf("pool %.80q: %w", name, err)
		} else if !exists {
			continue
		}
		if !list.Add(spec, err) {
			break
		}
	}
	return list, nil
}

// stated returns the spec of a pool as it was stated, and whether the pool exists.
func (s *Store) stated(ctx context.Context, name string) (spec store.Spec, exists bool, err error) {
	st := newState(s, name, true)
	defer st.stop()
	defer context.AfterFunc(ctx, st.end)()
	if err := st.load(ctx); err != nil && !errors.Is(err, errMoved) {
		return spec, false, Unavailable(err)
	}
	core := st.rep.Pool()
	if core == nil {
		return spec, false, nil
	}
	return core.Stated(), true, nil
}

// Unavailable wraps err so that errors.Is(err, store.ErrUnavailable) holds, unless the store was closed.
func Unavailable(err error) error {
	switch {
	case err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed):
		return err
	case errors.Is(err, sharedlog.ErrClosed):
		return store.ErrClosed
	}
	return &storeError{err}
}

// storeError reports that the log cannot be used, and why.
type storeError struct{ err error }

func (e *storeError) Error() string   { return e.err.Error() }
func (e *storeError) Unwrap() []error { return []error{store.ErrUnavailable, e.err} }

// Hint returns the hint of the wrapped error, if it has one.
func (e *storeError) Hint() string {
	var hinted interface{ Hint() string }
	if errors.As(e.err, &hinted) {
		return hinted.Hint()
	}
	return ""
}
