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

// generation is all that follows from one configuration. Requests finish on the one that they came to; when the last of them
// is gone, so is the generation.
type generation struct {
	daemon  *Daemon
	file    *config.File
	gate    *sluice.Gate
	proxy   *proxy.Proxy
	api     *api.API
	classes []string
	origins *forward.Origins // of clients that send through a forward proxy

	users atomic.Int64    // requests that are in, and one more until another generation takes over
	gone  chan struct{}   // closed when there are none
	over  context.Context // ends when another generation takes over
	end   context.CancelFunc
}

// newGeneration puts together what a configuration describes, after another generation if there was one.
func (d *Daemon) newGeneration(f *config.File, gate *sluice.Gate, before *generation) (*generation, error) {
	o := d.options
	o.File, o.Gate = f, gate
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
		Report: func(ctx context.Context, since time.Time) (any, error) {
			rep, err := g.report(ctx, since)
			return d.options.Show(&rep), err
		},
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
	ao.Letters = func(resource string) *sluicehttp.Letters { return po.Resources[resource].DeadLetters() }
	g.api = api.New(ao)
	g.over, g.end = context.WithCancel(context.Background())
	return g, nil
}

// enter is for a request that comes in. It must leave what it gets.
func (d *Daemon) enter() *generation {
	for {
		g := d.now.Load()
		for n := g.users.Load(); n > 0; n = g.users.Load() {
			if g.users.CompareAndSwap(n, n+1) {
				return g
			}
		}
		// The last one has just left it, so there is another.
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
			default: // it has been told
			}
		}
	}
}

// serveEvents serves those who listen until another generation takes over: who may listen, that one says.
func (g *generation) serveEvents(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.over, cancel)()
	g.api.ServeHTTP(w, r.WithContext(ctx))
}

// identify finds out who calls the API. A page of the daemon's own may; one of anybody else's may not.
func (g *generation) identify(r *http.Request) (api.Identity, error) {
	if err := g.proxy.CheckHost(r); err != nil {
		return api.Identity{}, &api.Problem{Status: http.StatusMisdirectedRequest, Detail: err.Error(), Hint: "use its address, or --host NAME"}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" || !sameOrigin(r) {
		return api.Identity{}, &api.Problem{Status: http.StatusForbidden, Detail: "pages of other sites may not call this gate"}
	}
	t, ok, needed := g.proxy.Bearer(r)
	if !ok && needed {
		return api.Identity{}, &api.Problem{Status: http.StatusUnauthorized, Detail: "a token is needed", Hint: "Authorization: Bearer TOKEN"}
	}
	return api.Identity{Token: t.Name, Agent: t.Agent, User: t.User, Highest: max(slices.Index(g.classes, t.Class), 0)}, nil
}
