//go:build linux || darwin || windows

package filestore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// collectEvery is how often a directory is searched for unused pools.
const collectEvery = 24 * time.Hour

// unused is how long a pool must be idle before it is removed. After that long nothing in it can count, whatever its
// windows.
const unused = store.MaxWindow

// litter is how old the remains of killed processes must be before they are removed.
const litter = time.Hour

// collect removes unused pools and the remains of killed processes, once a day. It reports no errors, because no
// caller asked for it.
func (s *Store) collect() {
	mark := filepath.Join(s.dir, ".collected")
	if info, err := os.Lstat(mark); err == nil && time.Since(info.ModTime()) < collectEvery {
		return
	}
	if write(mark, "") != nil {
		return
	}
	now := time.Now()
	_ = os.Chtimes(mark, now, now)
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range list {
		if e.IsDir() {
			s.collectPool(filepath.Join(s.dir, e.Name()))
		}
	}
}

// collectPool removes a pool that has not been used for long, or the files that killed processes left in it.
func (s *Store) collectPool(dir string) {
	f, err := statedir.OpenNoLink(filepath.Join(dir, "state"), os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // it was only read
	if tryLock(descriptorOf(f)) != nil {
		return
	}
	defer unlock(descriptorOf(f))
	var buf [page]byte
	if n, _ := f.ReadAt(buf[:], 0); n < len(buf) {
		return
	}
	h := headerOf(buf[:])
	if h.magic != magic || h.version != version || h.check != h.sum() {
		return // another version or program owns it
	}
	members, err := statedir.OpenNoLink(filepath.Join(dir, "members"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return
	}
	defer leave(members) //nolint:errcheck // it is only locked
	alone := tryLock(descriptorOf(members)) == nil
	if alone && h.unusedFor(s.clock) > unused {
		_ = os.RemoveAll(dir) // processes waiting for the lock notice that it is gone
		return
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < litter {
			continue
		}
		left := strings.HasPrefix(e.Name(), "bell-") || strings.HasPrefix(e.Name(), statedPrefix) ||
			strings.HasPrefix(e.Name(), "journal-") && !strings.HasPrefix(e.Name(), fmt.Sprintf("journal-%016x-", h.instance))
		if strings.HasPrefix(e.Name(), "state.new-") || alone && left {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
