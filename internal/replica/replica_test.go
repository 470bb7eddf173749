package replica_test

import (
	"testing"

	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

func openMem(*testing.T) storetest.Harness {
	clock := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(clock)), Advance: clock.Advance}
}

// openLogged returns a store on a log, with three replicas, one of which is restored from a snapshot again and again.
func openLogged(t *testing.T) storetest.Harness {
	j := newJournal(t, 3)
	j.restoreEvery = 5
	return storetest.Harness{Store: newLogged(j, 1), Advance: j.clock.Advance, RemindsLate: true}
}

func TestReplicasDecideAsMemoryDoes(t *testing.T) { storetest.Differential(t, openMem, openLogged) }
