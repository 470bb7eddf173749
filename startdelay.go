package sluice

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

// StartDelay returns how long a job should wait before it starts, so that jobs that would start together are spread
// over a window. The first job gets 0, then half of the window, a quarter, three quarters, and so on: each fills the
// widest gap left, across all processes. The delay is always shorter than the window. Jobs of the same resource are
// spread together. StartDelay holds and charges nothing, so a job that does not start does no harm.
//
// The window is at most 24 h; 0 means to start at once.
func (g *Gate) StartDelay(ctx context.Context, resource string, window time.Duration) (time.Duration, error) {
	r, err := g.resource(resource)
	if err != nil {
		return 0, err
	}
	if window < 0 || window > store.MaxTTL {
		e := invalid("%s: a window of %v to spread launches over is out of range: 0 to %v", r.name, window, store.MaxTTL)
		e.Resource = r.name
		return 0, e
	}
	ops := []store.Op{{Kind: store.OpLaunch, Wait: window}}
	if err := r.pool.Apply(ctx, ops); err != nil {
		return 0, r.storeError(err)
	}
	res := &ops[0].Result
	if res.State != store.Granted {
		e := invalid("%s: the store refused to spread launches", r.name)
		e.Resource, e.Reason = r.name, res.Reason.Code.String()
		return 0, e
	}
	return max(res.Reason.At.Sub(res.Now), 0), nil
}
