//go:build linux || darwin || windows

package filestore_test

import (
	"flag"
	"testing"

	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil { // make store-suites has more
		panic(err)
	}
	leaktest.Main(m)
}

// clock is the suite's, as a machine's that was never started anew.
type clock struct{ *storetest.Clock }

func (clock) Boot() [16]byte     { return [16]byte{1} }
func (c clock) Wall() store.Time { return c.Now() }

func open(t *testing.T) storetest.Harness {
	c := clock{storetest.NewClock(storetest.Start)}
	s, err := filestore.Open(t.TempDir(), filestore.WithClock(c))
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Harness{Store: s, Advance: c.Advance}
}

func openMem(*testing.T) storetest.Harness {
	c := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(c)), Advance: c.Advance}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestSameDecisionsAsInMemory(t *testing.T) { storetest.Differential(t, openMem, open) }
