//go:build linux || darwin || windows

package filestore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/ctxlock"
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// attach makes this process one of the processes that share a pool. It creates the pool if it does not exist.
func (s *Store) attach(ctx context.Context, spec store.Spec) (*state, error) {
	dir := filepath.Join(s.dir, fileName(spec.Name))
	for range 10 {
		st, err := s.enter(ctx, dir, spec, nil)
		if !errors.Is(err, errAgain) {
			return st, ofPool(spec.Name, err)
		}
	}
	return nil, failed("open", dir, errors.New("it is made and removed all the time"))
}

// errAgain means that another process has created or removed the pool in the meantime.
var errAgain = errors.New("again")

// enter attaches to the pool in dir. If the pool cannot be used, enter calls aside while the pool is locked.
func (s *Store) enter(ctx context.Context, dir string, spec store.Spec, aside func(err error, alone bool)) (_ *state, err error) {
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrNotExist): // the parent directory was removed, or could not be created on a full disk
		if err := prepareDir(s.dir); err != nil {
			return nil, err
		}
		return nil, errAgain
	case err != nil && !errors.Is(err, fs.ErrExist):
		return nil, failed("make", dir, err)
	}
	if err := statedir.NoLink(dir); err != nil {
		return nil, failed("open", dir, err)
	}
	path := filepath.Join(dir, "state")
	f, err := statedir.OpenNoLink(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.create(dir, path, spec); err != nil {
			return nil, err
		}
		return nil, errAgain
	}
	if err != nil {
		return nil, failed("open", path, err)
	}
	st := &state{mu: ctxlock.New(), looking: ctxlock.New(), store: s, name: spec.Name, dir: dir, path: path, process: random() >> 16, sessions: map[uint64]*handle{}, waiting: map[store.ID]struct{}{}}
	defer func() {
		if err != nil {
			_ = f.Close()
			if st.file != nil {
				_ = st.file.unmap()
			}
			if st.members != nil {
				_ = leave(st.members)
			}
			if st.journal != nil {
				_ = st.journal.close()
			}
		}
	}()
	if err := checkOwner(f, path); err != nil {
		return nil, err
	}
	st.members, err = statedir.OpenNoLink(filepath.Join(dir, "members"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, failed("open", filepath.Join(dir, "members"), err)
	}
	st.lock, st.holder = newLock(descriptorOf(f), s.patience), func() int64 { return holderOf(f) }
	if _, err := st.lock.take(ctx, st.holder); err != nil {
		return nil, failed("lock", path, err)
	}
	defer st.lock.release()
	if statedir.Gone(f, path) {
		return nil, errAgain
	}
	if st.file, err = mapFile(f, reach); err != nil {
		return nil, failed("map", path, err)
	}
	alone, err := st.isAlone()
	if err != nil {
		return nil, err
	}
	if err := st.guarded(func() error { return st.load(alone) }); err != nil {
		if alone && st.worthless(err) {
			_ = statedir.Discard(path)
			return nil, errAgain
		}
		if aside != nil {
			aside(err, alone)
		}
		return nil, err
	}
	st.head.sealed = 0
	st.stated, st.edition = st.core.Stated(), st.core.Edition()
	return st, nil
}

// isAlone reports whether no other process is attached. Attached processes share the lock on the members file, and
// none can attach while the pool is locked.
func (st *state) isAlone() (bool, error) {
	alone, err := shareLock(descriptorOf(st.members))
	if err != nil {
		return false, failed("lock", st.members.Name(), err)
	}
	return alone, nil
}

// fileName returns the directory name of a pool. It is readable where possible, and distinct for distinct pools even
// on file systems that ignore case.
func fileName(name string) string {
	var b strings.Builder
	plain := len(name) <= 80 && name != ""
	for i := range min(len(name), 80) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			b.WriteByte('+')
			plain = false
		}
	}
	if !plain {
		fmt.Fprintf(&b, "+%016x", flat.Hash(name))
	}
	return b.String()
}

// create makes the files of a pool. They appear under their final name only when they are complete.
func (s *Store) create(dir, path string, spec store.Spec) (err error) {
	spec.ReadOnly = false // the first spec has to define the limits
	temp := fmt.Sprintf("%s.new-%016x", path, random())
	f, err := statedir.OpenNoLink(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return failed("make", temp, err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(temp)
	}()
	m, err := mapFile(f, reach)
	if err != nil {
		return failed("map", temp, err)
	}
	defer func() { _ = m.unmap() }()
	if err := m.ensure(page); err != nil {
		return failed("make", temp, err)
	}
	clock := s.clock
	h := headerOf(m.mem)
	h.magic, h.version, h.instance = magic, version, random()
	h.boot, h.offset = clock.Boot(), int64(wall(clock)-clock.Now())
	h.now = int64(clock.Now()) + h.offset
	space, err := flat.Mapped(m.mem[page:], func(size int64) error { return m.ensure(page + size) })
	if err != nil {
		return failed("make", temp, err)
	}
	lost := isLost(dir)
	if err := catchFull(func() error {
		core, err := pool.Create(space, spec, store.Time(h.now))
		if err == nil && lost {
			core.Apply(store.Time(h.now), []store.Op{{Kind: store.OpForget}})
		}
		return err
	}); err != nil {
		return err // the spec is invalid, or the disk is full
	}
	h.layout = space.Layout()
	h.check = h.sum()
	h.longest = longest(&spec)
	j, err := writeJournal(dir, h.instance, 1, m.mem[page:page+space.Size()], 0)
	if err != nil {
		return err
	}
	defer func() { _ = j.close() }()
	h.set(commitWord{journal: 1})
	if err := os.Link(temp, path); err != nil {
		_ = os.Remove(journalPath(dir, h.instance, 1))
		if errors.Is(err, fs.ErrExist) {
			return nil // another process was quicker
		}
		return failed("make", path, err)
	}
	if lost {
		_ = os.Remove(lostMark(dir)) // if it stays, the next pool here holds back for no reason
	}
	return nil
}

// catchFull turns the panic of a space that cannot grow into an error.
func catchFull(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok && errors.Is(e, flat.ErrFull) {
				err = failed("make", "the pool", e)
				return
			}
			panic(r)
		}
	}()
	return f()
}

// load reads the state of a file that has just been mapped and locked.
func (st *state) load(alone bool) error {
	if st.file.size < page {
		return failed("read", st.path, fmt.Errorf("%w: %w", errDamaged, errShort))
	}
	st.head = headerOf(st.file.mem)
	if err := st.head.valid(pool.Layout()); err != nil {
		return failed("read", st.path, err)
	}
	st.shape = st.head.shape
	clock := st.store.clock
	if st.head.boot != clock.Boot() {
		if !alone {
			return failed("read", st.path, fmt.Errorf("%w: it is in use by a machine that was started at another time", errDamaged))
		}
		return st.restart()
	}
	st.offset.Store(st.head.offset)
	c := st.head.committed()
	j, err := openJournal(st.dir, st.head.instance, c.journal)
	if err != nil {
		return err
	}
	st.journal = j
	if c.dirty {
		return st.repair(false) // a half-done space must not be read
	}
	space, err := st.mapSpace()
	if err != nil {
		return err
	}
	if !st.untouched() {
		return failed("read", st.path, fmt.Errorf("%w: it was changed by something else than Sluice", errDamaged))
	}
	if st.core, err = pool.Attach(space); err != nil {
		st.core = nil
		return st.repair(false)
	}
	return nil
}

func (st *state) mapSpace() (*flat.Space, error) {
	if st.file.size < page+flat.Least || st.file.size < page+flat.RoomOf(st.file.mem[page:]) {
		return nil, failed("read", st.path, fmt.Errorf("%w: %w", errDamaged, errShort))
	}
	space, err := flat.Mapped(st.file.mem[page:], st.grow)
	if err != nil {
		return nil, failed("grow", st.path, err)
	}
	st.space = space
	return space, nil
}

// grow makes the file at least size bytes long, plus its header.
func (st *state) grow(size int64) error { return st.file.ensure(page + size) }

// restart continues after a reboot of the machine. Data that was only in memory is lost: restart uses as much of the
// journal as it can read.
func (st *state) restart() error {
	h, clock := st.head, st.store.clock
	j, err := openJournal(st.dir, h.instance, h.committed().journal)
	if err != nil {
		return err
	}
	st.journal = j
	if _, err := flat.Mapped(st.file.mem[page:], st.grow); err != nil {
		return failed("grow", st.path, err)
	}
	if err := st.repair(true); err != nil {
		return err
	}
	// The pool's time continues by the time of day, and never goes back.
	h.now = int64(st.core.Now())
	h.offset = max(int64(wall(clock)), h.now) - int64(clock.Now())
	h.boot = clock.Boot()
	st.offset.Store(h.offset)
	h.wake.Store(0)
	h.keeper.Store(0)
	return nil
}

// worthless reports whether an unusable file can be discarded: after a reboot of the machine, or when nothing in it
// counts any more.
func (st *state) worthless(err error) bool {
	h := st.head
	if h == nil || h.magic != magic || h.version > version || h.check != h.sum() {
		return false
	}
	switch {
	case errors.Is(err, errOther):
		return h.longest > 0 && h.unusedFor(st.store.clock) > time.Duration(h.longest)*time.Microsecond+store.MaxTTL
	case errors.Is(err, errDamaged):
		return h.boot != st.store.clock.Boot()
	}
	return false
}

// longest returns how long anything in a pool can count, in microseconds.
func longest(spec *store.Spec) int64 {
	most := store.MaxTTL
	for _, l := range spec.Limits {
		most = max(most, l.Window)
	}
	return most.Microseconds()
}

// holderOf returns the pid of the process that holds the lock, or held it last. It reads the file rather than the
// mapping, because the file may be shorter than the mapping.
func holderOf(f *os.File) int64 {
	var buf [page]byte
	if n, _ := readStart(f, buf[:]); n < len(buf) {
		return 0
	}
	return headerOf(buf[:]).holder
}

func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}
