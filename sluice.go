// Package sluice is one gate that all callers of a shared API quota pass through.
//
// Callers ask before they send. The gate holds each one for exactly as long as
// needed, in a fair order, so that together they use the quota fully and are not
// turned away by the provider.
//
//	gate, err := sluice.Open(ctx, sluice.Config{
//		Store: "mem:",
//		Resources: map[string]sluice.Resource{
//			"search": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute}}},
//		},
//	})
//	ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "indexer"})
//	defer ticket.Close()
//
// Most callers want [Gate.Do], which also tells the gate what the answer was and
// tries again when that can help. State lives in a store; import the package of
// the one you use, such as store/memstore, so that its URL scheme is known.
package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Gate is the one place that callers pass through. All methods are safe for
// concurrent use.
type Gate struct {
	url       string
	store     store.Store
	ends      store.Store // what ends with the gate: nil if the store is somebody else's
	plan      *plan
	resources map[string]*resource
	few       []*resource // all of them, if that is quicker to search than the map
	retry     retry.Policy
	others    func(pool string) string // of the configuration
	skipped   []string                 // why openOthers left out pools
	unread    []string                 // pools that it could not open
	fleet     fleet
	outlook   outlook
	holders   holders
	links     dependencies
	labels    labels
	budgets   *budgets // nil: there are none
	routes    map[string][]RouteChoice
	events    func(inspect.Event)
	price     func(model string, usage []Amount) (int64, bool) // nil: only stated dollars count
}

// Open opens the gate that config describes. Nothing is sent anywhere; an error is
// about the configuration or the store.
func Open(ctx context.Context, config Config) (*Gate, error) {
	if config.Store == "" {
		config.Store = "mem:"
	}
	p, err := newPlan(config)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, config.Store)
	if err != nil {
		return nil, &Error{Err: ErrStore, Message: err.Error(), cause: err}
	}
	g, err := openOn(ctx, st, p, config)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	g.ends = st
	return g, nil
}

// OpenWithStore is [Open] on a store that is open, and stays so when the gate is closed: for several gates in one process, such
// as the one before a configuration changed and the one after it. Config.Store is only what the gate calls it.
//
// What config says of resources counts instead of what gates on the same store have said before. They go on: those who wait do so
// under the new limits, what is charged stays charged, and tickets can be ended through any of them.
func OpenWithStore(ctx context.Context, st store.Store, config Config) (*Gate, error) {
	p, err := newPlan(config)
	if err != nil {
		return nil, err
	}
	p.restate = true
	g, err := openOn(ctx, st, p, config)
	if err != nil || p.lease < 0 || p.look {
		return g, err
	}
	// Not when it is first needed: the latest gate is to be the last that says something of the fleet.
	if _, err := g.fleetPool(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func openOn(ctx context.Context, st store.Store, p *plan, config Config) (*Gate, error) {
	g := &Gate{url: config.Store, store: st, plan: p, resources: map[string]*resource{}, retry: config.Retry, events: config.Events, price: config.Price}
	var err error
	if g.routes, err = checkRoutes(config.Routes); err == nil {
		g.budgets, err = newBudgets(g, config)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(config.Resources)) {
		r, err := g.newResource(ctx, name, config.Resources[name])
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.resources[name] = r
		if r.keyed && !p.look { // rather now than with the first request
			if _, err := g.labels.get(ctx, st); err != nil {
				return nil, errors.Join(r.storeError(err), g.Close())
			}
		}
	}
	if err := g.openOthers(ctx, config.Others); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if len(g.resources) <= 4 {
		g.few = slices.Collect(maps.Values(g.resources))
	}
	return g, nil
}

// Close ends the session: those who wait get [ErrClosed], and what is held stays
// charged until its time to live is over. Answers and ends of tickets that the store
// has not heard of yet are sent first; the error is [ErrStore] if that fails.
func (g *Gate) Close() error {
	errs := []error{g.budgets.close(), g.fleet.close()}
	all := slices.Collect(maps.Values(g.resources))
	closed := make([]error, len(all))
	each(len(all), func(i int) { closed[i] = all[i].close() })
	errs = append(errs, closed...)
	if g.ends != nil {
		errs = append(errs, g.ends.Close())
	}
	return errors.Join(errs...)
}

func (g *Gate) resource(name string) (*resource, error) {
	for _, r := range g.few {
		if r.name == name {
			return r, nil
		}
	}
	if r := g.resources[name]; r != nil {
		return r, nil
	}
	return nil, g.unknown(name)
}

// names returns the resources' names: the configured ones first, each part sorted.
func (g *Gate) names() []string {
	return slices.SortedFunc(maps.Keys(g.resources), func(a, b string) int {
		if x, y := g.resources[a].other, g.resources[b].other; x != y {
			if y {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
}

func (g *Gate) unknown(name string) error {
	return &Error{
		Err: ErrUnknownResource, Resource: name, Message: fmt.Sprintf("resource %.80q is not configured", name),
		Hint: fmt.Sprintf("configured are %q", g.names()),
	}
}
