package logstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// countedEngine counts the entries of a process.
type countedEngine struct {
	sharedlog.Engine
	*counts
}

type counts struct{ under, most, all atomic.Int64 }

type countedLog struct {
	sharedlog.Log
	*counts
}

func (e countedEngine) Log(pool string) sharedlog.Log {
	return countedLog{e.Engine.Log(pool), e.counts}
}

func (l countedLog) Append(ctx context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	l.most.Store(max(l.most.Load(), l.under.Add(1)))
	l.all.Add(1)
	defer l.under.Add(-1)
	return l.Log.Append(ctx, at, entry)
}

// However many callers a process has, one entry of it is under way at a time, and the requests that come meanwhile share the next.
func TestOneEntryAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, each, trip = 1000, 5, 20 * time.Millisecond
		var c counts
		engine := countedEngine{world.New(1).Server().ConnectOver(world.Line{Delay: trip / 2}), &c}
		s := logstore.New(engine, logstore.WithClock(uptime(1)), logstore.WithTouch(0))
		p, err := s.Pool(t.Context(), stormSpec())
		if err != nil {
			t.Fatal(err)
		}
		before, began := c.all.Load(), time.Now()
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for range each {
					ops := []store.Op{{Kind: store.OpAcquire, Agent: fmt.Sprint("agent", i), TTL: time.Minute}}
					if err := p.Apply(t.Context(), ops); err != nil || ops[0].Result.State != store.Granted {
						t.Errorf("%v %v", ops[0].Result.State, err)
					}
				}
			})
		}
		all.Wait()
		entries, trips := c.all.Load()-before, int64(time.Since(began)/trip)
		if c.most.Load() != 1 || entries > trips+1 || entries > 2*each+2 {
			t.Errorf("%d entries in %d round trips, up to %d at a time", entries, trips, c.most.Load())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
