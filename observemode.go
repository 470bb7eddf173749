package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// Mode observe sends every request once and unchanged, and stores nothing that could hold a request.
//
// Its resource has a pool of its own. There the gate counts as it would in mode gate, so it can tell which requests
// would have waited. Charges, agents and learned limits in that pool hold no request: all grants there are forced, and
// mode gate uses another pool. Refusals are counted and cause no pause.
//
// The store must not delay requests either. It has observeWithin to grant, and ok answers and the ends of tickets are
// reported late. After a failure the store is not asked for awayFor. A process that asks only once cannot remember
// failures and has to connect first: it allows observeOnceWithin.
const (
	observedPool      = inspect.ObservedPool
	observeWithin     = 250 * time.Millisecond
	observeOnceWithin = time.Second
	awayFor           = 5 * time.Second
)

// briefly returns a context with the time that the store has in mode observe.
func (r *resource) briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.settings.passing {
		return context.WithTimeout(ctx, observeOnceWithin)
	}
	return context.WithTimeout(ctx, observeWithin)
}

// inBackground returns a context for a call that must not end with its request. In mode observe it ends soon.
func (r *resource) inBackground(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if r.observe {
		return r.briefly(ctx)
	}
	return ctx, func() {}
}

// errAway means that the store failed a moment ago and is not asked again yet.
var errAway = errors.New("the store did not answer a moment ago")

// Observes reports whether a resource is in mode observe: no request is held, sent again or changed.
func (g inside) Observes(resource string) bool {
	r, err := g.resource(resource)
	return err == nil && r.observe && !r.past
}

// apply is Apply on the resource's pool. In mode observe it takes at most a moment.
func (r *resource) apply(ctx context.Context, ops []store.Op) error {
	if !r.observe {
		return r.send(ctx, ops)
	}
	if r.isAway() {
		return errAway
	}
	brief, cancel := r.briefly(ctx)
	defer cancel()
	err := r.send(brief, ops)
	if err != nil && ctx.Err() == nil {
		r.away.Store(int64(uptime() + awayFor))
	}
	return err
}

func (r *resource) isAway() bool {
	until := r.away.Load()
	return until != 0 && int64(uptime()) < until
}

// acquireObserved grants a request at once. It fails only if the request is not valid or its context has ended.
func (r *resource) acquireObserved(ctx context.Context, req *Request, t *Ticket) error {
	if err := ctx.Err(); err != nil {
		return r.cancelled(req, err)
	}
	brief, cancel := r.briefly(ctx)
	defer cancel()
	if r.budgets != nil && !r.isAway() {
		if paid, err := r.acquirePaid(brief, req, 0, t); paid {
			return r.unlessEnded(ctx, req, t, err)
		}
	}
	return r.unlessEnded(ctx, req, t, r.admitted(brief, req, t, r.await(brief, req, 0, t)))
}

// unlessEnded grants a request although the store failed or did not answer in time, unless the request's context has
// ended.
func (r *resource) unlessEnded(ctx context.Context, req *Request, t *Ticket, err error) error {
	if (errors.Is(err, ErrCancelled) || errors.Is(err, ErrStore)) && ctx.Err() == nil {
		r.away.Store(int64(uptime() + awayFor))
		return r.admitted(ctx, req, t, r.storeError(errAway))
	}
	return err
}

// harmless reports whether mode observe ignores an error of the store.
func (r *resource) harmless(err error) bool {
	return err != nil && r.observe && !errors.Is(err, store.ErrClosed)
}

// observed reports whether an agent uses only resources in mode observe.
func (l *Lease) observed() bool {
	for _, r := range l.resources {
		if !r.observe {
			return false
		}
	}
	return len(l.resources) > 0
}
