//go:build linux || darwin || windows

package filestore

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/pool"
)

// WithFault sets what is called at every point at which a step can be cut off.
func WithFault(f func(where string)) Option { return func(s *Store) { s.fault = f } }

// SystemClock is the clock that stores have.
func SystemClock() (Clock, error) { return systemClock() }

// HeaderSize is where the records of a state file begin.
const HeaderSize = page

// LogSize is the room for steps in a small journal.
const LogSize = leastLog

// WithPatience sets how long a step waits for the lock.
func WithPatience(d time.Duration) Option { return func(s *Store) { s.patience = d } }

// Values returns all that is in the records of a pool, and all that this process has derived from
// them, value by value. What lies between the fields of a record is not compared: it is never
// looked at. With a number, where is told what the value of that number is.
func (s *Store) Values(name string, number int) (values []uint64, where string, err error) {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	err = st.locked(context.Background(), func() error {
		w := walker{number: number}
		w.walk(reflect.ValueOf(st.core).Elem(), "pool")
		values, where = w.values, w.where
		return nil
	})
	return values, where, err
}

// passing is what is of no consequence to the next step.
var passing = map[string]bool{
	"Pool.batch": true, "Pool.decided": true, "Pool.judging": true, "Pool.next": true, "Pool.known": true, "Names.last": true,
	"Queue.heads": true, "Queue.held": true, "Queue.unparked": true,
}

type walker struct {
	values []uint64
	number int
	where  string
}

func (w *walker) add(v uint64, path string) {
	if len(w.values) == w.number {
		w.where = path
	}
	w.values = append(w.values, v)
}

func (w *walker) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i).Name
			if f != "space" && f != "whole" && !passing[v.Type().Name()+"."+f] {
				w.walk(v.Field(i), w.at(path, ".", f))
			}
		}
	case reflect.Array, reflect.Slice:
		w.add(uint64(v.Len()), path)
		for i := range v.Len() {
			w.walk(v.Index(i), w.at(path, "#", i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			w.walk(v.Elem(), path)
		}
	case reflect.String:
		w.add(flat.Hash(v.String()), path)
	case reflect.Bool:
		x := uint64(0)
		if v.Bool() {
			x = 1
		}
		w.add(x, path)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.add(uint64(v.Int()), path)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.add(v.Uint(), path)
	case reflect.Func, reflect.Interface, reflect.Map:
	default:
		panic("a pool holds a " + v.Type().String())
	}
}

// at extends a path, if anybody asks for one.
func (w *walker) at(path, sign string, part any) string {
	if w.number < 0 {
		return ""
	}
	return fmt.Sprint(path, sign, part)
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
func TryLock(f *os.File) error { return tryLock(descriptorOf(f)) }

// WaitLock waits for the lock of an open file.
func WaitLock(f *os.File, patience time.Duration, holder func() int64) error {
	_, err := newLock(descriptorOf(f), patience).take(context.Background(), holder)
	return err
}

// Unlock gives it back.
func Unlock(f *os.File) { unlock(descriptorOf(f)) }

// LastSession says which session of a pool was made last.
func (s *Store) LastSession(name string, n uint64) {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lastSess = n
}

// Kill ends a store as if its process had been killed: the system takes its locks, and everything else stays.
func (s *Store) Kill() {
	s.mu.Lock()
	pools := s.pools
	s.pools, s.closed = nil, true
	s.mu.Unlock()
	for _, st := range pools {
		st.mu.Lock()
		if st.card != nil {
			_ = leave(st.card)
			st.card = nil
		}
		if st.bell != nil {
			st.bell.silence()
		}
		_ = st.detach()
		st.mu.Unlock()
	}
}

// Forget takes the file away in which the process says what it states, as if it was of a version that has none.
func (s *Store) Forget(name string) {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.withdraw()
	st.said = pool.Said{}
}

// StatedPath is that file.
func (s *Store) StatedPath(name string) string {
	return statedPath(s.pool(name).dir, s.pool(name).process)
}

// Compact makes the records of a pool small now.
func (s *Store) Compact(name string) error {
	st := s.pool(name)
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.locked(context.Background(), func() error { return st.compact(st.now()) })
}

// MapFile maps the beginning of a file.
func MapFile(f *os.File, size int64) (mem []byte, unmap func(), err error) {
	m, err := mapFile(f, size)
	if err != nil {
		return nil, nil, err
	}
	return m.mem, func() { _ = m.unmap() }, nil
}
