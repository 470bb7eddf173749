package logstore

// Image returns the replica of a pool as bytes, after reading what others have appended.
func (s *Store) Image(pool string) string {
	s.mu.Lock()
	st := s.pools[pool]
	s.mu.Unlock()
	b, _ := st.snapshot()
	return string(b)
}

// Counts returns how often replicas diverged or failed, how often the log was lost, and how many snapshots were written.
func (s *Store) Counts() (diverged, poisoned, lost, snapshots int64) {
	c := &s.counts
	return c.divergences.Load(), c.poisoned.Load(), c.losses.Load(), c.snapshots.Load()
}
