package sluice

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

// StartDelay returns how long a job should wait before it starts, so that jobs that would start together are spread
// over a window. The first job gets 0, then half of the window, a quarter, three quarters, and so on: each fills the
// widest gap left, across all processes. The delay is always shorter than the window. Jobs of the same resource are
// spread together; so are all jobs of the store that name none. StartDelay holds and charges nothing, so a job that
// does not start does no harm.
//
// The window is at most 24 h; 0 means to start at once.
func (g *Gate) StartDelay(ctx context.Context, resource string, window time.Duration) (time.Duration, error) {
	if resource == "" {
		pool, err := g.fleetPool(ctx)
		if err != nil {
			return 0, err
		}
		return startDelay(ctx, pool, "", window, g.storeError)
	}
	r, err := g.resource(resource)
	if err != nil {
		return 0, err
	}
	return startDelay(ctx, r.pool, r.name, window, r.storeError)
}

func startDelay(ctx context.Context, pool store.Pool, resource string, window time.Duration, storeError func(error) error) (time.Duration, error) {
	bad := func(format string, args ...any) *Error {
		e := invalid(format, args...)
		if e.Resource = resource; resource != "" {
			e.Message = resource + ": " + e.Message
		}
		return e
	}
	if window < 0 || window > store.MaxTTL {
		return 0, bad("a window of %v to spread launches over is out of range: 0 to %v", window, store.MaxTTL)
	}
	ops := []store.Op{{Kind: store.OpLaunch, Wait: window}}
	if err := pool.Apply(ctx, ops); err != nil {
		return 0, storeError(err)
	}
	res := &ops[0].Result
	if res.State != store.Granted {
		e := bad("the store refused to spread launches")
		e.Reason = res.Reason.Code.String()
		return 0, e
	}
	return max(res.Reason.At.Sub(res.Now), 0), nil
}
