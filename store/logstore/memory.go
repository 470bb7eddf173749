package logstore

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

// memory is how far the log of a pool had come when a process of this machine last used it. If no process has survived that
// knows a lost log, a command that makes a single request notices by it that the engine has lost grants: the pool then
// counts short windows as spent. It is a small file. Failures to read or write it are ignored.
type memory struct {
	path        string
	incarnation uint64
	offset      int64
	until       store.Time // what was granted before may still count then; in a process that goes on, until it writes again
}

const (
	rememberEvery = 5 * time.Second
	// rememberWithin is how long a process may grant before it writes the file again, even on a busy machine. If it is killed
	// before, what it granted meanwhile still counts.
	rememberWithin = 3 * rememberEvery
	forgetAfter    = 100 * 24 * time.Hour
	memoryForm     = "sluice-log-1 %d %d %d\n"
	maxMemory      = 128 // bytes
)

// WithMemory has the store remember how far each log has come, in files of a directory. engine names the engine, without
// passwords.
func WithMemory(dir, engine string) Option {
	return func(s *Store) {
		s.memories = func(pool string) *memory {
			sum := sha256.Sum256([]byte(engine + "\x00" + pool))
			return &memory{path: filepath.Join(dir, hex.EncodeToString(sum[:12]))}
		}
	}
}

// recall returns what this machine remembers of the log, when the first session opens the pool; nil: nothing. It has to be
// read before the log is: other processes go on meanwhile, and remember more.
func (st *state) recall() *memory {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.store.memories == nil || st.memory != nil {
		return nil
	}
	st.memory = st.store.memories(st.name)
	if known := *st.memory; known.read() {
		return &known
	}
	return nil
}

// misses compares the log with what this machine remembered of it. It reports whether grants that may still count were lost.
func (st *state) misses(known *memory, spec *store.Spec) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	found := &st.found
	switch {
	case known == nil || found.Now.Sub(known.until) > matters(spec):
		return false
	case st.at.Incarnation == known.incarnation:
		return st.at.Offset < known.offset
	case found.Origin.Incarnation == known.incarnation:
		return found.Origin.Offset < known.offset
	}
	return true
}

// matters returns how long earlier grants can still count, over windows of up to ten minutes. A loss is made good only for
// those.
func matters(spec *store.Spec) time.Duration {
	const heeded = 10 * time.Minute
	if len(spec.Limits) == 0 {
		return heeded
	}
	longest := 3 * time.Second
	for i := range spec.Limits {
		l := &spec.Limits[i]
		d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
		span := l.Window
		if err != nil || l.Kind == store.Concurrency {
			continue
		}
		if l.Kind == store.Bucket && l.Size > 0 && l.Burst > l.Size {
			span *= time.Duration(min((l.Burst+l.Size-1)/l.Size, 1<<20))
		}
		if span <= heeded {
			longest = max(longest, span+time.Duration(d.Most)*time.Microsecond)
		}
	}
	return longest
}

// remember writes how far the log has come, unless another process has written more. last means that this one stops using
// the pool.
func (st *state) remember(last bool) {
	st.mu.Lock()
	m := st.memory
	if m == nil || st.at.Incarnation == 0 {
		st.mu.Unlock()
		return
	}
	now := memory{path: m.path, incarnation: st.at.Incarnation, offset: st.at.Offset, until: st.nowAt(st.store.clock.Uptime())}
	same := now.incarnation == m.incarnation && now.offset == m.offset
	*m = now
	st.mu.Unlock()
	if same && !last {
		return
	}
	if !last {
		now.until = now.until.Add(rememberWithin)
	}
	old := memory{path: now.path}
	if old.read() && old.incarnation == now.incarnation {
		if old.offset > now.offset {
			return
		}
		now.until = max(now.until, old.until) // another process may grant until then
	}
	now.write()
}

func (m *memory) read() bool {
	if statedir.NoLink(filepath.Dir(m.path)) != nil {
		return false
	}
	f, err := statedir.Open(m.path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxMemory || time.Since(info.ModTime()) > forgetAfter {
		return false
	}
	n, err := fmt.Fscanf(f, memoryForm, &m.incarnation, &m.offset, &m.until)
	const most = 1 << 62
	return n == 3 && err == nil && m.incarnation > 0 && m.offset >= 0 && m.offset < most && m.until > 0 && m.until < most
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
	_, err = fmt.Fprintf(f, memoryForm, m.incarnation, m.offset, m.until)
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), m.path) != nil {
		_ = os.Remove(f.Name())
	}
}
