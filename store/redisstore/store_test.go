package redisstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/redisstore"
	"github.com/sluicehq/sluice/store/storetest"
)

var single *redisrun.Server

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-state-") // nothing of the tests is kept in the user's own
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	// A trace takes a Redis a while, and there are four kinds of it; most tests wait more than they work.
	for name, value := range map[string]string{"rapid.checks": "25", "test.parallel": "6"} {
		if !given[name] {
			err = errors.Join(err, flag.Set(name, value))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if single, err = redisrun.Start(redisrun.Options{Lines: []string{"lua-time-limit 60000"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = single.Stop()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var harnesses atomic.Int64

// openAt returns a store with keys of its own on the suite's clock.
func openAt(t *testing.T, url string) storetest.Harness {
	t.Helper()
	c := storetest.NewClock(storetest.Start)
	s, err := redisstore.Open(context.Background(), fmt.Sprintf("%s?timeout=1m&prefix=t%d", url, harnesses.Add(1)), redisstore.WithClock(c))
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Harness{Store: s, Advance: c.Advance}
}

func open(t *testing.T) storetest.Harness { return openAt(t, single.URL()) }

func openMem(*testing.T) storetest.Harness {
	c := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(c)), Advance: c.Advance}
}

func TestStoreOnOneServer(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

// The fast path and the long way give the same results, and either can continue what the other began.
func TestSameDecisionsTheLongWay(t *testing.T) {
	t.Parallel()
	storetest.Differential(t, openMem, func(t *testing.T) storetest.Harness {
		h := open(t)
		h.Store.(*redisstore.Store).GoTheLongWay()
		return h
	})
}

func TestSameDecisionsOnOneServer(t *testing.T) {
	t.Parallel()
	storetest.Differential(t, openMem, open)
}
