// Package redisstore keeps pools in Redis or Valkey, for callers on many machines. One script decides a
// whole batch on the server's clock: it is the state machine that all stores share, translated to Lua
// (see internal/golua). The state of a pool is one hash; see lua/runtime.lua for its fields.
//
// Importing it registers the schemes redis:, rediss:, redis+cluster:, redis+sentinel: and the like.
package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

func init() {
	for _, scheme := range redisconn.Schemes() {
		store.Register(scheme, func(ctx context.Context, url string) (store.Store, error) { return Open(ctx, url) })
	}
}

// Clock is where a store's time comes from in tests. Otherwise it is the server's.
type Clock interface {
	Now() store.Time
	AfterFunc(d time.Duration, f func()) interface {
		Reset(d time.Duration)
		Stop()
	}
}

// Option changes how a store works.
type Option func(*Store)

// WithClock replaces the server's clock, for tests: nothing is done by itself then but what a timer
// of this clock starts.
func WithClock(c Clock) Option { return func(s *Store) { s.clock, s.fixed = c, true } }

// WithStateDir says where the machine remembers how far pools had come, to notice that a server has lost
// its memory. It is sluice/redis in the user's state directory; "" is nowhere.
func WithStateDir(dir string) Option { return func(s *Store) { s.stateDir = dir } }

// Store holds pools in Redis.
type Store struct {
	redis   *redisconn.Link
	prefix  string
	process uint64 // 37 bits that tell this process's sessions from others'
	clock   Clock
	longWay bool         // for tests: the fast path is not taken
	fixed   bool         // the clock is a test's
	answer  atomic.Int64 // answerWithin, but for tests on a busy machine
	slow    slowness
	timeout time.Duration // that the URL states
	whole   time.Duration // for a call about a pool as a whole
	apply   *redisconn.Script
	manage  *redisconn.Script

	address  string // the server's, without passwords
	stateDir string // where the machine remembers how far pools had come; "": nowhere

	mu     sync.Mutex
	pools  map[string]*state
	closed bool
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Lister  = (*Store)(nil)
	_ store.Secrets = (*Store)(nil)
)

// Open connects to the Redis at a URL.
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
	address, err := redisconn.Parse(url)
	if err != nil {
		return nil, err
	}
	l, err := redisconn.Dial(ctx, address)
	if err != nil {
		return nil, unavailable(err)
	}
	s := &Store{redis: l, prefix: address.Prefix, clock: systemClock{}, pools: map[string]*state{}, process: newProcess(), stateDir: stateDir()}
	s.address, s.timeout, s.whole = identity(address), address.Timeout, wholeWithin(address.Timeout)
	s.answer.Store(int64(answerFor(address.Timeout)))
	for _, o := range opts {
		o(s)
	}
	source, manage := applySource(), luaOpen
	if s.fixed {
		source, manage = atGivenTime(source), atGivenTime(manage)
	}
	s.apply, s.manage = redisconn.NewFunction(source), redisconn.NewScript(manage)
	return s, nil
}

// identity tells servers apart.
func identity(a redisconn.Address) string {
	return fmt.Sprintf("%v %q %d %q", a.Mode, a.Hosts, a.DB, a.Master)
}

// newProcess returns a number that no other process has.
func newProcess() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])>>27 | 1<<20
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
		st = newState(s, spec.Name)
		s.pools[spec.Name] = st
	}
	st.users++
	s.mu.Unlock()
	h, err := st.open(ctx, spec)
	if err != nil {
		s.release(st)
		return nil, err
	}
	return h, nil
}

// release gives a pool up that nobody uses any more.
func (s *Store) release(st *state) {
	s.mu.Lock()
	st.users--
	last := st.users == 0
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
	s.redis.Close()
	return errors.Join(errs...)
}

// kill ends the store as if its process had been killed: nothing is said to the server.
func (s *Store) kill() {
	s.mu.Lock()
	s.closed = true
	pools := slices.Collect(maps.Values(s.pools))
	s.mu.Unlock()
	s.redis.Close()
	for _, st := range pools {
		st.halt()
		st.strike(true)
	}
}

// withClock adds the time argument of a script in tests.
func (s *Store) withClock(args []string) []string {
	if s.fixed {
		return append(args, fmt.Sprint(int64(s.clock.Now())))
	}
	return args
}

// unavailable marks an error as one of the store.
func unavailable(err error) error {
	if err == nil || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return &storeError{err}
}

// storeError says that Redis cannot be used, and why.
type storeError struct{ err error }

func (e *storeError) Error() string   { return e.err.Error() }
func (e *storeError) Unwrap() []error { return []error{store.ErrUnavailable, e.err} }

// Hint says what to do about it.
func (e *storeError) Hint() string {
	if h, ok := e.err.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}
