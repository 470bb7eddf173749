// Package daemon is the gate as a server: the proxy for every resource that has an upstream, and what others
// need to know about it. It is put together from a configuration; package proxy does the work.
package daemon

import (
	"cmp"
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
	"github.com/sluicehq/sluice/dashboard"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// Options describe a daemon.
type Options struct {
	File *config.File // with its defaults
	Gate *sluice.Gate
	// Env looks up a variable of the environment: keys that are put into requests come from there.
	Env func(name string) (string, bool)
	// Base sends requests. Nil means a transport of its own.
	Base http.RoundTripper
	// Upstreams overrule where resources are, by name.
	Upstreams map[string]string
	// Via names the store; see [proxy.Options].
	Via string
	// Hosts are names that clients may call the daemon by.
	Hosts []string
	Done  func(sluicehttp.Exchange)
	Log   *slog.Logger
	// Metrics serves /metrics, to those who may call the API. Nil means that there is none.
	Metrics http.Handler
	// Events are told to those who listen at /v1/events. Nil means nobody tells any.
	Events *api.Hub
	// Report is what was sent since a moment. Nil means what the gate remembers.
	Report func(ctx context.Context, since time.Time) (any, error)
}

// Daemon is a gate that can be served.
type Daemon struct {
	gate     *sluice.Gate
	proxy    *proxy.Proxy
	api      *api.API
	events   *api.Hub
	classes  []string
	metrics  http.Handler
	log      *slog.Logger
	draining atomic.Bool
	inside   sync.WaitGroup // requests
}

// New puts a daemon together. Errors are about the configuration.
func New(o Options) (*Daemon, error) {
	d := &Daemon{gate: o.Gate, log: o.Log, metrics: o.Metrics}
	if o.Report == nil {
		o.Report = func(ctx context.Context, since time.Time) (any, error) { return o.Gate.Report(ctx, since) }
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	po, limits, err := proxied(&o)
	if err != nil {
		return nil, err
	}
	po.Log = d.log
	if d.proxy, err = proxy.New(po); err != nil {
		return nil, err
	}
	if d.events = o.Events; d.events == nil {
		d.events = api.NewHub()
	}
	d.classes = po.Classes
	d.api = api.New(api.Options{
		Gate: o.Gate, Classes: po.Classes, Dialect: o.File.Dialect, Limits: limits, Identify: d.identify, Report: o.Report, Events: d.events,
	})
	return d, nil
}

// Resources are those that the proxy reaches.
func (d *Daemon) Resources() []string {
	names := d.proxy.Names()
	slices.Sort(names)
	return names
}

// ServeHTTP serves one request.
func (d *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.inside.Add(1)
	defer d.inside.Done()
	if d.proxy.ByHost(r) {
		d.proxy.ServeHTTP(w, r)
		return
	}
	switch r.URL.Path { // no mux: it would tidy up paths that are the provider's
	case "/healthz":
		say(w, http.StatusOK, "ok")
	case "/readyz":
		d.ready(w, r)
	case "/metrics":
		d.measure(w, r)
	default:
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			d.api.ServeHTTP(w, r)
		case r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/page/"):
			d.show(w, r)
		default:
			d.proxy.ServeHTTP(w, r)
		}
	}
}

// page is the live page. There is nothing in it that needs a token.
var page = dashboard.Handler()

// show serves the page, to those who call the daemon by its name.
func (d *Daemon) show(w http.ResponseWriter, r *http.Request) {
	if err := d.proxy.CheckHost(r); err != nil {
		(&api.Problem{Status: http.StatusMisdirectedRequest, Detail: err.Error(), Hint: "use its address, or --host NAME"}).Write(w)
		return
	}
	page.ServeHTTP(w, r)
}

// measure serves what is measured, to those who may look.
func (d *Daemon) measure(w http.ResponseWriter, r *http.Request) {
	if _, err := d.identify(r); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	if d.metrics == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		(&api.Problem{Status: http.StatusNotFound, Detail: "there are no metrics here"}).Write(w)
		return
	}
	d.metrics.ServeHTTP(w, r)
}

// Estimates is how far off estimates of tokens were.
func (d *Daemon) Estimates() estimate.Miss { return d.proxy.Estimates().Overall() }

// identify finds out who calls the API. A page of the daemon's own may; one of anybody else's may not.
func (d *Daemon) identify(r *http.Request) (api.Identity, error) {
	if err := d.proxy.CheckHost(r); err != nil {
		return api.Identity{}, &api.Problem{Status: http.StatusMisdirectedRequest, Detail: err.Error(), Hint: "use its address, or --host NAME"}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" || !sameOrigin(r) {
		return api.Identity{}, &api.Problem{Status: http.StatusForbidden, Detail: "pages of other sites may not call this gate"}
	}
	t, ok, needed := d.proxy.Bearer(r)
	if !ok && needed {
		return api.Identity{}, &api.Problem{Status: http.StatusUnauthorized, Detail: "a token is needed", Hint: "Authorization: Bearer TOKEN"}
	}
	return api.Identity{Token: t.Name, Agent: t.Agent, Highest: max(slices.Index(d.classes, t.Class), 0)}, nil
}

// sameOrigin reports that a request is of no page, or of one of the daemon's own.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host || origin == "https://"+r.Host
}

// ready tells whether requests get anywhere.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request) {
	if d.draining.Load() {
		say(w, http.StatusServiceUnavailable, "draining")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if _, err := d.gate.Status(ctx); err != nil {
		say(w, http.StatusServiceUnavailable, "the store cannot be reached")
		return
	}
	say(w, http.StatusOK, "ok")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": text}) // who is gone misses nothing
}

// proxied is the proxy that a configuration describes, and the limits of all resources.
func proxied(o *Options) (proxy.Options, map[string][]sluice.Limit, error) {
	f := o.File
	po := proxy.Options{Gate: o.Gate, Resources: map[string]proxy.Resource{}, Hosts: o.Hosts, Via: o.Via, Done: o.Done, Base: o.Base}
	for _, c := range f.Classes {
		po.Classes = append(po.Classes, c.Name)
	}
	for _, t := range f.Tokens {
		po.Tokens = append(po.Tokens, proxy.Token{Name: t.Name, Hash: t.Hash, Agent: t.Agent, Class: t.Class})
	}
	gate, err := f.Gate(time.Now())
	if err != nil {
		return po, nil, err
	}
	limits := map[string][]sluice.Limit{}
	for name, r := range gate.Resources {
		limits[name] = r.Limits
	}
	prices := f.PriceList()
	for name, r := range f.Resources {
		d := f.Dialect(name)
		address := cmp.Or(o.Upstreams[name], r.Upstream)
		if s, ok := d.(provider.Speaker); ok && address == "" {
			address = s.Address()
		}
		if address == "" {
			continue // it is only asked for on the command line, or in Go
		}
		up, err := url.Parse(address)
		if err != nil {
			return po, nil, fmt.Errorf("resources.%s.upstream: it is no address", name)
		}
		pr := proxy.Resource{
			Upstream: up, Dialect: d, Limits: gate.Resources[name].Limits, Deadline: time.Duration(r.ClientDeadline),
			Free: r.Abort == "free", Prices: prices.Micros, Retry: gate.Retry, Route: router(o.Gate, name),
		}
		if err := inject(&pr, name, r.Inject, o.Env); err != nil {
			return po, nil, err
		}
		po.Resources[name] = pr
	}
	return po, limits, nil
}

// inject finds the key that a resource's requests are sent with.
func inject(pr *proxy.Resource, name string, in *config.Inject, env func(string) (string, bool)) error {
	if in == nil {
		return nil
	}
	if env == nil {
		return errors.New("there is no environment to take keys from")
	}
	key, ok := env(in.Env)
	if !ok || strings.TrimSpace(key) == "" {
		return fmt.Errorf("resources.%s.inject: the variable %s is not set; set it to the key, or leave inject out so that clients send theirs", name, in.Env)
	}
	if strings.ContainsAny(key, "\r\n\x00") {
		return fmt.Errorf("resources.%s.inject: the variable %s does not hold a key: it has a line break", name, in.Env)
	}
	pr.InjectHeader, pr.InjectValue = in.Header, in.Prefix+key
	return nil
}

// Settle ends what is held for answers that were broken off, when those who are being served have gone: but it does not wait for
// them for long. Serve does so by itself.
func (d *Daemon) Settle() {
	gone := make(chan struct{})
	go func() {
		d.inside.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(settleWithin):
	}
	d.proxy.Settle()
}

// settleWithin bounds how long those who were cut off are waited for.
const settleWithin = 2 * time.Second
