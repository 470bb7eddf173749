package memstore_test

import (
	"testing"

	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

func open(*testing.T) storetest.Harness {
	clock := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(clock)), Advance: clock.Advance}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }
