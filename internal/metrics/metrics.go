// Package metrics tells Prometheus what a gate does. What happens is counted as it happens; what is, such as what
// remains of a limit, is read when somebody asks. docs/metrics.md describes every metric.
//
// Labels are bounded, whatever callers are called: no counter has an agent, a model or a key as a label, and of
// limits and budgets that everybody has their own of, the most used are shown and the others summed.
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

// DefaultTimeout is how long the state may take to read. Prometheus gives up after 10 s.
const DefaultTimeout = 3 * time.Second

// maxScrapes is how many may ask at once. They share one read of the store.
const maxScrapes = 16

// Options describe a registry.
type Options struct {
	// Gate is the one whose state is told. Nil means that [Registry.SetGate] will say: a gate needs [Registry.Event]
	// before it can be opened.
	Gate *sluice.Gate
	// Status reads the state. Nil means that of the gate alone.
	Status func(context.Context) (inspect.Status, error)
	// Estimates is how far off the estimates of tokens were. Nil means that nobody knows.
	Estimates func() estimate.Miss
	// Timeout is how long the state may take to read. 0 means DefaultTimeout.
	Timeout time.Duration
}

// Registry holds the metrics of a gate. It is safe for concurrent use.
type Registry struct {
	registry *prometheus.Registry
	gate     atomic.Pointer[sluice.Gate]
	events   *happenings
	proxied  *exchanges
	operated *operated
	families []family // all that there are, for tests
}

// New makes a registry.
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

// SetGate says whose state is told from now on: of a gate that was opened after the registry was made, or that
// takes the place of another. What was counted remains.
func (r *Registry) SetGate(g *sluice.Gate) { r.gate.Store(g) }

// Event counts what happens at a gate, for sluice.Config.Events. It does not block.
func (r *Registry) Event(e inspect.Event) { r.events.add(&e) }

// Gatherer reads the metrics.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }

// Handler serves the metrics. A store that cannot be reached fails no scrape.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // what can be told is
		MaxRequestsInFlight: maxScrapes,
	})
}
