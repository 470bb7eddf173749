//go:build linux || darwin || windows

package filestore_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

const stormWorkers = 8

// storm is many processes on one pool, of which one after the other is killed at any moment and
// started again, until all work is done.
type storm struct {
	role   string
	task   task
	look   func(*testing.T) rest // at the pool, as a process that comes fresh
	window time.Duration         // the longest
	every  time.Duration
	wound  func(*child) // what is done to a process every so often; nil: it is killed
	hurt   int
}

// rest is what is left of a storm.
type rest struct {
	waiting, inFlight int
	used, sent        int64
}

func (s *storm) run(t *testing.T) []grant {
	t.Helper()
	s.task.Dir, s.task.Count = filepath.Join(t.TempDir(), "store"), scaled(t, s.task.Count)
	logs := t.TempDir()
	workers := make([]*child, stormWorkers)
	begin := func(i int) *child {
		k := s.task
		k.Name, k.Log = fmt.Sprint("worker ", i), filepath.Join(logs, fmt.Sprintf("%d.log", i))
		return start(t, s.role, k)
	}
	for i := range workers {
		workers[i] = begin(i)
	}
	end := time.After(patience)
	for busy := slices.Clone(workers); len(busy) > 0; {
		select {
		case <-end:
			t.Fatalf("not done after %v: %d grants, %+v", patience, len(readLogs(t, logs)), s.look(t))
		case <-time.After(rand.N(s.every)):
		}
		k := rand.IntN(len(workers))
		if c := workers[k]; c != nil {
			if s.wound != nil {
				s.hurt++
				s.wound(c)
			} else if c.kill(); killed(c.cmd.ProcessState) {
				s.hurt++
				s.look(t) // the next one finds everything in order
				workers[k] = begin(k)
			}
		}
		busy = busy[:0]
		for i, c := range workers {
			if c == nil {
				continue
			}
			select {
			case <-c.done:
				if state := c.wait(); state.Success() {
					workers[i] = nil
					continue
				}
				t.Fatalf("worker %d: %v\n%s", i, c.cmd.ProcessState, c.errs)
			default:
				busy = append(busy, c)
			}
		}
	}
	grants := readLogs(t, logs)
	if want := stormWorkers * s.task.Count; len(grants) < want {
		t.Errorf("%d grants, want %d", len(grants), want)
	}
	s.settles(t, len(grants))
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.begin, b.begin) })
	took := time.Duration(grants[len(grants)-1].begin-grants[0].begin) * time.Microsecond
	t.Logf("%d grants in %v, %d processes hurt", len(grants), took, s.hurt)
	return grants
}

// lookAt looks at the pool by the store's contract.
func (s *storm) lookAt(t *testing.T) (r rest) {
	t.Helper()
	st, err := filestore.Open(s.task.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p, err := st.Pool(context.Background(), s.task.Spec)
	if err != nil {
		t.Fatalf("after %d kills: %v", s.hurt, err)
	}
	snap, err := p.Snapshot(context.Background())
	if err != nil {
		t.Fatalf("after %d kills: %v", s.hurt, err)
	}
	for _, n := range snap.Waiting {
		r.waiting += n
	}
	for _, l := range snap.Limits {
		r.used += l.Used
	}
	r.inFlight, r.sent = snap.InFlight, snap.Counters.Sent
	return r
}

// settles waits until nothing is left of the storm: it must be so once all times to live and
// windows are over.
func (s *storm) settles(t *testing.T, granted int) {
	t.Helper()
	var r rest
	eventually(t, s.task.TTL+2*s.window+patience, "at rest", func() bool {
		r = s.look(t)
		return r.waiting == 0 && r.inFlight == 0 && r.used == 0
	})
	if r.sent < int64(granted) {
		t.Errorf("the store knows of %d grants, the workers of %d", r.sent, granted)
	}
}

// newStorm is a storm of workers that use the store by its contract.
func newStorm(count, crowd int, hold, ttl time.Duration, limits ...store.Limit) *storm {
	s := &storm{role: "worker", every: 50 * time.Millisecond}
	s.task = task{Spec: specOf(limits...), Count: count, Crowd: crowd, Hold: hold, TTL: ttl}
	s.look = s.lookAt
	for _, l := range limits {
		s.window = max(s.window, l.Window)
	}
	return s
}

// checkRolling: no window has more than size of them. The times are sorted.
func checkRolling(t *testing.T, times []int64, size int, window time.Duration) {
	t.Helper()
	w, worst := window.Microseconds(), 0
	for i, j := 0, 0; i < len(times); i++ {
		for times[i]-times[j] >= w {
			j++
		}
		worst = max(worst, i-j+1)
	}
	t.Logf("at most %d of %d in any %v", worst, size, window)
	if worst > size {
		t.Errorf("%d in one window of %v, of which the limit is %d", worst, window, size)
	}
}

func begins(grants []grant) []int64 {
	times := make([]int64, len(grants))
	for i, g := range grants {
		times[i] = g.begin
	}
	return times
}

func TestStormOnARollingWindow(t *testing.T) {
	t.Parallel()
	const size, window = 2000, 250 * time.Millisecond
	s := newStorm(2000, 6, 0, time.Second, store.Limit{Kind: store.Rolling, Size: size, Window: window, Guard: store.GuardOff})
	checkRolling(t, begins(s.run(t)), size, window)
}

func TestStormOnABucket(t *testing.T) {
	t.Parallel()
	const size, burst, window = 8000, 300, time.Second
	s := newStorm(2000, 6, 0, time.Second, store.Limit{Kind: store.Bucket, Size: size, Burst: burst, Window: window, Guard: store.GuardOff})
	// The level is kept in parts of which one request has as many as a window has microseconds.
	const one = int64(window / time.Microsecond)
	times := begins(s.run(t))
	level, last, worst := int64(0), times[0], int64(0)
	for _, at := range times {
		level = max(0, level-(at-last)*size) + one
		last, worst = at, max(worst, level)
	}
	t.Logf("at most %d of %d at once", (worst+one-1)/one, burst)
	if worst > burst*one {
		t.Errorf("%d.%06d at once in a bucket of %d", worst/one, worst%one, burst)
	}
}

func TestStormOnAFixedWindow(t *testing.T) {
	t.Parallel()
	const size, window = 2000, 250 * time.Millisecond
	reset := store.Time(time.Now().UnixMicro())
	s := newStorm(2000, 6, 0, time.Second, store.Limit{Kind: store.Fixed, Size: size, Window: window, Guard: store.GuardOff, Reset: reset})
	in := map[int64]int{}
	for _, at := range begins(s.run(t)) {
		k := (at - int64(reset)) / window.Microseconds()
		if in[k]++; in[k] == size+1 {
			t.Errorf("more than %d in the window from %d on", size, int64(reset)+k*window.Microseconds())
		}
	}
}

func TestStormOnPlaces(t *testing.T) {
	t.Parallel()
	const size = 24
	s := newStorm(2000, 6, 2*time.Millisecond, 300*time.Millisecond, store.Limit{Kind: store.Concurrency, Size: size, Guard: store.GuardOff})
	checkPlaces(t, s.run(t), size, s.task.TTL)
}

// checkPlaces: never more than size are held, none of them for longer than its time to live: a busy machine can hold a process up for so
// long, and those of killed processes are over then.
func checkPlaces(t *testing.T, grants []grant, size int, ttl time.Duration) {
	t.Helper()
	type edge struct {
		at   int64
		more int
	}
	var edges []edge
	for _, g := range grants {
		end := g.begin + ttl.Microseconds()
		if g.end != 0 {
			end = min(end, g.end)
		}
		edges = append(edges, edge{g.begin, 1}, edge{max(end, g.begin), -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	held, most := 0, 0
	for _, e := range edges {
		held += e.more
		most = max(most, held)
	}
	t.Logf("at most %d of %d held", most, size)
	if most > size {
		t.Errorf("%d places of %d were held at once", most, size)
	}
}
