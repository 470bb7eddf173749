package sluice

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// fleetPool is the name of the pool that all agents share, whatever resources they use.
const fleetPool = "(fleet)"

// fleet is the gate's state in the fleet's pool.
type fleet struct {
	mu     sync.Mutex
	pool   store.Pool
	leases map[*Lease]struct{}
	agents map[string]int // number of leases by agent
	closed bool

	looking  sync.Mutex // guards the fields below; held while they are read from the store
	joined   []store.Agent
	lookedAt time.Time
}

// fleetPool opens the fleet's pool when it is first needed.
func (g *Gate) fleetPool(ctx context.Context) (store.Pool, error) {
	f := &g.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pool != nil {
		return f.pool, nil
	}
	if f.closed {
		return nil, &Error{Err: ErrClosed}
	}
	spec, err := g.settings.spec(fleetPool, Resource{Light: Light{Off: true}, Breaker: Breaker{Off: true}})
	if err != nil {
		return nil, err
	}
	pool, err := g.store.Pool(ctx, spec)
	if err != nil {
		return nil, g.storeError(err)
	}
	if g.events != nil {
		tellNotices(pool, func(e inspect.Event) {
			e.Resource, e.Time = fleetPool, time.Now().UTC()
			g.events(e)
		})
	}
	f.pool = pool
	return pool, nil
}

func (g *Gate) storeError(err error) error {
	if errors.Is(err, store.ErrClosed) {
		return &Error{Err: ErrClosed, cause: err}
	}
	return &Error{Err: ErrStore, Message: err.Error(), cause: err}
}

// enter registers a lease to be ended with the gate. It reports false if the gate is closed.
func (f *fleet) enter(l *Lease) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	if f.leases == nil {
		f.leases, f.agents = map[*Lease]struct{}{}, map[string]int{}
	}
	f.leases[l] = struct{}{}
	f.agents[l.agent]++
	return true
}

func (f *fleet) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// remove removes a lease. It reports whether the lease was there, and whether it was the agent's last.
func (f *fleet) remove(l *Lease) (was, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, was = f.leases[l]; !was {
		return false, false
	}
	delete(f.leases, l)
	f.agents[l.agent]--
	if last = f.agents[l.agent] == 0; last {
		delete(f.agents, l.agent)
	}
	return true, last
}

// close leaves for all remaining leases, because the process ends.
func (f *fleet) close() error {
	f.mu.Lock()
	f.closed = true
	leases := slices.Collect(maps.Keys(f.leases))
	f.mu.Unlock()
	errs := make([]error, len(leases))
	var all sync.WaitGroup
	for i, l := range leases { // concurrently: each may wait for a store that does not answer
		all.Go(func() { errs[i] = l.Leave() })
	}
	all.Wait()
	if f.pool != nil {
		errs = append(errs, f.pool.Close())
	}
	return errors.Join(errs...)
}

// without returns list without name.
func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}

// union returns the names of both lists without duplicates.
func union(a, b []string) []string {
	var all []string
	for _, name := range slices.Concat(a, b) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
