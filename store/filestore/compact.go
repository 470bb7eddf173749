//go:build linux || darwin || windows

package filestore

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// Records keep the largest size they ever needed, and every process maps all of it and every journal copies it. So
// now and then the holder of the lock rewrites them compactly. It switches to a new journal that holds the compact
// copy of the state, and repairs from it: the same steps as after a crash, in the same order. The copy has all
// charges, and a process killed at any point leaves either the old state or one that the next process completes.
// Other processes notice the new positions of records by header.shape.

const (
	// compactFrom is the smallest size worth compacting.
	compactFrom = 1 << 20
	// compactPause is the time between compactions, for every compactFrom bytes. Copying that much takes 1 to 2 ms.
	compactPause = 10 * second
)

// compactIfDue compacts the records if they may be larger than necessary. The state is locked and up to date.
func (st *state) compactIfDue(now store.Time) error {
	size := st.space.Size()
	if size < compactFrom || int64(now) < st.head.compactAt {
		return nil
	}
	st.head.compactAt = int64(now + compactPause*store.Time(size/compactFrom)) // set first: a failing compaction is not repeated
	return st.compact(now)
}

func (st *state) compact(now store.Time) error {
	c := st.head.committed()
	c.dirty = true
	st.head.set(c)
	st.store.fault("sweeping")
	image, err := st.compacted(now)
	if err != nil {
		return st.repair(false) // not the caller's problem
	}
	st.store.fault("gathered")
	number := (c.journal + 1) % (1 << (63 - endBits))
	j, err := writeJournal(st.dir, st.head.instance, number, image, 0)
	if err != nil {
		return st.repair(false) // the disk is full: keep the records as they are
	}
	st.store.fault("saved")
	st.head.shape++ // set early: an unnecessary check by another process does no harm
	st.head.set(commitWord{journal: number, dirty: true})
	st.store.fault("switched")
	_ = st.journal.close()
	st.journal = j
	if room := page + max(flat.Least, flat.RoomOf(image)); room < st.file.size {
		if err := shorten(st.file.file, room); err == nil {
			st.file.size = room
		}
	}
	st.store.fault("shortened")
	if err := st.repair(false); err != nil {
		return err
	}
	st.shape = st.head.shape
	removeJournals(st.dir, st.head.instance, number)
	return nil
}

// compacted returns a compact copy of the records, or an error.
func (st *state) compacted(now store.Time) (image []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damage(r)
		}
	}()
	return st.core.Compact(now)
}

// reshape adapts this process after another one has compacted the records.
func (st *state) reshape() error {
	if err := st.file.look(); err != nil {
		return failed("read", st.path, err)
	}
	if err := st.core.Reset(); err != nil {
		return failed("read", st.path, err)
	}
	st.shape = st.head.shape
	return nil
}
