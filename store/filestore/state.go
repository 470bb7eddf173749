//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/ctxlock"
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// state is one pool as one process sees it.
type state struct {
	store   *Store
	name    string
	dir     string
	path    string
	process uint64 // 48 random bits that identify this process
	holder  func() int64
	offset  atomic.Int64 // from the system's clock to the pool's clock

	line combiner

	looking ctxlock.Mutex // held by the one snapshot that has a copy of the pool

	// mu guards all fields below.
	mu       ctxlock.Mutex
	lock     *lock
	file     *mapped
	members  *os.File
	head     *header
	space    *flat.Space
	core     *pool.Pool
	journal  *journal
	shape    uint64     // shape of the records that this process has mapped
	stated   store.Spec // the pool's limits when they were last read
	edition  int64      // edition of stated
	sessions map[uint64]*handle
	said     pool.Said
	card     *os.File   // what this process states, see stated.go; nil: others cannot know
	settled  store.Time // when this process last looked whether limits have the size they should
	lastSess uint64
	checked  store.Time // when the file was last seen at its path
	closed   bool

	bell    *bell
	soon    atomic.Int64          // time of the last sweep after a refusal
	hung    atomic.Bool           // the bell exists
	crowded atomic.Bool           // requests were waiting after the latest step of any process
	waiting map[store.ID]struct{} // waiting tickets of this process, as far as it knows
	timer   Timer
	timerAt store.Time // when the timer fires; 0: not set
	roundAt store.Time // when to check for missed notices
	ready   readied
	fellow  []store.ID // decided tickets of other processes
	mine    []store.ID // decided tickets of this process
}

// pid is read once, because os.Getpid is a system call.
var pid = int64(os.Getpid())

// processOf returns the process that a session belongs to.
func processOf(session uint64) uint64 { return session >> 16 }

// now returns the time on the pool's clock.
func (st *state) now() store.Time { return st.store.clock.Now() + store.Time(st.offset.Load()) }

// locked runs f while no other process touches the pool. st.mu is held. If the pool's files were removed, locked
// creates them again first.
func (st *state) locked(ctx context.Context, f func() error) error {
	if st.closed {
		return store.ErrClosed
	}
	err := st.lockedOnce(ctx, f)
	if !errors.Is(err, errMoved) {
		return err
	}
	if err := st.move(ctx); err != nil {
		return err
	}
	return st.lockedOnce(ctx, f)
}

func (st *state) lockedOnce(ctx context.Context, f func() error) error {
	slept, err := st.lock.take(ctx, st.holder)
	if err != nil {
		return failed("lock", st.path, err)
	}
	defer st.lock.release()
	if slept {
		st.ready.now = 0 // time has passed: the prepared entry is stale
	}
	begun := false
	err = st.guarded(func() error {
		if err := st.prepare(); err != nil {
			return err
		}
		begun = true
		return f()
	})
	if e, ok := errors.AsType[*Error](err); ok && !begun && repairable(e.Err) && statedir.Gone(st.file.file, st.path) {
		return errMoved // the damaged files have been moved aside
	}
	return ofPool(st.name, err)
}

// briefly bounds how long background work waits for the lock: callers wait for st.mu meanwhile.
const briefly = 50 * time.Millisecond

// lockedBriefly is locked for work that can be postponed. st.mu is held.
func (st *state) lockedBriefly(f func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), briefly)
	defer cancel()
	return st.locked(ctx, f)
}

// readied is a journal entry written before the lock is taken, which makes the time under the lock shorter.
type readied struct {
	now   store.Time // time of the entry; 0: there is no entry
	entry []byte
}

// makeReady encodes a step in advance.
func (st *state) makeReady(ops []store.Op) {
	st.ready.now = st.now()
	st.ready.entry = oplog.AppendApply(st.ready.entry[:0], st.ready.now, ops)
	if len(st.ready.entry) == 0 || cap(st.ready.entry) > 1<<20 {
		st.ready = readied{} // too large for one entry, or for a buffer to keep
	}
}

// guarded runs f and turns a truncated or corrupt file, or a full disk, into an error. It undoes a half-done step.
func (st *state) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		cause, ok := r.(error)
		if !ok || !errors.Is(cause, flat.ErrFull) {
			cause = damage(r)
		}
		err = failed("use", st.path, cause)
		if st.core == nil {
			return
		}
		if undo := st.tryRepair(); undo != nil {
			err = undo
		}
	}()
	return f()
}

// damage turns a panic into an error about the file.
func damage(r any) error {
	if f, ok := r.(interface{ Addr() uintptr }); ok {
		return fmt.Errorf("%w: %w (no memory at %#x)", errDamaged, errShort, f.Addr())
	}
	return fmt.Errorf("%w: its records make no sense (%v)", errDamaged, r)
}

// faultless runs f, which only reads, and reports missing memory as an error.
func (st *state) faultless(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = ofPool(st.name, failed("read", st.path, damage(r)))
		}
	}()
	f()
	return nil
}

// tryRepair is repair. It also returns an error if the journal is damaged too.
func (st *state) tryRepair() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = failed("repair", st.path, damage(r))
		}
	}()
	if err := st.restoreHeader(); err != nil {
		return failed("repair", st.path, err)
	}
	return st.repair(false)
}

// prepare brings this process's view of the state up to date.
func (st *state) prepare() error {
	if st.head.magic != magic {
		return failed("read", st.path, errForeign)
	}
	now := st.ready.now
	if now == 0 {
		now = st.now()
	}
	look := now-st.checked > lookEvery
	if look {
		if statedir.Gone(st.file.file, st.path) {
			return errMoved
		}
		st.checked = now
	}
	st.head.holder = pid
	c := st.head.committed()
	if err := st.useJournal(c.journal); err != nil {
		return err
	}
	if remaps && page+flat.RoomOf(st.file.mem[page:]) > st.file.size { // another process has made the file grow
		if err := st.file.look(); err != nil {
			return failed("read", st.path, err)
		}
	}
	var err error
	switch {
	case c.dirty:
		if err = st.repair(false); err == nil {
			st.shape = st.head.shape
		}
	case st.shape != st.head.shape:
		err = st.reshape()
	default:
		err = st.core.Refresh()
	}
	if err == nil && look {
		err = st.compactIfDue(now)
	}
	if e := st.core.Edition(); err == nil && e != st.edition {
		st.stated, st.edition = st.core.Stated(), e
	}
	return err
}

const second = store.Time(time.Second / time.Microsecond)

// step makes one step: it writes the journal entry, applies it, and then commits it.
func (st *state) step(now store.Time, ops []store.Op) error {
	c := st.head.committed()
	if err := st.reserve(&c, int64(oplog.Bound(ops))); err != nil {
		return err
	}
	log := st.journal.log
	return st.carryOut(c, now, ops, len(oplog.AppendApply(log[c.end:c.end:len(log)], now, ops)))
}

// stepReady makes the step that makeReady encoded.
func (st *state) stepReady(ops []store.Op) error {
	c := st.head.committed()
	if err := st.reserve(&c, int64(len(st.ready.entry))); err != nil {
		return err
	}
	return st.carryOut(c, st.ready.now, ops, copy(st.journal.log[c.end:], st.ready.entry))
}

// carryOut applies the operations in the journal entry, and then commits them.
func (st *state) carryOut(c commitWord, now store.Time, ops []store.Op, size int) error {
	st.store.fault("written")
	c.dirty = true
	st.head.set(c)
	st.store.fault("begun")
	st.core.Apply(now, ops)
	st.store.fault("done")
	st.count(c, now, size)
	return nil
}

// define is a step that merges a member's limits into the pool's.
func (st *state) define(now store.Time, spec *store.Spec, alone bool) error {
	if err := st.core.Fits(spec, alone); err != nil {
		return err
	}
	c := st.head.committed()
	if err := st.reserve(&c, int64(oplog.BoundSpec(spec))); err != nil {
		return err
	}
	log := st.journal.log
	entry := oplog.AppendDefine(log[c.end:c.end:len(log)], now, spec, alone)
	st.store.fault("written")
	c.dirty = true
	st.head.set(c)
	st.store.fault("begun")
	if err := st.core.Reform(*spec, alone); err != nil {
		// Reform may have stopped half way: undo it.
		return errors.Join(err, st.repair(false))
	}
	st.store.fault("done")
	st.head.longest = max(st.head.longest, longest(spec))
	st.count(c, now, len(entry))
	return nil
}

// count commits a step.
func (st *state) count(c commitWord, now store.Time, size int) {
	c.dirty = false
	c.end += int64(size)
	st.head.set(c)
	st.head.now = int64(now)
	st.store.fault("counted")
}

// reserve makes sure that the journal has room for one more entry.
func (st *state) reserve(c *commitWord, room int64) error {
	if c.end+room <= int64(len(st.journal.log)) {
		return nil
	}
	if room > oplog.MaxEntry {
		return fmt.Errorf("operations of %d bytes in one step: at most %d", room, int64(oplog.MaxEntry))
	}
	return st.turn(c, room)
}

// turn begins a new journal with a copy of the state.
func (st *state) turn(c *commitWord, room int64) error {
	number := (c.journal + 1) % (1 << (63 - endBits))
	st.store.fault("full")
	j, err := writeJournal(st.dir, st.head.instance, number, st.file.mem[page:page+st.space.Size()], room)
	if err != nil {
		return err
	}
	st.store.fault("copied")
	*c = commitWord{journal: number}
	st.head.set(*c)
	st.store.fault("turned")
	_ = st.journal.close()
	st.journal = j
	removeJournals(st.dir, st.head.instance, number)
	return nil
}

// useJournal opens a journal in place of the current one, if it is another.
func (st *state) useJournal(number uint64) error {
	if number == st.journal.number {
		return nil
	}
	j, err := openJournal(st.dir, st.head.instance, number)
	if err != nil {
		return err
	}
	_ = st.journal.close()
	st.journal = j
	return nil
}

// repair undoes a step that was cut off. It restores the copy of the state and replays all committed steps since.
// With partly, it gives up steps that it cannot read.
func (st *state) repair(partly bool) error {
	c := st.head.committed()
	if err := st.useJournal(c.journal); err != nil {
		return err
	}
	if !st.journal.intact() {
		return failed("repair", st.journal.file.Name(), errDamaged)
	}
	if c.end > int64(len(st.journal.log)) {
		return failed("repair", st.path, fmt.Errorf("%w: it counts steps that the journal does not have", errDamaged))
	}
	if !partly { // check before overwriting anything
		if _, err := st.journal.replay(c.end, false, func(*oplog.Entry) error { return nil }); err != nil {
			return failed("repair", st.journal.file.Name(), fmt.Errorf("%w: %w", errDamaged, err))
		}
	}
	dirty := c
	dirty.dirty = true
	st.head.set(dirty)
	st.store.fault("repairing")
	image := st.journal.image
	if err := st.file.look(); err != nil { // another process may have grown it
		return failed("repair", st.path, err)
	}
	if err := st.file.ensure(page + max(flat.Least, flat.RoomOf(image))); err != nil {
		return failed("grow", st.path, err)
	}
	room := st.file.mem[page:st.file.size]
	copy(room, image)
	clear(room[len(image):])
	if err := st.reset(); err != nil {
		return failed("repair", st.path, fmt.Errorf("%w: %w", errDamaged, err))
	}
	end, err := st.journal.replay(c.end, partly, func(e *oplog.Entry) error {
		st.store.fault("replaying")
		if e.Kind == oplog.KindDefine {
			return st.core.Reform(e.Spec, e.Alone)
		}
		st.core.Apply(e.Now, e.Ops)
		return nil
	})
	if err != nil {
		return failed("repair", st.path, fmt.Errorf("%w: %w", errDamaged, err))
	}
	st.store.fault("repaired")
	st.head.set(commitWord{journal: c.journal, end: end})
	return nil
}

// reset points the state machine at a restored space.
func (st *state) reset() error {
	if st.core != nil {
		return st.core.Reset()
	}
	space, err := st.mapSpace()
	if err == nil {
		st.core, err = pool.Attach(space)
	}
	return err
}

// mostSealed bounds the size of the checksum that a process computes when it leaves, and checks when it attaches.
const mostSealed = 16 << 20

// sealUp stores a checksum of the records if no other process is attached. The next process uses it to detect
// changes by other programs.
func (st *state) sealUp(ctx context.Context) {
	_ = st.locked(ctx, func() error { // without a checksum the next process skips the check
		alone, err := st.isAlone()
		if err == nil && alone && st.space.Size() <= mostSealed {
			st.head.seal = crc32.Checksum(st.file.mem[page:page+st.space.Size()], castagnoli)
			st.head.sealed = st.head.commit.Load()
		}
		return err
	})
}

// untouched reports whether the records match the checksum that the last process left. It returns true if there is
// no checksum, because the last process was killed.
func (st *state) untouched() bool {
	h := st.head
	return h.sealed != h.commit.Load() || st.space.Size() > mostSealed ||
		crc32.Checksum(st.file.mem[page:page+st.space.Size()], castagnoli) == h.seal
}

// detach releases everything of a pool that this process no longer uses.
func (st *state) detach() error {
	st.closed = true
	if st.timer != nil {
		st.timer.Stop()
	}
	st.withdraw()
	return errors.Join(st.journal.close(), st.file.close(), leave(st.members))
}

// leave gives up the membership lock before closing the file. Closing alone is not enough: a child that is being
// started shares the open file until it executes its program, and would still count as a member.
func leave(members *os.File) error {
	unlock(descriptorOf(members))
	return members.Close()
}
