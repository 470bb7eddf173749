// Package sluice shares the quota of an API among many callers. All of them pass through one gate.
//
// Callers ask before they send. The gate holds each request only as long as needed, in a fair order, so that together
// the callers use the quota fully and are not rate limited by the provider.
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
// Most callers want [Gate.Do], which also reports the response to the gate and retries when that can help. State lives
// in a store. Import the package of the store you use, such as store/memstore, so that its URL scheme is known.
package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside/hook"
	"github.com/sluicehq/sluice/internal/nearest"
	"github.com/sluicehq/sluice/internal/reading"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Gate holds requests until they may be sent. All methods are safe for concurrent use.
type Gate struct {
	url       string
	store     store.Store
	ends      store.Store // closed with the gate; nil if the caller owns the store
	settings  *settings
	resources map[string]*resource
	few       []*resource // all resources, if there are so few that a search is faster than the map
	retry     retry.Policy
	others    func(pool string) string // from the configuration
	skipped   []string                 // why openOthers left out pools
	unread    []string                 // pools that openOthers could not open
	fleet     fleet
	shared    reading.Shared[*view] // what concurrent callers see of the fleet
	holders   holders
	depends   dependencies
	labels    labels
	budgets   *budgets // nil: no budgets
	routes    map[string][]RouteChoice
	events    func(inspect.Event)
	price     func(model string, usage []Amount) (int64, bool) // nil: only stated dollars count
}

// Open opens the gate that config describes. It sends no request to a provider. An error is about the configuration or
// the store.
func Open(ctx context.Context, config Config) (*Gate, error) {
	if config.Store == "" {
		config.Store = "mem:"
	}
	p, err := newSettings(config)
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

// OpenWithStore is [Open] on a store that is already open, and that stays open when the gate is closed. It allows
// several gates in one process, such as the gates before and after a change of the configuration. Config.Store is then
// only a name.
//
// config replaces what earlier gates on the same store have said about resources. Those gates continue: their waiting
// requests wait under the new limits, charges stay, and tickets can be ended through any of the gates.
func OpenWithStore(ctx context.Context, st store.Store, config Config) (*Gate, error) {
	p, err := newSettings(config)
	if err != nil {
		return nil, err
	}
	p.restate = true
	g, err := openOn(ctx, st, p, config)
	if err != nil || p.lease < 0 || p.readOnly {
		return g, err
	}
	// Open the fleet's pool now, not on first use: the latest gate must be the last one to state the fleet's settings.
	if _, err := g.fleetPool(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func openOn(ctx context.Context, st store.Store, p *settings, config Config) (*Gate, error) {
	g := &Gate{url: config.Store, store: st, settings: p, resources: map[string]*resource{}, retry: config.Retry, events: config.Events, price: config.Price}
	g.shared.Rest = viewRest
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
		if r.keyed && !p.readOnly { // now rather than with the first request
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

// Close closes the gate. Waiting requests get [ErrClosed], and open tickets stay charged until their TTL is over. Close
// first sends the answers and ends of tickets that the store does not know yet; the error is [ErrStore] if that fails.
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

// names returns the names of the resources: first the configured ones, then the others, each sorted.
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
	names := g.names()
	hint := "configured are " + strings.Join(names, ", ")
	if meant := nearest.Name(name, names); meant != "" {
		hint = "did you mean " + meant + "? " + hint
	}
	return &Error{Err: ErrUnknownResource, Resource: name, Message: fmt.Sprintf("resource %.80q is not configured", name), Hint: hint}
}

// inside has the methods of a gate that only this module can use, through package internal/inside.
type inside struct{ *Gate }

func init() {
	hook.Of = func(gate any) any { return inside{gate.(*Gate)} }
}
