package daemon

import (
	"context"
	"sync"

	"github.com/sluicehq/sluice/internal/inside"
)

// watch makes the gate of the configuration in force report changes of state. It returns a function that stops it.
func (d *Daemon) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			g := d.now.Load()
			until, end := context.WithCancel(ctx)
			context.AfterFunc(g.over, end)
			inside.Of(g.gate).WatchStates(until)
			end()
		}
	})
	done.Go(func() { d.watchOthers(ctx) })
	return func() {
		cancel()
		done.Wait()
	}
}
