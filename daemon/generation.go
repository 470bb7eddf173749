package daemon

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
	"github.com/sluicehq/sluice/sluicehttp"
)

// generation holds everything built from one configuration. A request finishes on the generation it came to. A replaced
// generation ends with its last request.
type generation struct {
	daemon  *Daemon
	file    *config.File
	gate    *sluice.Gate
	proxy   *proxy.Proxy
	api     *api.API
	classes []string
	origins *forward.Origins // for clients of a forward proxy

	users atomic.Int64    // running requests, plus one until another generation takes over
	gone  chan struct{}   // closed when users reaches zero
	over  context.Context // ends when another generation takes over
	end   context.CancelFunc
}

// newGeneration builds a generation from a configuration. before is the generation it replaces, or nil.
func (d *Daemon) newGeneration(f *config.File, gate *sluice.Gate, before *generation) (*generation, error) {
	o := d.options
	o.File, o.Gate = f, gate
	if before != nil && o.Reloading.Base != nil {
		o.Base = o.Reloading.Base(f)
	}
	po, resources, err := proxied(&o)
	if err != nil {
		return nil, err
	}
	po.Log, po.Book, po.Requests, po.Users = d.log, d.book, o.Requests, &d.users
	g := &generation{daemon: d, file: f, gate: gate, classes: po.Classes, gone: make(chan struct{})}
	g.users.Store(1)
	if g.proxy, err = proxy.New(po); err != nil {
		return nil, err
	}
	if g.origins, err = Origins(f, o.Upstreams); err != nil {
		return nil, err
	}
	limits, backoff := map[string][]sluice.Limit{}, map[string]sluice.Backoff{}
	for name, r := range resources {
		limits[name], backoff[name] = r.Limits, r.Backoff
	}
	ao := api.Options{
		Gate: gate, Classes: po.Classes, Dialect: f.Dialect, Limits: limits, Backoff: backoff, Identify: g.identify, Events: d.events, Refused: d.refuse, Users: &d.users,
		History: d.options.History, Config: f.Public, Keys: configuredKeys(&o, g.proxy.KeyLabels),
		Report: func(ctx context.Context, since time.Time, minutes bool) (any, error) {
			rep, err := g.report(ctx, since)
			return d.options.Show(&rep, minutes), err
		},
		EventLog: o.EventLog, Rejected: o.Rejected, Past: o.Past,
	}
	for _, b := range f.Budgets {
		if b.Per == config.BudgetOwner(sluice.BudgetFleet) && b.Size.Micros > 0 && (ao.Shared == 0 || b.Size.Micros < ao.Shared) {
			ao.Shared = b.Size.Micros
		}
	}
	for _, name := range slices.Sorted(maps.Keys(po.Resources)) {
		ao.Served = append(ao.Served, api.Served{Resource: name, Provider: f.Resources[name].Provider})
	}
	if before != nil {
		ao.After = before.api
	}
	if d.options.Store != nil {
		ao.Others = g.others
	}
	ao.Away = away{g}
	ao.Letters = func(resource string) *sluicehttp.Letters { return po.Resources[resource].DeadLetters() }
	g.api = api.New(ao)
	g.over, g.end = context.WithCancel(context.Background())
	return g, nil
}

// enter returns the current generation for a new request. The request must call leave on it.
func (d *Daemon) enter() *generation {
	for {
		g := d.now.Load()
		for n := g.users.Load(); n > 0; n = g.users.Load() {
			if g.users.CompareAndSwap(n, n+1) {
				return g
			}
		}
		// The last request has just left this generation, so a new one exists.
	}
}

func (g *generation) leave() {
	switch g.users.Add(-1) {
	case 0:
		close(g.gone)
	case 1:
		if g.daemon.settling.Load() {
			select {
			case g.daemon.idle <- struct{}{}:
			default: // the signal is already pending
			}
		}
	}
}

// serveEvents serves event listeners until another generation takes over, which then decides who may listen.
func (g *generation) serveEvents(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.over, cancel)()
	g.api.ServeHTTP(w, r.WithContext(ctx))
}

// identify returns who calls the API. It accepts pages of the daemon itself and refuses pages of other sites.
func (g *generation) identify(r *http.Request) (api.Identity, error) {
	if err := g.proxy.CheckHost(r); err != nil {
		return api.Identity{}, &api.Problem{Status: http.StatusMisdirectedRequest, Detail: err.Error(), Hint: "use its address, or --host NAME"}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" || !sameOrigin(r) {
		return api.Identity{}, &api.Problem{Status: http.StatusForbidden, Detail: "pages of other sites may not call this gate", Hint: "call it from a program, without an Origin header"}
	}
	t, ok, needed := g.proxy.Bearer(r)
	if !ok && needed {
		return api.Identity{}, &api.Problem{Status: http.StatusUnauthorized, Detail: "a valid token is needed", Hint: "send Authorization: Bearer TOKEN; sluice token new NAME makes a token"}
	}
	return api.Identity{Token: t.Name, Agent: t.Agent, User: t.User, Highest: max(slices.Index(g.classes, t.Class), 0)}, nil
}
