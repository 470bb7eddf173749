package redisstore_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
	"github.com/sluicehq/sluice/store/storetest"
)

func TestProf(t *testing.T) {
	s, err := redisstore.Open(context.Background(), os.Getenv("PROF_URL")+"?prefix=speed&timeout=30s", redisstore.WithClock(storetest.NewClock(storetest.Start)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spec := store.Spec{
		Name: "x", Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}}, MaxWaiting: 1000,
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}, Overload: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Limits: []store.Limit{{Name: "l", Kind: store.Bucket, Burst: 1000000, Unit: "requests", Size: 1000000, Window: time.Second}},
	}
	p, err := s.Pool(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	batch := 1
	if os.Getenv("PROF_BATCH") != "" {
		batch = 64
	}
	n, _ := strconv.Atoi(os.Getenv("PROF_N"))
	for range n {
		ops := make([]store.Op, batch)
		for i := range ops {
			ops[i] = store.Op{Kind: store.OpAcquire, Agent: "a", Class: 1, TTL: time.Minute}
			ops[i].Amounts[0] = 1
		}
		if err := p.Apply(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
		for i := range ops {
			ops[i] = store.Op{Kind: store.OpClose, ID: ops[i].ID}
		}
		if err := p.Apply(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
	}
}
