package redisstore_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
	"github.com/sluicehq/sluice/store/redisstore"
)

// twenty is a pool of 20 requests a minute.
func twenty(oneShot bool) store.Spec {
	backoff := store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}
	return store.Spec{
		Name: "pool", OneShot: oneShot, Classes: []store.Class{{Name: "p0", Weight: 1}}, MaxWaiting: 10, Throttle: backoff, Overload: backoff,
		Limits: []store.Limit{{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 20, Window: time.Minute}},
	}
}

// process opens the pool as another process would, on a machine that remembers in a directory.
func process(t *testing.T, url, dir string, oneShot bool) (take func(n int) (granted int), end func()) {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, logstore.WithMemory(dir, "redis"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Pool(t.Context(), twenty(oneShot))
	if err != nil {
		t.Fatal(err)
	}
	take = func(n int) (granted int) {
		t.Helper()
		for range n {
			ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}}}
			if err := p.Apply(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			if ops[0].Result.State == store.Granted {
				granted++
			}
		}
		return granted
	}
	return take, func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func flush(t *testing.T, s *redisrun.Server) {
	t.Helper()
	if _, err := s.Do(t.Context(), "FLUSHALL"); err != nil {
		t.Fatal(err)
	}
}

// Processes that are there when Redis loses its memory know what was used: that counts exactly, and the rest is granted at once,
// also to a newcomer that comes before they have noticed.
func TestWhatSurvivorsKnowCountsExactly(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	url := s.URL() + "?timeout=20s"
	first, endFirst := process(t, url, t.TempDir(), false)
	defer endFirst()
	second, endSecond := process(t, url, t.TempDir(), false)
	defer endSecond()
	if n := first(6) + second(6); n != 12 {
		t.Fatalf("%d of 12 granted", n)
	}
	flush(t, s)
	newcomer, end := process(t, url, t.TempDir(), true)
	defer end()
	if n := newcomer(20); n != 8 {
		t.Errorf("%d of the 8 that are left were granted to a newcomer", n)
	}
	if n := first(2) + second(2); n != 0 {
		t.Errorf("%d more were granted", n)
	}
}

// Without survivors, a machine that has used the log notices that it is gone. Nobody knows what was used, so nothing goes.
func TestAMachineNoticesWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	url, dir := s.URL()+"?timeout=20s", t.TempDir()
	for _, flushed := range []bool{false, true} {
		if flushed {
			flush(t, s)
		}
		take, end := process(t, url, dir, true)
		want := 5
		if flushed {
			want = 0
		}
		if n := take(5); n != want {
			t.Errorf("flushed %v: %d granted, want %d", flushed, n, want)
		}
		end()
	}
}
