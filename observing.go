package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/store"
)

// The mode observe sends every request once, as it came, and stores nothing that could hold anyone.
//
// Its resource has a pool of its own. There the gate reckons as it would in the mode gate: so it can tell who would have waited.
// Charges, agents and limits that it learns in that pool bind nobody: all grants there are by force, and the mode gate uses
// another pool. Refusals are counted, and pause nothing.
//
// The store must not hold anyone either. It has observeWithin to answer. After a failure it is left alone for awayFor. A process that asks
// once has no such memory, and must connect first: there it has observeOnceWithin.
const (
	observedPool      = " (observed)" // follows the resource's name
	observeWithin     = 250 * time.Millisecond
	observeOnceWithin = time.Second
	awayFor           = 5 * time.Second
)

// briefly is how long the store has in the mode observe.
func (r *resource) briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.plan.passing {
		return context.WithTimeout(ctx, observeOnceWithin)
	}
	return context.WithTimeout(ctx, observeWithin)
}

// errAway: the store has failed a moment ago, and is not asked again yet.
var errAway = errors.New("the store did not answer a moment ago")

// Observes reports that a resource is in the mode observe: nobody is held, nothing is sent again, and requests go as they came.
func (g inside) Observes(resource string) bool {
	r, err := g.resource(resource)
	return err == nil && r.observe
}

// apply is Apply on the resource's pool. In the mode observe it takes a moment at most.
func (r *resource) apply(ctx context.Context, ops []store.Op) error {
	if !r.observe {
		return r.send(ctx, ops)
	}
	if r.isAway() {
		return errAway
	}
	brief, cancel := r.briefly(ctx)
	defer cancel()
	err := r.pool.Apply(brief, ops)
	if err != nil && ctx.Err() == nil {
		r.away.Store(time.Now().Add(awayFor).UnixNano())
	}
	return err
}

func (r *resource) isAway() bool { return time.Now().UnixNano() < r.away.Load() }

// acquireObserved lets a request go at once. Only a request that makes no sense is an error, or one whose context has ended.
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

// unlessEnded lets a request go though the store failed, or did not answer in time, unless its own context has ended.
func (r *resource) unlessEnded(ctx context.Context, req *Request, t *Ticket, err error) error {
	if (errors.Is(err, ErrCancelled) || errors.Is(err, ErrStore)) && ctx.Err() == nil {
		r.away.Store(time.Now().Add(awayFor).UnixNano())
		return r.admitted(ctx, req, t, r.storeError(errAway))
	}
	return err
}

// harmless reports an error of the store that the mode observe does not mind.
func (r *resource) harmless(err error) bool {
	return err != nil && r.observe && !errors.Is(err, store.ErrClosed)
}

// observed reports that an agent uses nothing but resources in the mode observe.
func (l *Lease) observed() bool {
	for _, r := range l.resources {
		if !r.observe {
			return false
		}
	}
	return len(l.resources) > 0
}
