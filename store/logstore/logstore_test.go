package logstore_test

import (
	"testing"

	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store/logstore"
	"github.com/sluicehq/sluice/store/storetest"
)

func TestStoreOnTheModel(t *testing.T) {
	t.Parallel()
	storetest.RunVirtual(t, openModel)
}

func TestStoreWithAProcessForEachSession(t *testing.T) {
	t.Parallel()
	storetest.RunVirtual(t, func(*testing.T) storetest.Harness {
		s, machine := serverAt(world.New(1)), uint64(0)
		a := &apart{open: func() *logstore.Store {
			machine++
			return logstore.New(s.Connect(), logstore.WithClock(uptime(machine)), logstore.Passive())
		}}
		return storetest.Harness{Store: a, Advance: advance}
	})
}

func TestSameDecisionsOnTheModel(t *testing.T) {
	t.Parallel()
	storetest.DifferentialVirtual(t, openMem, func(t *testing.T) storetest.Harness {
		h := openModel(t)
		h.Store = storetest.Stepped{Store: h.Store}
		return h
	})
}
