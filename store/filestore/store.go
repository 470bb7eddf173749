//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/ctxlock"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// Store is a directory of pools.
type Store struct {
	dir   string // of the pools
	clock Clock
	// fault is called at every point where a step can be cut off. Tests replace it.
	fault    func(where string)
	patience time.Duration

	mu     ctxlock.Mutex
	pools  map[string]*state
	closed bool
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Repairer = (*Store)(nil)
	_ store.Lister   = (*Store)(nil)
	_ store.Secrets  = (*Store)(nil)
	_ store.Home     = (*Store)(nil)
	_ store.Pool     = (*handle)(nil)
	_ store.Recorder = (*handle)(nil)
	_ store.Crowd    = (*handle)(nil)
)

// Option changes how a store works.
type Option func(*Store)

// WithClock replaces the system's clock, for tests.
func WithClock(c Clock) Option { return func(s *Store) { s.clock = c } }

// Open opens the store in dir and creates the directory if it is missing.
func Open(dir string, opts ...Option) (*Store, error) {
	s := &Store{dir: filepath.Join(dir, "pools"), mu: ctxlock.New(), pools: map[string]*state{}, fault: func(string) {}, patience: patience}
	for _, o := range opts {
		o(s)
	}
	if s.clock == nil {
		clock, err := systemClock()
		if err != nil {
			return nil, failed("open", dir, err)
		}
		s.clock = clock
	}
	if err := prepareDir(s.dir); err != nil && !noRoom(err) { // on a full disk the store still opens, to show that it is empty
		return nil, err
	}
	s.collect()
	return s, nil
}

// Dir implements [store.Home].
func (s *Store) Dir() string { return filepath.Dir(s.dir) }

// Pool implements [store.Store].
func (s *Store) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	spec.Limits, spec.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
	if err := s.mu.LockContext(ctx); err != nil {
		return nil, failed("open", s.dir, err)
	}
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	st := s.pools[spec.Name]
	if st == nil {
		var err error
		if st, err = s.attach(ctx, spec); err != nil {
			if spec.ReadOnly && noRoom(err) {
				return unmade(ctx, spec)
			}
			return nil, err
		}
		s.pools[spec.Name] = st
	}
	h, err := st.open(ctx, spec)
	if err != nil && len(st.sessions) == 0 {
		delete(s.pools, spec.Name)
		err = errors.Join(err, st.detach())
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// unmade returns an empty pool in memory, for a read-only caller. The pool does not exist and the disk is full.
func unmade(ctx context.Context, spec store.Spec) (store.Pool, error) {
	return memstore.New().Pool(ctx, spec)
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	pools := s.pools
	s.pools = nil
	s.mu.Unlock()
	var errs []error
	for _, st := range pools {
		errs = append(errs, st.close())
	}
	return errors.Join(errs...)
}

const tag = "Signature: 8a477f597d28d172789f06886806bc55\n" +
	"# This directory holds the state of Sluice, which is worth nothing on another machine or\n" +
	"# at another time: backups can leave it out. See https://bford.info/cachedir/\n"

// prepareDir creates a directory that only its user can read, and marks it as a cache.
func prepareDir(dir string) error {
	if err := statedir.MakeInside(dir); err != nil {
		return failed("make", dir, err)
	}
	if remote, err := onNetwork(dir); err != nil {
		return failed("open", dir, err)
	} else if remote {
		return failed("open", dir, errNetwork)
	}
	path := filepath.Join(dir, "CACHEDIR.TAG")
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := write(path, tag); err != nil {
		_ = os.Remove(path)
		if !noRoom(err) { // only backups need the tag
			return failed("write", path, err)
		}
	}
	return nil
}

// write creates a small file.
func write(path, text string) error {
	f, err := statedir.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// wall returns the time of day.
func wall(c Clock) store.Time {
	if w, ok := c.(interface{ Wall() store.Time }); ok {
		return w.Wall()
	}
	return store.Time(time.Now().UnixMicro())
}

// unusedFor returns how long a pool has had no step. Only after a restart of the machine does the time of day tell: it
// can be set.
func (h *header) unusedFor(c Clock) time.Duration {
	now := wall(c)
	if h.boot == c.Boot() {
		now = c.Now() + store.Time(h.offset)
	}
	return now.Sub(store.Time(h.now))
}
