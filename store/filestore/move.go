//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
)

// lookEvery is how often a process checks that its file is still the one at its path. Until the check, a process
// that started later may use another file for the same quota.
const lookEvery = second / 10

// errMoved means that the file this process has open is not the one at its path.
var errMoved = errors.New("the state file was removed or replaced")

// move switches to the file at the pool's path, and creates it if necessary. The new file does not have the grants
// of the old one, so the pool is told that memory was lost. It then holds all requests for a moment, and counts
// windows of up to ten minutes as spent. st.mu is held.
func (st *state) move(ctx context.Context) error {
	s := st.store
	if err := prepareDir(s.dir); err != nil {
		return err
	}
	spec := st.stated // the old file may be damaged
	n, err := s.attach(ctx, spec)
	if err != nil {
		return err
	}
	st.withdraw()
	_ = errors.Join(st.journal.close(), st.file.close(), leave(st.members)) // they are no longer needed
	st.lock, st.holder, st.file, st.members, st.journal = n.lock, n.holder, n.file, n.members, n.journal
	st.head, st.space, st.core, st.shape = n.head, n.space, n.core, n.shape
	st.offset.Store(n.offset.Load())
	st.stated, st.edition = n.stated, n.edition
	st.checked, st.ready = 0, readied{}
	var deaf error // this process cannot be notified; the pool hears of the lost memory all the same
	if st.bell != nil {
		st.bell.silence()
		_ = os.Remove(bellPath(st.dir, st.process)) // it is still there if only the state was removed
		if st.bell, deaf = hang(st.dir, st.process, st.heard); deaf != nil {
			st.bell = nil
			st.hung.Store(false) // the next request that waits tries again
		}
	}
	for id := range st.waiting { // their callers have to ask again
		st.mine = append(st.mine, id)
		delete(st.waiting, id)
	}
	return errors.Join(deaf, st.lockedOnce(ctx, func() error {
		st.publish(st.said.Specs())
		if !st.core.Is(&spec) {
			if err := st.define(st.now(), &spec, false); err != nil {
				return err
			}
		}
		return st.step(st.now(), []store.Op{{Kind: store.OpForget, ID: store.ID{Session: st.process << 16}}})
	}))
}

// restoreHeader rebuilds the header of a truncated file from the journal, which has a copy of the state and all
// steps since. The last step in it may have been cut off. It counts anyway, which is the safe side.
func (st *state) restoreHeader() error {
	if err := st.file.look(); err != nil || st.file.size >= page {
		return err
	}
	j, err := st.newestJournal()
	if err != nil {
		return err
	}
	end, err := j.replay(int64(len(j.log)), true, func(*oplog.Entry) error { return nil })
	if err != nil {
		return err
	}
	layout := st.space.Layout()
	if err := st.file.ensure(page); err != nil {
		return err
	}
	h := st.head
	h.magic, h.version, h.instance, h.layout = magic, version, j.head().instance, layout
	h.check = h.sum()
	h.boot, h.offset, h.now = st.store.clock.Boot(), st.offset.Load(), int64(st.now())
	h.shape = random()                         // makes all other processes check the position of records
	h.longest = store.MaxWindow.Microseconds() // an upper bound: the limits are not read yet
	h.set(commitWord{journal: j.number, end: end, dirty: true})
	return nil
}

// newestJournal returns the journal that was written last. Another process may have created one since this process
// last looked.
func (st *state) newestJournal() (*journal, error) {
	instance := st.journal.head().instance
	prefix := fmt.Sprintf("journal-%016x-", instance)
	list, err := os.ReadDir(st.dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, e := range list {
		if text, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if n, err := strconv.ParseUint(text, 16, 64); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) == 0 || slices.Max(numbers) == st.journal.number {
		return st.journal, nil
	}
	j, err := openJournal(st.dir, instance, slices.Max(numbers))
	if err != nil {
		return nil, err
	}
	_ = st.journal.close()
	st.journal = j
	return j, nil
}
