package replica_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/storetest"
)

// journal is a log of one pool in memory, with replicas that apply every entry at once.
type journal struct {
	t        testing.TB
	clock    *storetest.Clock
	offset   int64
	replicas []*replica.Replica

	// restoreEvery has the last replica replaced by one from a snapshot, after so many entries.
	restoreEvery, entries int
}

func newJournal(t testing.TB, replicas int) *journal {
	j := &journal{t: t, clock: storetest.NewClock(storetest.Start)}
	for range replicas {
		j.replicas = append(j.replicas, replica.New())
	}
	return j
}

// append gives an entry to all replicas and returns what the first made of it.
func (j *journal) append(body []byte) replica.Applied {
	j.offset += sharedlog.FrameSize(len(body))
	e := sharedlog.Entry{Body: body, Stamp: j.clock.Now()}
	e.At = sharedlog.Position{Incarnation: 1, Offset: j.offset, Stamp: e.Stamp}
	first := j.replicas[0].Apply(e)
	for i, r := range j.replicas[1:] {
		did := r.Apply(e)
		if did.Diverged || (did.Err == nil) != (first.Err == nil) || len(did.Ops) != len(first.Ops) || r.Hash() != j.replicas[0].Hash() {
			j.t.Errorf("replica %d: %+v, the first: %+v", i+1, did, first)
		}
	}
	j.entries++
	if last := len(j.replicas) - 1; j.restoreEvery > 0 && j.entries%j.restoreEvery == 0 {
		r, err := replica.Restore(j.replicas[last].AppendSnapshot(nil))
		if err != nil {
			j.t.Fatal(err)
		}
		j.replicas[last] = r
	}
	return first
}

// alike fails the test if the replicas differ in a byte.
func (j *journal) alike() {
	want := j.replicas[0].AppendSnapshot(nil)
	for i, r := range j.replicas[1:] {
		if got := r.AppendSnapshot(nil); !bytes.Equal(got, want) {
			j.t.Fatalf("replica %d differs: %d bytes, the first %d", i+1, len(got), len(want))
		}
	}
}

// uptime is the reading of the only machine's monotonic clock.
func (j *journal) uptime() time.Duration { return j.clock.Now().Sub(storetest.Start) + time.Hour }

// logged is a store of one process on a journal.
type logged struct {
	j *journal
	w *replica.Writer

	mu       sync.Mutex
	id       uint64
	last     uint64
	sessions map[uint64]*loggedPool
	timer    interface {
		Reset(time.Duration)
		Stop()
	}
	closed bool
}

var (
	_ store.Pool     = (*loggedPool)(nil)
	_ store.Recorder = (*loggedPool)(nil)
	_ store.Foreseer = (*loggedPool)(nil)
)

func newLogged(j *journal, n uint64) *logged {
	id := replica.ProcessID(n << 40)
	return &logged{j: j, w: replica.NewWriter(replica.Identity{Process: id, Machine: 7}), id: id, sessions: map[uint64]*loggedPool{}}
}

// ask appends an entry. The caller holds the lock, which ask gives back to tell sessions of their tickets.
func (s *logged) ask(requests ...replica.Request) replica.Applied {
	r := s.j.replicas[0]
	body, err := s.w.Append(nil, r, s.j.uptime(), requests)
	if err != nil {
		s.j.t.Fatal(err)
	}
	did := s.j.append(body)
	if did.Err != nil {
		s.j.t.Fatal(did.Err)
	}
	k := 0
	for _, q := range requests {
		for i := range q.Ops {
			q.Ops[i].ID, q.Ops[i].Result = did.Ops[k].ID, did.Ops[k].Result
			k++
		}
	}
	told := map[*loggedPool][]store.ID{}
	for _, id := range did.Decided {
		if h := s.sessions[id.Session]; h != nil && h.decided != nil {
			told[h] = append(told[h], id)
		}
	}
	if at, _ := r.Wake(); at != 0 {
		d := at.Sub(s.j.clock.Now())
		if s.timer == nil {
			s.timer = s.j.clock.AfterFunc(d, s.tick)
		} else {
			s.timer.Reset(d)
		}
	}
	s.mu.Unlock()
	for h, ids := range told {
		h.decided(ids)
	}
	s.mu.Lock()
	return did
}

func (s *logged) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.ask()
	}
}

func (s *logged) Pool(_ context.Context, spec store.Spec) (store.Pool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	s.last++
	h := &loggedPool{s: s, session: replica.SessionOf(s.id, s.last)}
	if did := s.ask(replica.Request{Kind: replica.Open, Session: h.session, Spec: &spec}); did.Errs[0] != nil {
		return nil, did.Errs[0]
	}
	s.sessions[h.session] = h
	return h, nil
}

func (s *logged) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.j.alike()
	return nil
}

type loggedPool struct {
	s       *logged
	session uint64
	decided func([]store.ID)
	closed  bool
}

func (h *loggedPool) Apply(_ context.Context, ops []store.Op) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.closed || h.closed {
		return store.ErrClosed
	}
	h.s.ask(replica.Request{Session: h.session, Ops: ops})
	return nil
}

func (h *loggedPool) Snapshot(context.Context) (store.Snapshot, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.closed || h.closed {
		return store.Snapshot{}, store.ErrClosed
	}
	h.s.ask()
	return h.s.j.replicas[0].Pool().View().Snapshot(h.Now()), nil
}

func (h *loggedPool) History(_ context.Context, since store.Time) (store.History, error) {
	return h.s.j.replicas[0].Pool().History(h.Now(), since), nil
}

func (h *loggedPool) Foresee(_ context.Context, ops []store.Op, _ time.Duration) error {
	return h.s.j.replicas[0].Pool().Foresee(h.Now(), h.session, ops)
}

func (h *loggedPool) Watch(decided func([]store.ID)) { h.decided = decided }
func (h *loggedPool) Now() store.Time                { return h.s.j.clock.Now() }

func (h *loggedPool) Close() error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.closed {
		return nil
	}
	did := h.s.ask(replica.Request{Kind: replica.Close, Session: h.session})
	h.closed = true
	delete(h.s.sessions, h.session)
	return did.Errs[0]
}
