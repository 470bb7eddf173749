package logstore

import (
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// Image returns the replica of a pool as bytes, and its place in the log.
func (s *Store) Image(pool string) (image, at string) {
	s.mu.Lock()
	st := s.pools[pool]
	s.mu.Unlock()
	b, p := st.snapshot()
	return string(b), p.Moved(0).String()
}

// Counts returns how often replicas diverged or failed, how often the log was lost, and how many snapshots were written.
func (s *Store) Counts() (diverged, poisoned, lost, snapshots int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.pools {
		st.mu.Lock()
		c := &st.counts
		diverged, poisoned, lost, snapshots = diverged+c.of[store.NoticeDiverged], poisoned+c.of[store.NoticePoisoned], lost+c.of[store.NoticeLost]+c.of[store.NoticeEvicted], snapshots+c.snapshots
		st.mu.Unlock()
	}
	return diverged, poisoned, lost, snapshots
}

// Open describes the requests that are granted, for failed tests.
func (s *Store) Open(name string) []store.Op {
	s.mu.Lock()
	st := s.pools[name]
	s.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	core := st.rep.Pool()
	fresh, err := pool.New(core.Stated(), st.rep.Now())
	if err != nil {
		return nil
	}
	return fresh.Missing(core.View(), st.rep.Now(), 1, st.mine)
}

// Entries returns how many entries this process has written, up to 65,536.
func (s *Store) Entries(pool string) int {
	s.mu.Lock()
	st := s.pools[pool]
	s.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	m, _ := st.rep.Member(st.process)
	return int(m.Sequence)
}
