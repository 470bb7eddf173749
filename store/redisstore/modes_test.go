package redisstore_test

import (
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store/storetest"
)

// The same on a cluster, whose nodes each have a part of the pools, and behind sentinels.
func TestStoreOnACluster(t *testing.T) {
	c := redisrun.NewCluster(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness { return openAt(t, c.URL()) })
}

func TestSameDecisionsOnACluster(t *testing.T) {
	c := redisrun.NewCluster(t)
	storetest.Differential(t, openMem, func(t *testing.T) storetest.Harness { return openAt(t, c.URL()) })
}

func TestStoreBehindSentinels(t *testing.T) {
	s := redisrun.NewSentinel(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness { return openAt(t, s.URL()) })
}

func TestSameDecisionsBehindSentinels(t *testing.T) {
	s := redisrun.NewSentinel(t)
	storetest.Differential(t, openMem, func(t *testing.T) storetest.Harness { return openAt(t, s.URL()) })
}
