//go:build linux || darwin || windows

package filestore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

func fourLimits() store.Spec {
	return store.Spec{
		Name: "pool",
		Limits: []store.Limit{
			{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 1 << 39, Window: time.Minute},
			{Name: "burst", Kind: store.Bucket, Unit: "tokens", Size: 1 << 34, Burst: 1 << 34, Window: time.Second},
			{Name: "hour", Kind: store.Fixed, Unit: "requests", Size: 1 << 39, Window: time.Hour, Guard: store.GuardOff},
			{Name: "places", Kind: store.Concurrency, Unit: "requests", Size: 1 << 39},
		},
		Classes:    []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		MaxWaiting: 10_000,
		Throttle:   store.Backoff{Start: time.Minute, Factor: 2, Cap: 15 * time.Minute},
		Overload:   store.Backoff{Start: 5 * time.Second, Factor: 2, Cap: time.Minute},
	}
}

// specOf describes a pool with the usual three classes.
func specOf(limits ...store.Limit) store.Spec {
	s := fourLimits()
	s.Limits = limits
	for i := range s.Limits {
		s.Limits[i].Name, s.Limits[i].Unit = fmt.Sprint("limit ", i), "requests"
	}
	return s
}

// ask is an acquire that costs one of every limit.
func ask(agent string, wait, ttl time.Duration) store.Op {
	one := []store.Amount{{Unit: "requests", N: 1}, {Unit: "tokens", N: 1}}
	return store.Op{Kind: store.OpAcquire, Agent: agent, Class: 2, Wait: wait, TTL: ttl, Amounts: one}
}

// waiters lets goroutines wait for tickets of one session.
type waiters struct {
	mu    sync.Mutex
	bells map[store.ID]chan struct{}
	early map[store.ID]bool // told before anybody listened
}

func watch(p store.Pool) *waiters {
	w := &waiters{bells: map[store.ID]chan struct{}{}, early: map[store.ID]bool{}}
	p.Watch(func(ids []store.ID) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, id := range ids {
			if b := w.bells[id]; b != nil {
				delete(w.bells, id)
				close(b)
			} else {
				w.early[id] = true
			}
		}
	})
	return w
}

// decided returns a channel that is closed when a ticket has been decided.
func (w *waiters) decided(id store.ID) <-chan struct{} {
	b := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.early[id] {
		delete(w.early, id)
		close(b)
	} else {
		w.bells[id] = b
	}
	return b
}

// acquire waits for a ticket. A grant that came too late to be collected is asked for again. If ctx
// ends, so does the ticket.
func (w *waiters) acquire(ctx context.Context, p store.Pool, op store.Op) (store.Result, error) {
	for {
		ops := []store.Op{op}
		if err := p.Apply(ctx, ops); err != nil {
			return ops[0].Result, err
		}
		id := ops[0].ID
		for ops[0].Result.State == store.Waiting {
			var err error
			select {
			case <-w.decided(id):
				ops = []store.Op{{Kind: store.OpPoll, ID: id}}
				err = p.Apply(ctx, ops)
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err != nil {
				return ops[0].Result, errors.Join(err, p.Apply(context.WithoutCancel(ctx), []store.Op{{Kind: store.OpCancel, ID: id}}))
			}
		}
		switch r := ops[0].Result; r.State {
		case store.Granted:
			return r, nil
		case store.Refused:
			return r, fmt.Errorf("refused: %v", r.Reason)
		}
	}
}

// fickle is acquire by one who now and then has no time, and asks again.
func (w *waiters) fickle(p store.Pool, op store.Op) (store.Result, error) {
	for rand.IntN(10) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(5*time.Millisecond))
		r, err := w.acquire(ctx, p, op)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return r, err
		}
	}
	return w.acquire(context.Background(), p, op)
}

// task is what a worker has to do.
type task struct {
	Dir   string
	Spec  store.Spec
	Log   string
	Count int           // grants
	Crowd int           // goroutines
	Hold  time.Duration // of a ticket, at most
	TTL   time.Duration
	Name  string
	Wall  string // a file with by how much the time of day is ahead; "": it is right
}

var _ = role("worker", func(k task) {
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	p, err := s.Pool(context.Background(), k.Spec)
	if err != nil {
		giveUp("pool: %v", err)
	}
	w := watch(p)
	k.run(func(agent string, log *journal) {
		r, err := w.fickle(p, ask(agent, patience, k.TTL))
		if err != nil {
			giveUp("acquire: %v", err)
		}
		id := fmt.Sprintf("%x-%d", r.ID.Session, r.ID.N)
		log.add("g", id, int64(r.GrantedAt))
		if k.Hold > 0 {
			time.Sleep(rand.N(k.Hold)) // the request takes its time
		}
		log.add("e", id, int64(p.Now()))
		if err := p.Apply(context.Background(), []store.Op{{Kind: store.OpClose, ID: r.ID}}); err != nil {
			giveUp("close: %v", err)
		}
	})
	if err := s.Close(); err != nil {
		giveUp("close the store: %v", err)
	}
})

// run has one called by a crowd, until as many grants as it has to get are in the log.
func (k *task) run(one func(agent string, log *journal)) {
	log, had := openLog(k.Log)
	var left atomic.Int64
	left.Store(int64(k.Count - had))
	var all sync.WaitGroup
	for i := range k.Crowd {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				one(fmt.Sprintf("%s-%d", k.Name, i), log)
			}
		})
	}
	all.Wait()
}

// journal is a worker's own log: one write per line.
type journal struct{ f *os.File }

// openLog opens a log to go on with it. It returns how many grants are in it already.
func openLog(path string) (*journal, int) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		giveUp("%v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		giveUp("%v", err)
	}
	// A kill can tear a line that crosses a page. What it says was not done yet.
	whole := bytes.LastIndexByte(text, '\n') + 1
	if err := f.Truncate(int64(whole)); err != nil {
		giveUp("%v", err)
	}
	return &journal{f}, bytes.Count(text[:whole], []byte("g "))
}

func (j *journal) add(what, id string, at int64) {
	if _, err := fmt.Fprintf(j.f, "%s %s %d\n", what, id, at); err != nil {
		giveUp("%v", err)
	}
}

// grant is what a log says of one ticket. end is 0 if its holder was killed.
type grant struct {
	id         string
	begin, end int64
}

// readLogs reads what the workers have written.
func readLogs(t testing.TB, dir string) []grant {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var all []grant
	at := map[string]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
			var what, id string
			var when int64
			if n, err := fmt.Sscanf(lines.Text(), "%s %s %d\n", &what, &id, &when); n != 3 || err != nil {
				t.Fatalf("%s: %q: %v", path, lines.Text(), err)
			}
			i, known := at[id]
			switch {
			case what == "g" && known:
				t.Errorf("ticket %s was granted twice", id)
			case what == "g":
				at[id] = len(all)
				all = append(all, grant{id: id, begin: when})
			case !known:
				t.Errorf("ticket %s was closed and never granted", id)
			default:
				all[i].end = when
			}
		}
	}
	return all
}
