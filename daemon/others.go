package daemon

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
)

// others opens the store's pools that the generation's gate does not use, for reading: one, or all if resource is
// empty.
func (g *generation) others(ctx context.Context, resource string) (*sluice.Gate, error) {
	c := sluice.Config{
		Store: g.gate.Store(), ReadOnly: true, Leases: sluice.Leases{Off: true}, Provider: g.file.ProviderOf,
		Others: func(pool string) string {
			name := pool
			if _, taken := g.file.Resources[pool]; taken {
				name += inspect.GatePool
			}
			if inside.Of(g.gate).Uses(pool) || resource != "" && resource != name {
				return ""
			}
			return name
		},
	}
	if resource != "" { // the caller may pause or resume it
		c.Events = g.daemon.options.Tell
	}
	return sluice.OpenWithStore(ctx, g.daemon.options.Store, c)
}

// report returns what was sent since a moment, to every pool in the store. It leaves out pools that the configuration
// does not name and that cannot be read.
func (g *generation) report(ctx context.Context, since time.Time) (inspect.Report, error) {
	gates := []*sluice.Gate{g.gate}
	if g.daemon.options.Store != nil {
		if more, err := g.others(ctx, ""); err == nil {
			defer func() { _ = more.Close() }() // it was only read
			gates = append(gates, more)
		}
	}
	return g.daemon.options.Report(ctx, gates, since)
}

// othersEvery is how often watchOthers reads the states of pools that the configuration does not name.
const othersEvery = 5 * time.Second

// watchOthers emits an event when a pool that the configuration does not name gets into trouble or out of it. It runs
// until ctx ends.
func (d *Daemon) watchOthers(ctx context.Context) {
	if d.options.Store == nil || d.options.Tell == nil {
		return
	}
	tick := time.NewTicker(othersEvery)
	defer tick.Stop()
	known := troubles{}
	for {
		g := d.enter()
		status := g.api.OthersStatus(ctx)
		g.leave()
		known.tell(status.Resources, time.Now(), d.options.Tell)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// troubles holds the last known state of each resource, and since when.
type troubles map[string]stateSince

type stateSince struct {
	state string
	since time.Time
}

// tell emits an event for each change from or to a state of trouble.
func (t troubles) tell(resources []inspect.ResourceStatus, now time.Time, tell func(inspect.Event)) {
	for i := range resources {
		r := &resources[i]
		was, seen := t[r.Name]
		if !seen {
			was = stateSince{inspect.StateIdle, now}
		}
		if was.state == r.State && seen {
			continue
		}
		t[r.Name] = stateSince{r.State, now}
		if inspect.IsTrouble(r.State) || inspect.IsTrouble(was.state) {
			tell(inspect.Event{
				Time: now.UTC(), Kind: inspect.EventState, Resource: r.Name, State: r.State, Was: was.state, Reason: r.Reason, Until: r.Until,
				ForMS: now.Sub(was.since).Milliseconds(),
			})
		}
	}
}
