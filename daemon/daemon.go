// Package daemon serves the gate: the proxy for every resource that has an upstream, the HTTP API, MCP, metrics and the
// dashboard. It builds them from a configuration; package proxy forwards the requests.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/dashboard"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/internal/history"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
)

// Options configures a daemon.
type Options struct {
	File *config.File // with its defaults
	Gate *sluice.Gate
	// Env looks up an environment variable. The keys that the proxy puts into requests come from there.
	Env func(name string) (string, bool)
	// Base sends requests, until a reload replaces it. Nil means a transport of the daemon's own.
	Base http.RoundTripper
	// Upstreams overrides the upstreams of resources, by name.
	Upstreams map[string]string
	// Via names the store; see [proxy.Options].
	Via string
	// Behind reports that requests pass another gate on this machine; see [proxy.Options].
	Behind bool
	// Hosts lists further names by which clients may call the daemon.
	Hosts []string
	Done  func(sluicehttp.Exchange)
	// Trace follows exchanges of the proxy; see [sluicehttp.Transport].
	Trace func(r *http.Request, header http.Header) (end func(sluicehttp.Exchange))
	Log   *slog.Logger
	// Requests gets one line for each request to the proxy. Nil means no such log.
	Requests *slog.Logger
	// Metrics serves /metrics to callers that may use the API. Nil means no metrics.
	Metrics http.Handler
	// Events passes events to the listeners of /v1/events. Nil means no events.
	Events *api.Hub
	// History holds what happened, minute by minute, for /v1/history. Nil means no history.
	History *history.Book
	// Report returns what was sent through gates since a moment. gates holds the daemon's gate and, if it can be
	// opened, one with the pools that the configuration does not name. Nil means the gates' own reports.
	Report func(ctx context.Context, gates []*sluice.Gate, since time.Time) (inspect.Report, error)
	// Show converts a report into the JSON that clients get, with the figures of each minute or without. Nil means the
	// report itself.
	Show func(r *inspect.Report, minutes bool) any
	// Past adds to a status which connections went past the gate; see [api.Options].
	Past func(*inspect.Status)
	// EventLog says which events Report and Rejected read; see [api.Options].
	EventLog func() string
	// Rejected returns the requests that the gate has lately refused, for /v1/why; see [api.Options].
	Rejected func(resource, agent string) any
	// Tell receives events of pools that the configuration does not name. Nil drops them.
	Tell func(inspect.Event)
	// Letters keeps given-up requests of resources with dead_letters: on. Nil means that none are kept.
	Letters *deadletter.Keeper
	// Store is lent to gates in other processes, under /v1/store. Nil means that no store is lent.
	Store store.Store
	// Version is the version of the program.
	Version string
	// Reloading configures how the daemon loads another configuration. The zero value means that it cannot.
	Reloading Reloading
}

// Daemon is a gate that serves HTTP. Create it with New, and run it with Serve.
type Daemon struct {
	options  Options
	now      atomic.Pointer[generation] // receives new requests
	events   *api.Hub
	metrics  http.Handler
	log      *slog.Logger
	book     *estimate.Book // outlives generations
	users    proxy.Users    // outlives generations
	draining atomic.Bool
	served   atomic.Int64     // requests that have come, for WaitIdle
	lent     *storeapi.Server // nil if the store is not lent
	pulse    pulse

	reloading sync.Mutex     // one reload at a time
	earlier   atomic.Int64   // earlier generations that still have requests
	retiring  sync.WaitGroup // waits for the earlier generations
	settling  atomic.Bool
	idle      chan struct{} // signalled while settling when no request is left

	beside []beside // servers that pass requests to this one
}

// New builds a daemon. Its errors are about the configuration.
func New(o Options) (*Daemon, error) {
	d := &Daemon{options: o, log: o.Log, metrics: o.Metrics, events: o.Events, book: &estimate.Book{}, idle: make(chan struct{}, 1)}
	if o.Report == nil {
		d.options.Report = func(ctx context.Context, gates []*sluice.Gate, since time.Time) (inspect.Report, error) {
			var all inspect.Report
			for i, gate := range gates {
				one, err := gate.Report(ctx, since)
				if err != nil {
					return one, err
				}
				if i == 0 {
					all = one
					continue
				}
				all.Resources = append(all.Resources, one.Resources...)
			}
			return all, nil
		}
	}
	if o.Show == nil {
		d.options.Show = func(r *inspect.Report, _ bool) any { return r }
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.events == nil {
		d.events = api.NewHub()
	}
	if o.Base == nil {
		d.options.Base = sluicehttp.Tuned()
	}
	g, err := d.newGeneration(o.File, o.Gate, nil)
	if err != nil {
		return nil, err
	}
	d.now.Store(g)
	if o.Store != nil {
		d.lent = storeapi.New(storeapi.Options{
			Store: o.Store, Books: ledger.Beside(o.Store, false), Identify: d.identify, Refused: d.refuse, Config: func() []byte { return d.now.Load().file.Lend() },
			Uses: func(pool string) bool {
				_, is := d.now.Load().file.Resources[pool]
				return is || strings.HasPrefix(pool, "(") // the pools of the fleet and of budgets
			},
		})
	}
	return d, nil
}

// Status returns the response of GET /v1/status: the state of all pools in the store.
func (d *Daemon) Status(ctx context.Context) (inspect.Status, error) {
	g := d.enter()
	defer g.leave()
	return g.api.Status(ctx)
}

// Resources returns the sorted names of the resources that the proxy reaches.
func (d *Daemon) Resources() []string {
	names := d.now.Load().proxy.Names()
	slices.Sort(names)
	return names
}

// ServeHTTP serves one request.
func (d *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.served.Add(1)
	g := d.enter()
	byHost := g.proxy.ByHost(r) || proxy.InterceptedOf(r) != nil
	if d.lent != nil && !byHost && strings.HasPrefix(r.URL.Path, "/v1/store/") {
		g.leave() // all generations share the store
		name(w, r)
		hurry(w, r)
		d.lent.ServeHTTP(w, r)
		return
	}
	defer g.leave()
	if byHost {
		g.proxy.ServeHTTP(w, r)
		return
	}
	name(w, r)
	if own(r.URL.Path) {
		hurry(w, r)
	}
	switch r.URL.Path { // these only tell
	case "/healthz", "/readyz", "/metrics":
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			d.refuse(w, r, api.NotAllowed(w, r, "GET, HEAD"))
			return
		}
	}
	switch r.URL.Path { // no mux: it would clean paths that belong to the provider
	case "/healthz":
		d.health(w, r)
	case "/readyz":
		d.ready(w, r, g)
	case "/metrics":
		d.measure(w, r, g)
	case "/-/reload":
		d.reload(w, r, g)
	case "/v1/events":
		g.serveEvents(w, r)
	case "/mcp":
		g.serveMCP(w, r)
	default:
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			if g.proxy.Stray(w, r) { // it was meant for a provider
				return
			}
			g.api.ServeHTTP(w, r)
		case r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/page/"):
			d.show(w, r, g)
		default:
			g.proxy.ServeHTTP(w, r)
		}
	}
}

// identify returns who calls, according to the configuration in force.
func (d *Daemon) identify(r *http.Request) (api.Identity, error) {
	g := d.enter()
	defer g.leave()
	return g.identify(r)
}

// page serves the dashboard. The page itself contains nothing that needs a token.
var page = sync.OnceValue(dashboard.Handler)

// show serves the dashboard to clients that use one of the daemon's host names.
func (d *Daemon) show(w http.ResponseWriter, r *http.Request, g *generation) {
	if err := g.proxy.CheckHost(r); err != nil {
		d.refuse(w, r, &api.Problem{Status: http.StatusMisdirectedRequest, Detail: err.Error(), Hint: "use its address, or --host NAME"})
		return
	}
	page().ServeHTTP(w, r)
}

// measure serves the metrics to callers that may use the API.
func (d *Daemon) measure(w http.ResponseWriter, r *http.Request, g *generation) {
	if _, err := g.identify(r); err != nil {
		d.refuse(w, r, api.ProblemOf(err))
		return
	}
	if d.metrics == nil {
		d.refuse(w, r, &api.Problem{Status: http.StatusNotFound, Detail: "there are no metrics here"})
		return
	}
	d.metrics.ServeHTTP(w, r)
}

// Estimates reports how far off the token estimates were.
func (d *Daemon) Estimates() estimate.Miss { return d.book.Overall() }

// Dialect returns the name of the dialect that a resource speaks.
func (d *Daemon) Dialect(resource string) string { return d.now.Load().file.Dialect(resource).Name() }

// sameOrigin reports whether a request comes from no page, or from a page of the daemon itself. With TLS that page must
// have come by TLS too, because anyone on the network path can forge a plain one. Where TLS ends before the daemon,
// sameOrigin trusts the browser's statement that page and daemon are the same site.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "":
		return true
	case r.TLS != nil:
		return origin == "https://"+r.Host
	}
	return origin == "http://"+r.Host || origin == "https://"+r.Host && r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// ready serves /readyz: whether requests should come here. A failing provider is reported but does not make the daemon
// unready: another daemon cannot reach it either, and the first request that succeeds ends the failure. With ?strict it
// does.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request, g *generation) {
	if d.draining.Load() {
		say(w, http.StatusServiceUnavailable, "draining")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	status, err := g.gate.Status(ctx)
	if err != nil {
		say(w, http.StatusServiceUnavailable, "the store cannot be reached")
		return
	}
	answer := readiness{Status: "ok", Resources: map[string]string{}}
	_, stranger := g.identify(r) // names and addresses are only for callers with access
	known := stranger == nil
	code, shut := http.StatusOK, false
	for i := range status.Resources {
		x := &status.Resources[i]
		if x.State != inspect.StateFailing && x.State != inspect.StateDegraded {
			continue
		}
		if known {
			answer.Resources[x.Name] = x.State + ": " + x.Reason
		}
		if answer.Status != inspect.StateFailing {
			answer.Status = x.State
		}
		shut = shut || x.Outage != nil && x.Outage.Mode == store.FailClosed.String()
	}
	if shut || answer.Status != "ok" && r.URL.Query().Has("strict") {
		code = http.StatusServiceUnavailable
	}
	reply(w, code, answer)
}

// readiness is the answer to /readyz.
type readiness struct {
	Status    string            `json:"status"`              // ok, failing, degraded, draining, or what is wrong with the store
	Resources map[string]string `json:"resources,omitempty"` // failing or degraded resources, and why; only for callers that may use the API
}

func say(w http.ResponseWriter, status int, text string) {
	reply(w, status, map[string]string{"status": text})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
}

// proxied returns the options of the proxy that a configuration describes, and all resources.
func proxied(o *Options) (proxy.Options, map[string]sluice.Resource, error) {
	f := o.File
	po := proxy.Options{Gate: o.Gate, Resources: map[string]proxy.Resource{}, Apart: map[string]proxy.Resource{}, Hosts: o.Hosts, Via: o.Via, Behind: o.Behind, Done: o.Done, Trace: o.Trace, Base: o.Base}
	for _, c := range f.Classes {
		po.Classes = append(po.Classes, c.Name)
	}
	for _, t := range f.Tokens {
		po.Tokens = append(po.Tokens, proxy.Token{Name: t.Name, Hash: t.Hash, Agent: t.Agent, User: t.User, Class: t.Class})
	}
	gate, err := f.GateConfig(time.Now())
	if err != nil {
		return po, nil, err
	}
	if po.Clients, err = f.ClientTable(); err != nil {
		return po, nil, err
	}
	prices := f.PriceList()
	for name, r := range f.Resources {
		d := f.Dialect(name)
		pr := proxy.Resource{
			Dialect: d, Limits: gate.Resources[name].Limits, Deadline: time.Duration(r.ClientDeadline), KeepAlive: time.Duration(r.KeepAlive),
			Free: r.Abort == "free", Overage: r.Overage == config.On, Prices: prices.Micros, Retry: gate.Retry, Route: router(o.Gate, name),
		}
		address := addressOf(f, name, o.Upstreams)
		if address == "" {
			po.Apart[name] = pr
			continue
		}
		if pr.Upstream, err = url.Parse(address); err != nil {
			return po, nil, fmt.Errorf("resources.%s.upstream: not a valid address", name)
		}
		if r.DeadLetters == config.On {
			if o.Letters == nil {
				return po, nil, fmt.Errorf("resources.%s.dead_letters: no state directory or no key for dead letters; restart with both", name)
			}
			pr.Letters, pr.LetterBody = o.Letters, f.DeadLetters.MaxBody
		}
		if err := inject(&pr, name, r.Inject, o.Env); err != nil {
			return po, nil, err
		}
		if err := ring(&pr, name, &r, o.Env); err != nil {
			return po, nil, err
		}
		po.Resources[name] = pr
	}
	return po, gate.Resources, nil
}

// inject sets the key that a resource's requests are sent with.
func inject(pr *proxy.Resource, name string, in *config.Inject, env func(string) (string, bool)) error {
	if in == nil || in.Env == "" {
		return nil
	}
	if env == nil {
		return errors.New("no environment to take keys from")
	}
	key, err := keyIn(env, in.Env)
	if err != nil {
		return fmt.Errorf("resources.%s.inject: %w, or leave inject out so that clients send theirs", name, err)
	}
	pr.InjectHeader, pr.InjectValue = in.Header, in.Prefix+key
	return nil
}

// Settle ends the tickets held for responses that were cut off, once the running requests are done. It waits for them
// for a short time only. Serve calls it.
func (d *Daemon) Settle() {
	late := time.NewTimer(settleWithin)
	defer late.Stop()
	d.settling.Store(true)
	d.reloading.Lock() // wait for a running reload
	g := d.now.Load()
	d.reloading.Unlock()
	g.api.EndExchanges()
	gone := make(chan struct{})
	go func() {
		d.retiring.Wait()
		close(gone)
	}()
	for waits := true; waits && g.users.Load() > 1; {
		select {
		case <-d.idle:
		case <-late.C:
			waits = false
			late.Reset(0)
		}
	}
	g.proxy.Settle()
	select {
	case <-gone:
	case <-late.C:
	}
}

// settleWithin bounds how long Settle waits for running requests.
const settleWithin = 2 * time.Second
