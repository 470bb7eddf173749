// Package metrics exports a gate's metrics to Prometheus. Events are counted as they happen; state, such as what
// remains of a limit, is read for each scrape. docs/metrics.md describes every metric.
//
// Labels are bounded, whatever names callers use: no counter has an agent, a model or a key as a label. Of limits and
// budgets with one meter per caller, the most used are shown and the others summed.
package metrics

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/estimate"
)

// DefaultTimeout is how long reading the state may take. Prometheus gives up after 10 s.
const DefaultTimeout = 3 * time.Second

// maxScrapes is how many scrapes may run at once. They share one read of the store.
const maxScrapes = 16

// Options configures a registry.
type Options struct {
	// Gate is the gate whose state is exported. Nil means that [Registry.SetGate] sets it later, because a gate needs
	// [Registry.Event] before it can be opened.
	Gate *sluice.Gate
	// Status reads the state. Nil means the state of the gate alone.
	Status func(context.Context) (inspect.Status, error)
	// Estimates reports how far off the token estimates were. Nil means unknown.
	Estimates func() estimate.Miss
	// Timeout is how long reading the state may take. 0 means DefaultTimeout.
	Timeout time.Duration
}

// Registry holds the metrics of a gate. It is safe for concurrent use.
type Registry struct {
	registry *prometheus.Registry
	gate     atomic.Pointer[sluice.Gate]
	events   *happenings
	proxied  *exchanges
	operated *operated
	families []family // all families, for tests
}

// New returns a registry.
func New(o Options) *Registry {
	r := &Registry{registry: prometheus.NewRegistry()}
	r.gate.Store(o.Gate)
	m := &maker{registry: r.registry}
	names := newNames()
	costs := newCosts(m)
	r.events = newHappenings(m, names, costs)
	r.proxied = newExchanges(m, names, costs)
	r.operated = newOperated(m)
	s := newState(m, &reader{gate: &r.gate, status: o.Status, timeout: o.Timeout}, o.Estimates)
	r.registry.MustRegister(s, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.families = m.families
	return r
}

// SetGate sets the gate whose state is exported from now on: one that was opened after the registry was made, or one
// that replaces another. Counters keep their values.
func (r *Registry) SetGate(g *sluice.Gate) { r.gate.Store(g) }

// Event counts an event of a gate, for sluice.Config.Events. It does not block.
func (r *Registry) Event(e inspect.Event) { r.events.add(&e) }

// Gatherer returns the source of the metrics.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }

// Handler serves the metrics. An unreachable store does not fail a scrape.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // report as much as possible
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true, // for scrapers that ask for it
	})
}
