package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/internal/statedir"
)

// Claim is the exclusive right to run an entry again or to remove it. One process at a time can hold it. If that
// process dies, the claim is free.
type Claim struct {
	list  *List
	id    string
	at    stored
	entry Entry
	lock  *os.File
}

// Claim claims the entry with the given id, or the only entry whose id begins with it. The error is [ErrClaimed] if
// another process holds the claim, and [ErrDamaged] if the entry cannot be read. Call Release when done.
func (l *List) Claim(id string) (*Claim, error) {
	c, err := l.claim(id)
	if err == nil && c.entry.Damaged != "" {
		err = fmt.Errorf("%w: %s: %s", ErrDamaged, c.id, c.entry.Damaged)
		c.Release()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// claim is Claim, but also accepts entries that cannot be read.
func (l *List) claim(id string) (*Claim, error) {
	at, err := l.find(id)
	if err != nil {
		return nil, err
	}
	lock, err := l.lock(at.id)
	if err != nil {
		return nil, err
	}
	c := &Claim{list: l, id: at.id, at: at, lock: lock}
	// Read it only now: the previous holder may have changed or removed it.
	if c.entry, err = l.read(at); err != nil {
		c.Release()
		return nil, err
	}
	return c, nil
}

// lock takes the lock of an entry. The operating system frees it when the holder dies.
func (l *List) lock(id string) (*os.File, error) {
	name := filepath.Join(l.dir, id+claimEnd)
	for {
		f, err := statedir.Open(name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := filelock.Try(f, true); err != nil {
			_ = f.Close()
			if errors.Is(err, filelock.ErrLocked) {
				err = fmt.Errorf("%w: %s", ErrClaimed, id)
			}
			return nil, err
		}
		// The previous holder may have removed the file between Open and Try. The lock is then on a file that no other
		// process will find.
		if !statedir.Gone(f, name) {
			return f, nil
		}
		_ = f.Close()
	}
}

// Entry returns the claimed entry.
func (c *Claim) Entry() Entry { return c.entry }

// Update replaces the entry and keeps its id.
func (c *Claim) Update(e Entry) error {
	e.ID, e.Damaged = c.id, ""
	data, err := c.list.encode(&e)
	if err != nil {
		return err
	}
	if err := c.list.write(c.at, data, false); err != nil {
		return err
	}
	c.entry = e
	return nil
}

// Remove removes the entry from the list.
func (c *Claim) Remove() error {
	err := os.Remove(c.list.file(c.at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	syncDir(c.list.dir)
	return err
}

// Release gives the claim back. It may be called twice.
func (c *Claim) Release() {
	if c.lock != nil {
		c.list.unlock(c.lock)
		c.lock = nil
	}
}

// unlock removes the lock file while the lock is still held, so that it cannot remove another holder's file. Where an
// open file cannot be removed, it does so right after closing.
func (l *List) unlock(f *os.File) {
	err := os.Remove(f.Name())
	_ = f.Close()
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// Remove removes an entry from the list. It fails with [ErrClaimed] while the entry is being retried.
func (l *List) Remove(id string) error {
	c, err := l.claim(id)
	if err != nil {
		return err
	}
	defer c.Release()
	return c.Remove()
}

// trim drops the oldest entries of a kind until the list is within its bounds, and removes files left behind by
// processes that died. It keeps the newest entry and entries that are being retried. The next call drops what this one
// could not.
func (l *List) trim(newest stored) (dropped []string) {
	l.sweep()
	files, err := l.stored()
	if err != nil {
		return nil
	}
	files = slices.DeleteFunc(files, func(f stored) bool { return f.kind != newest.kind })
	entries, most, _ := newest.kind.bounds()
	var total int64
	for _, f := range files {
		total += f.size
	}
	count := len(files)
	for _, f := range files {
		if count <= entries && total <= most {
			break
		}
		if f.id == newest.id || l.Remove(f.id) != nil {
			continue
		}
		dropped = append(dropped, f.id)
		count--
		total -= f.size
	}
	return dropped
}

// sweep removes files left behind by processes that died.
func (l *List) sweep() {
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return
	}
	for _, f := range files {
		name := f.Name()
		if id, ok := strings.CutPrefix(name, tempStart); ok && isID(id) {
			if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > tempOld {
				_ = os.Remove(filepath.Join(l.dir, name))
			}
		}
		if id, ok := strings.CutSuffix(name, claimEnd); ok && isID(id) {
			if l.gone(id) {
				if lock, err := l.lock(id); err == nil {
					l.unlock(lock)
				}
			}
		}
	}
}

// gone reports whether no entry with the id exists.
func (l *List) gone(id string) bool {
	for kind := range ends {
		if _, err := os.Lstat(l.file(stored{id: id, kind: kind})); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}
