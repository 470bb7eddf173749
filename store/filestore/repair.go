//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

var errInUse = errors.New("processes of another version of Sluice use it")

// lostMark returns the path of the file that marks a lost pool. The next pool created in dir holds back at first. No
// pool has a directory of that name.
func lostMark(dir string) string { return dir + "+lost" }

func isLost(dir string) bool {
	_, err := os.Lstat(lostMark(dir))
	return err == nil
}

// Repair implements [store.Repairer]. It moves the pool's directory aside, and the next process that opens the pool
// creates it again. Processes that have the old files open notice within lookEvery of use, long before the new pool
// grants anything.
func (s *Store) Repair(ctx context.Context, name string, move bool) (store.Repair, error) {
	dir := filepath.Join(s.dir, fileName(name))
	r := store.Repair{What: "file", At: filepath.Join(dir, "state")}
	one, err := s.lockRepairs(ctx)
	if err != nil {
		return r, err
	}
	defer leave(one) //nolint:errcheck // it is only locked
	for range 10 {
		if _, err := os.Lstat(r.At); errors.Is(err, fs.ErrNotExist) {
			return r, nil
		}
		err := s.inspect(ctx, name, dir, move, &r)
		if !errors.Is(err, errAgain) {
			return r, err
		}
	}
	return r, failed("open", dir, errors.New("it is made and removed all the time"))
}

// inspect attaches to a pool to see whether it is usable, and moves it aside if it is not.
func (s *Store) inspect(ctx context.Context, name, dir string, move bool, r *store.Repair) error {
	found := func(err error, alone bool) error {
		e, ok := errors.AsType[*Error](err)
		if !ok || !repairable(e.Err) {
			return err
		}
		r.At, r.Damage = e.Path, e.Err.Error()
		if other := errors.Is(err, errOther) || errors.Is(err, errNewer); !move || other && !alone {
			if move {
				return &Error{Op: "move", Path: dir, Err: errInUse, hint: "end them first"}
			}
			return nil
		}
		r.Aside, err = moveAside(dir)
		return err
	}
	locked, result := false, error(nil)
	st, err := s.enter(ctx, dir, store.Spec{Name: name, ReadOnly: true}, func(err error, alone bool) {
		locked, result = true, found(err, alone)
	})
	switch {
	case locked:
		return result
	case err != nil:
		return found(err, true) // there is no file to lock
	}
	st.mu.Lock()
	err = st.lockedOnce(ctx, st.mendJournal)
	st.mu.Unlock()
	if errors.Is(err, errMoved) {
		_ = st.shut(context.Background())
		return errAgain
	}
	return errors.Join(err, st.shut(context.Background()))
}

// mendJournal rewrites a damaged journal from the state, which is sound and complete.
func (st *state) mendJournal() error {
	c := st.head.committed()
	if st.journal.intact() && c.end <= int64(len(st.journal.log)) {
		if _, err := st.journal.replay(c.end, false, func(*oplog.Entry) error { return nil }); err == nil {
			return nil
		}
	}
	return st.turn(&c, 0)
}

// moveAside renames the directory of a pool. It writes the mark first: a new pool can be created only after the
// rename, and so always sees the mark.
func moveAside(dir string) (string, error) {
	mark, err := statedir.OpenNoLink(lostMark(dir), os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return "", failed("make", lostMark(dir), err)
	}
	_ = mark.Close() // the file is empty
	aside := fmt.Sprintf("%s.damaged-%s", dir, time.Now().UTC().Format("20060102T150405.000000Z"))
	if err := movePool(dir, aside); err != nil {
		return "", failed("move", dir, err)
	}
	return aside, nil
}

// lockRepairs lets one process repair at a time. A second one finds a sound pool, which it must not move.
func (s *Store) lockRepairs(ctx context.Context) (*os.File, error) {
	path := filepath.Join(s.dir, ".repair")
	f, err := statedir.OpenNoLink(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, failed("open", path, err)
	}
	if _, err := newLock(descriptorOf(f), s.patience).take(ctx, func() int64 { return 0 }); err != nil {
		_ = f.Close()
		return nil, failed("lock", path, err)
	}
	return f, nil
}
