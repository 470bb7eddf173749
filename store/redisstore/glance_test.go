package redisstore_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/reading"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// A daemon with thousands of agents spent its time reading the pool, for each view anew.
func TestGlancesAtALargePoolShareAReading(t *testing.T) {
	server := redisrun.New(t)
	m := join(t, server.URL(), poolOf(perMinute(1<<30)))
	const agents = 3000
	var last store.ID
	for at := 0; at < agents; at += 250 {
		ops := make([]store.Op, 250)
		for i := range ops {
			ops[i] = store.Op{Kind: store.OpAcquire, Agent: fmt.Sprint("agent-", at+i), TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}}
		}
		if err := m.pool.Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		last = ops[len(ops)-1].Result.ID
	}
	readings := func() int {
		t.Helper()
		text, err := server.Do(t.Context(), "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if found := regexp.MustCompile(`cmdstat_hgetall:calls=(\d+)`).FindStringSubmatch(text); found != nil {
			n, _ = strconv.Atoi(found[1])
		}
		return n
	}
	before := readings()
	const glances = 20
	var views sync.WaitGroup
	for range glances {
		views.Go(func() {
			if s, err := store.Can(m.pool).Glancer.Glance(t.Context()); err != nil || s.InFlight != agents {
				t.Errorf("%d in flight: %v", s.InFlight, err)
			}
		})
	}
	views.Wait()
	if n := readings() - before; n == 0 || n >= glances {
		t.Errorf("%d glances took %d readings", glances, n)
	}
	if err := m.pool.Apply(t.Context(), []store.Op{{Kind: store.OpClose, ID: last}}); err != nil {
		t.Fatal(err)
	}
	if s, err := m.pool.Snapshot(t.Context()); err != nil || s.InFlight != agents-1 {
		t.Errorf("a snapshot after a close has %d in flight: %v", s.InFlight, err)
	}
	for _, pauses := range []int{1, 0} { // a caller sees its own pause, and that it has ended it
		op := store.Op{Kind: store.OpPause, RetryAfter: time.Hour}
		if pauses == 0 {
			op = store.Op{Kind: store.OpResume}
		}
		if err := m.pool.Apply(t.Context(), []store.Op{op}); err != nil {
			t.Fatal(err)
		}
		s, err := store.Can(m.pool).Glancer.Glance(t.Context())
		paused := slices.ContainsFunc(s.Gates, func(g store.PauseState) bool { return g.Phase == "paused" })
		if err != nil || paused != (pauses > 0) {
			t.Errorf("paused is %v, want %d pauses: %v", paused, pauses, err)
		}
	}
}

// On a busy machine a reading took longer than the age that was allowed, and no view shared it.
func TestASlowReadingIsShared(t *testing.T) {
	for _, c := range []struct {
		sinceEnd, took time.Duration
		use            reading.Use
	}{
		{200 * time.Millisecond, 30 * time.Millisecond, reading.Keep},
		{400 * time.Millisecond, 30 * time.Millisecond, reading.Renew},
		{900 * time.Millisecond, 500 * time.Millisecond, reading.Keep},
		{1100 * time.Millisecond, 500 * time.Millisecond, reading.Renew},
		{3100 * time.Millisecond, 500 * time.Millisecond, reading.Refuse},
		{2 * time.Second, 3 * time.Second, reading.Keep},
		{4 * time.Second, 3 * time.Second, reading.Renew},
		{10 * time.Second, 3 * time.Second, reading.Refuse},
	} {
		if use := redisstore.ShareReading(c.sinceEnd, c.took); use != c.use {
			t.Errorf("%v after a reading of %v: %d, want %d", c.sinceEnd, c.took, use, c.use)
		}
	}
}
