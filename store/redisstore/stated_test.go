package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
	"github.com/sluicehq/sluice/store/storetest"
)

// After three processes made a limit smaller and then larger again, it stayed small until one of them was alone.
func TestSizesOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	storetest.FleetSizes(t, func(t *testing.T) storetest.Fleet {
		c := storetest.NewClock(storetest.Start)
		url := fmt.Sprintf("%s?timeout=1m&prefix=t%d", single.URL(), harnesses.Add(1))
		return storetest.Fleet{Advance: c.Advance, Start: func() storetest.Process {
			s, err := redisstore.Open(context.Background(), url, redisstore.WithClock(c))
			if err != nil {
				t.Fatal(err)
			}
			return storetest.Process{Store: s, Beat: s.Uphold, Kill: s.Kill}
		}}
	})
}

func (m *member) size() int64 {
	m.Helper()
	s, err := m.pool.Snapshot(context.Background())
	if err != nil || len(s.Limits) != 1 {
		m.Fatalf("%+v %v", s.Limits, err)
	}
	return s.Limits[0].Size
}

func (m *member) grows(size int64) {
	m.Helper()
	for until := time.Now().Add(time.Minute); m.size() != size; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			m.Fatalf("the size is %d after a minute, want %d", m.size(), size)
		}
	}
}

// Members on the server's clock settle the size by themselves.
func TestALimitGrowsWhenAMemberLeaves(t *testing.T) {
	t.Parallel()
	url := fmt.Sprintf("%s?prefix=t%d", single.URL(), harnesses.Add(1))
	a := join(t, url, poolOf(perMinute(9)))
	b := join(t, url, poolOf(perMinute(4)))
	join(t, url, poolOf(perMinute(7)))
	if n := a.size(); n != 4 {
		t.Fatalf("the size is %d", n)
	}
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	a.grows(7)
	once := join(t, url, passing(perMinute(2)))
	ticket := once.take(1) // a command counts only while it has one: a member that settled the size meanwhile may have raised it again
	for tries := 0; a.size() != 2; tries++ {
		if tries == 10 {
			t.Fatalf("the size is %d beside a command that states 2", a.size())
		}
		once.open(passing(perMinute(2)))
	}
	once.close(ticket)
	if err := once.store.Close(); err != nil {
		t.Fatal(err)
	}
	a.grows(7)
}

// While a process of a version without statements is in touch, limits do not grow.
func TestLimitsDoNotGrowBesideAnEarlierVersion(t *testing.T) {
	t.Parallel()
	prefix := fmt.Sprintf("t%d", harnesses.Add(1))
	c := storetest.NewClock(storetest.Start)
	start := func(size int64) (*redisstore.Store, store.Pool) {
		s, err := redisstore.Open(t.Context(), single.URL()+"?timeout=1m&prefix="+prefix, redisstore.WithClock(c))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		p, err := s.Pool(t.Context(), poolOf(perMinute(size)))
		if err != nil {
			t.Fatal(err)
		}
		return s, p
	}
	mine, p := start(9)
	_, old := start(4)
	do(t, single, "DEL", prefix+":{x}:stated")
	mine.Uphold()
	touch := func(leaves bool) {
		t.Helper()
		c.Advance(time.Second)
		if err := old.Apply(t.Context(), []store.Op{{Kind: store.OpTouch, Spent: leaves}}); err != nil {
			t.Fatal(err)
		}
		mine.Uphold()
	}
	size := func() int64 {
		t.Helper()
		s, err := p.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Limits[0].Size
	}
	for range 20 {
		touch(false)
	}
	if n := size(); n != 4 {
		t.Errorf("the size is %d", n)
	}
	for range 20 {
		touch(true)
	}
	if n := size(); n != 9 {
		t.Errorf("the size is %d when it has left", n)
	}
}
