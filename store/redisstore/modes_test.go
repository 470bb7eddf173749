package redisstore_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store/storetest"
)

// The store suite on a cluster, and behind sentinels.
func TestStoreOnACluster(t *testing.T) {
	t.Parallel()
	c := redisrun.NewCluster(t, "cluster-node-timeout 60000", "lua-time-limit 60000") // nobody dies here
	storetest.Run(t, func(t *testing.T) storetest.Harness { return openAt(t, c.URL()) })
}

func TestSameDecisionsOnACluster(t *testing.T) {
	t.Parallel()
	c := redisrun.NewCluster(t, "cluster-node-timeout 60000", "lua-time-limit 60000") // nobody dies here
	storetest.Differential(t, openMem, func(t *testing.T) storetest.Harness { return openAt(t, c.URL()) })
}

func TestStoreBehindSentinels(t *testing.T) {
	t.Parallel()
	s := redisrun.NewSteadySentinel(t, "lua-time-limit 60000")
	storetest.Run(t, func(t *testing.T) storetest.Harness { return openAt(t, s.URL()) })
}

func TestSameDecisionsBehindSentinels(t *testing.T) {
	t.Parallel()
	s := redisrun.NewSteadySentinel(t, "lua-time-limit 60000")
	storetest.Differential(t, openMem, func(t *testing.T) storetest.Harness { return openAt(t, s.URL()) })
}

// Without functions, as before Redis 7, the source runs as a script and keeps nothing in memory.
func TestSameDecisionsWithoutFunctions(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	if _, err := s.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "~*", "&*", "+@all", "-function", "-fcall"); err != nil {
		t.Fatal(err)
	}
	url := "redis://plain:secret@" + s.Addr()
	storetest.Differential(t, openMem, func(t *testing.T) storetest.Harness { return openAt(t, url) })
	stats, err := s.Do(t.Context(), "INFO", "commandstats")
	if err != nil || !strings.Contains(stats, "cmdstat_evalsha:calls=") {
		t.Errorf("no script was run: %v", err)
	}
}
