//go:build linux || darwin

package filestore

import (
	"bytes"
	"context"

	"golang.org/x/sys/unix"
)

// WithFault sets what is called at every point at which a step can be cut off.
func WithFault(f func(where string)) Option { return func(s *Store) { s.fault = f } }

// HeaderSize is where the records of a state file begin.
const HeaderSize = page

// LogSize is the room for steps in a small journal.
const LogSize = leastLog

// Patience is how long a step waits for the lock.
const Patience = patience

// Inside runs f while the pool of that name is locked, with a copy of its records.
func (s *Store) Inside(name string, f func(records []byte)) error {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.locked(context.Background(), func() error {
		f(bytes.Clone(st.file.mem[page : page+st.space.Size()]))
		return nil
	})
}

// Restore undoes everything and does it again, as after a crash.
func (s *Store) Restore(name string) error {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.locked(context.Background(), func() error { return st.repair(false) })
}

// CutOff leaves a pool in the middle of a step, with its records scrambled from an offset on.
func (s *Store) CutOff(name string, from int64, scramble func([]byte)) error {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.locked(context.Background(), func() error {
		c := st.head.committed()
		c.dirty = true
		st.head.set(c)
		scramble(st.file.mem[page+from : st.file.size])
		return nil
	})
}

// Keeper returns the process that sees to the time, and Self this one.
func (s *Store) Keeper(name string) (keeper, self uint64) {
	st := s.pool(name)
	return st.head.keeper.Load(), st.process
}

// Journals returns the number of the journal in use.
func (s *Store) Journals(name string) uint64 { return s.pool(name).head.committed().journal }

// StatePath is where the state of a pool is.
func (s *Store) StatePath(name string) string { return s.pool(name).path }

// JournalPath is where its journal is.
func (s *Store) JournalPath(name string) string { return s.pool(name).journal.file.Name() }

func (s *Store) pool(name string) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pools[name]
}

// TryLock takes the kernel's lock of an open file, if it is free.
func TryLock(fd int) error { return tryLock(fd, unix.LOCK_EX) }

// Unlock gives it back.
func Unlock(fd int) { unlock(fd) }
