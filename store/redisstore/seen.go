package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// memory is how far a pool had come when a process of this machine last used it. It is a file in the user's state
// directory, so that even a command that makes a single request notices that the store has lost grants. Failures to read
// or write the file are ignored.
type memory struct {
	path     string
	epoch    int64
	sequence int64
	clock    store.Time // the server's time; in a process that goes on, the latest at which it writes the file again
	wrote    store.Time // the clock that this process wrote last; 0: it has not
}

const (
	rememberEvery = 5 // touches, one per second
	// rememberWithin is how long a process may grant before it writes the file again, even on a busy machine. If it is
	// killed before, what it granted meanwhile still counts.
	rememberWithin = 3 * rememberEvery * touchEvery
	forgetAfter    = 100 * 24 * time.Hour
	memoryForm     = "sluice-redis-1 %d %d %d\n"
	maxMemory      = 128 // bytes
)

// stateDir returns the default of WithStateDir, "" if the user has no state directory.
func stateDir() string {
	dir, err := statedir.Default()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "redis")
}

// recall reads the memory of a pool when this process opens it for the first time.
func (st *state) recall(spec *store.Spec) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known != nil || st.memory != nil || st.store.fixed || st.store.stateDir == "" {
		return
	}
	sum := sha256.Sum256([]byte(st.store.address + "\x00" + st.key))
	st.memory = &memory{path: filepath.Join(st.store.stateDir, hex.EncodeToString(sum[:12]))}
	m, ok := readMemory(st.memory.path)
	if !ok {
		return
	}
	*st.memory = m
	st.recalled, st.matters = m.clock, matters(spec)
	st.epoch, st.sequence = m.epoch, m.sequence
}

// matters returns how long earlier grants can still count, over windows of up to ten minutes. A loss of data is made good
// only for those.
func matters(spec *store.Spec) time.Duration {
	const heeded = 10 * time.Minute
	if len(spec.Limits) == 0 {
		return heeded
	}
	longest := 3 * time.Second
	for i := range spec.Limits {
		l := &spec.Limits[i]
		d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
		if span := l.Window; err == nil && l.Kind != store.Concurrency {
			if l.Kind == store.Bucket && l.Size > 0 && l.Burst > l.Size {
				span *= time.Duration(min((l.Burst+l.Size-1)/l.Size, 1<<20))
			}
			if span <= heeded {
				longest = max(longest, span+time.Duration(d.Most)*time.Microsecond)
			}
		}
	}
	return longest
}

// outdated drops the memory of the pool if nothing granted at that time counts any more. The caller holds st.mu.
func (st *state) outdated(now store.Time) {
	if st.recalled == 0 || st.known != nil {
		return
	}
	if now.Sub(st.recalled) > st.matters {
		st.epoch, st.sequence = 0, 0
	}
	st.recalled = 0
}

// remember writes how far the pool has come, unless the file says more. last means that this process stops using the pool.
func (st *state) remember(last bool) {
	st.mu.Lock()
	if st.memory == nil || st.known == nil {
		st.mu.Unlock()
		return
	}
	m := *st.memory
	now := memory{path: m.path, epoch: st.epoch, sequence: st.sequence, clock: st.nowLocked(), wrote: m.wrote}
	if !last {
		now.clock = now.clock.Add(rememberWithin)
	}
	used := now.epoch != m.epoch || now.sequence != m.sequence
	*st.memory = now
	st.mu.Unlock()
	if !used {
		return
	}
	old, ok := readMemory(now.path)
	if ok && (old.epoch > now.epoch || old.epoch == now.epoch && old.sequence >= now.sequence) {
		return // another process has seen more
	}
	if now.wrote = now.clock; ok && old.clock != m.wrote {
		now.clock = max(now.clock, old.clock) // another process may grant until then
	}
	now.write()
	st.mu.Lock()
	st.memory.wrote = now.wrote
	st.mu.Unlock()
}

func readMemory(path string) (m memory, ok bool) {
	if statedir.NoLink(filepath.Dir(path)) != nil {
		return m, false
	}
	f, err := statedir.Open(path, os.O_RDONLY)
	if err != nil {
		return m, false
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxMemory || time.Since(info.ModTime()) > forgetAfter {
		return m, false
	}
	m.path = path
	n, err := fmt.Fscanf(f, memoryForm, &m.epoch, &m.sequence, &m.clock)
	const most = 1 << 53
	return m, n == 3 && err == nil && m.epoch > 0 && m.epoch < most && m.sequence >= 0 && m.sequence < most && m.clock > 0
}

// write replaces the file in one step.
func (m *memory) write() {
	dir := filepath.Dir(m.path)
	if statedir.MakeInside(dir) != nil {
		return
	}
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return
	}
	_, err = fmt.Fprintf(f, memoryForm, m.epoch, m.sequence, m.clock)
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), m.path) != nil {
		_ = os.Remove(f.Name())
	}
}
