// Package redisstore keeps pools in Redis or Valkey, so that callers on many machines share them.
//
// One script decides a whole batch of operations by the server's clock. The script is the state machine that all stores
// share (internal/pool), translated to Lua by internal/golua. A pool is one hash; lua/runtime.lua lists its fields.
//
// A process combines the operations of its goroutines into calls of the script (combine.go, conn.go). When Redis cannot
// be reached, internal/outage decides instead (outage.go). When Redis has lost data, every process states again what it
// holds (heal.go).
//
// Importing the package registers the schemes redis:, rediss:, redis+cluster:, redis+sentinel: and their variants.
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

// Clock replaces the server's clock in tests.
type Clock interface {
	Now() store.Time
	AfterFunc(d time.Duration, f func()) interface {
		Reset(d time.Duration)
		Stop()
	}
}

// Option changes how a store works.
type Option func(*Store)

// WithClock replaces the server's clock, for tests. The store then does nothing in the background except what timers of
// this clock start.
func WithClock(c Clock) Option { return func(s *Store) { s.clock, s.fixed = c, true } }

// WithStateDir sets the directory in which this machine records how far each pool has come, to notice that a server has
// lost data. The default is sluice/redis in the user's state directory; "" records nothing.
func WithStateDir(dir string) Option { return func(s *Store) { s.stateDir = dir } }

// Store holds pools in Redis.
type Store struct {
	redis   *redisconn.Link
	prefix  string
	process uint64 // 37 bits that tell this process's sessions from others'
	clock   Clock
	longWay bool         // for tests: skip the fast path
	fixed   bool         // the clock belongs to a test
	answer  atomic.Int64 // how long a call may take; tests on a busy machine raise it
	slow    slowness
	timeout time.Duration // from the URL
	whole   time.Duration // bounds a call that reads or writes a whole pool
	apply   *redisconn.Script
	manage  *redisconn.Script

	address  string // of the server, without passwords
	database int
	stateDir string // see WithStateDir

	mu     sync.Mutex
	pools  map[string]*state
	closed bool
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Lister  = (*Store)(nil)
	_ store.Secrets = (*Store)(nil)
)

// Open connects to the Redis server that url names. Close the store to close its connections.
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
	s.address, s.database, s.timeout, s.whole = identity(address), address.DB, address.Timeout, wholeWithin(address.Timeout)
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

// identity names the server at an address, without passwords.
func identity(a redisconn.Address) string {
	return fmt.Sprintf("%v %q %d %q", a.Mode, a.Hosts, a.DB, a.Master)
}

// newProcess returns a random number of 37 bits, which no other process has.
func newProcess() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
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
	var errs []error
	for _, st := range s.shut() {
		errs = append(errs, st.close())
	}
	s.redis.Close()
	return errors.Join(errs...)
}

// shut marks the store as closed and returns its pools, none if it was closed before.
func (s *Store) shut() []*state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return slices.Collect(maps.Values(s.pools))
}

// kill ends the store as if its process had been killed: it sends nothing to the server.
func (s *Store) kill() {
	pools := s.shut()
	s.redis.Close()
	for _, st := range pools {
		st.halt()
		st.strike(true)
	}
}

// withClock appends the time argument that scripts read in tests.
func (s *Store) withClock(args []string) []string {
	if s.fixed {
		return append(args, fmt.Sprint(int64(s.clock.Now())))
	}
	return args
}

// unavailable wraps err so that errors.Is(err, store.ErrUnavailable) holds.
func unavailable(err error) error {
	if err == nil || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return &storeError{err}
}

// storeError reports that Redis cannot be used, and why.
type storeError struct{ err error }

func (e *storeError) Error() string   { return e.err.Error() }
func (e *storeError) Unwrap() []error { return []error{store.ErrUnavailable, e.err} }

// Hint returns the hint of the wrapped error, if it has one.
func (e *storeError) Hint() string {
	if h, ok := e.err.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}
