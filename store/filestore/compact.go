//go:build linux || darwin || windows

package filestore

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// The records take as much room as they ever needed, and every process maps and every journal copies all
// of it. So once in a while whoever has the lock writes them anew, close together. That is a switch to a new
// journal whose copy of the state is the small one, and a repair from it: the same steps as after a crash,
// in the same order. All charges are in that copy, and a process that is killed at any point leaves either
// the old state or one that the next process finishes. Other processes see by header.shape that records are
// elsewhere now.

const (
	// compactFrom is the size that is worth it.
	compactFrom = 1 << 20
	// compactPause is how long nobody tries again, for every compactFrom bytes: copying them takes a
	// thousandth of a second or two.
	compactPause = 10 * second
)

// compactIfDue makes the records small if they may be larger than they need to be. The state is locked and
// up to date.
func (st *state) compactIfDue(now store.Time) error {
	size := st.space.Size()
	if size < compactFrom || int64(now) < st.head.compactAt {
		return nil
	}
	st.head.compactAt = int64(now + compactPause*store.Time(size/compactFrom)) // before: one that fails is not tried all the time
	return st.compact(now)
}

func (st *state) compact(now store.Time) error {
	c := st.head.committed()
	c.dirty = true
	st.head.set(c)
	st.store.fault("sweeping")
	image, err := st.compacted(now)
	if err != nil {
		return st.repair(false) // nobody has asked for it
	}
	st.store.fault("gathered")
	number := (c.journal + 1) % (1 << (63 - endBits))
	j, err := writeJournal(st.dir, st.head.instance, number, image, 0)
	if err != nil {
		return st.repair(false) // a disk without room: it stays as it is
	}
	st.store.fault("saved")
	st.head.shape++ // before it is true: who looks once too often does no harm
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

// compacted returns the records close together, or why that cannot be done.
func (st *state) compacted(now store.Time) (image []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = damage(r)
		}
	}()
	return st.core.Compact(now)
}

// reshape takes in that another process has made the records small.
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
