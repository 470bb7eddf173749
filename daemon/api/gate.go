package api

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// The methods below offer the gate to other parts of the daemon, such as MCP. They include the pools of the store that
// the configuration does not name. Callers must check access themselves.

// Why lists the requests that wait for a resource, in order.
func (a *API) Why(ctx context.Context, resource string) (list []inspect.Waiting, err error) {
	err = a.at(ctx, resource, func(g *sluice.Gate) (err error) {
		list, err = g.Why(ctx, resource)
		return err
	})
	return list, err
}

// Pause holds all callers of a resource.
func (a *API) Pause(ctx context.Context, resource string, d time.Duration, reason string) error {
	defer a.others.forget()
	return a.at(ctx, resource, func(g *sluice.Gate) error { return g.Pause(ctx, resource, d, reason) })
}

// Resume ends every pause of a resource.
func (a *API) Resume(ctx context.Context, resource string) error {
	defer a.others.forget()
	return a.at(ctx, resource, func(g *sluice.Gate) error { return g.Resume(ctx, resource) })
}
