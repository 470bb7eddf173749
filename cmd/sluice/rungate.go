package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/framing"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
)

// runHeaderWithin is how long the child may take to send the header of a request.
const runHeaderWithin = 30 * time.Second

// runGate is a gate for one child: a proxy on its own port, and a forward proxy where one is needed, for as long as the
// child lives. It opens a resource when the child first sends to it.
type runGate struct {
	cmd       *cobra.Command
	file      *config.File
	way       runWay
	names     map[string]string // the resource of each provider
	upstreams map[string]string // of resources whose variable was already set
	bare      map[string]bool   // variables that were set without the usual suffix

	listener net.Listener // nil if no variable points to it
	done     chan error
	cut      context.CancelFunc
	forward  *interceptor // nil if nothing is decrypted or watched
	user     string       // of the run's agent; empty means the configured one
	past     *pastGate
	outlet   *outlet // to providers

	mu   sync.Mutex
	open map[doorKey]*openDoor
	over bool
}

// doorKey is a resource, with the upstream that a variable states, or with its own.
type doorKey struct {
	resource string
	own      bool
}

// openDoor is a resource that the child has sent to.
type openDoor struct {
	mu      sync.Mutex
	session *session
	daemon  *daemon.Daemon
}

// newRunGate prepares a gate for a command, for the resources of the configuration and of built-in providers. start opens
// it.
func newRunGate(cmd *cobra.Command, argv []string, flags *interceptFlags) (*runGate, error) {
	f, err := configOf(cmd)
	if err != nil {
		return nil, err
	}
	f.AddPresets()
	g := &runGate{cmd: cmd, file: f, names: map[string]string{}, upstreams: map[string]string{}, bare: map[string]bool{}, open: map[doorKey]*openDoor{}, done: make(chan error, 1)}
	for name, r := range f.Resources {
		if was, there := g.names[r.Provider]; r.Provider != "" && (!there || r.Provider == name || was != r.Provider && name < was) {
			g.names[r.Provider] = name
		}
	}
	if err := g.chooseWay(argv, flags); err != nil {
		return nil, err
	}
	log := notesOf(cmd)
	if len(g.way.decrypted.Addresses()) > 0 {
		log = nil // the bundle of certificates comes with the same warnings
	}
	if g.outlet, err = newOutlet(f, log, proxyOf(gateUser)); err != nil {
		return nil, configFailure(err)
	}
	return g, nil
}

// start opens the gate. Events are told to tell.
func (g *runGate) start(flags *interceptFlags, tell func(inspect.Event)) error {
	g.past = newPastGate(g.aside, tell)
	if len(g.way.bases) > 0 {
		if err := g.listen(); err != nil {
			return err
		}
	}
	if len(g.way.decrypted.Addresses())+len(g.way.watched.Addresses()) == 0 {
		return nil
	}
	err := g.intercept(flags)
	if err != nil {
		_ = g.close() // the error tells more
	}
	return err
}

// listen serves the child on a port.
func (g *runGate) listen() error {
	l, err := daemon.Listen(g.cmd.Context(), "127.0.0.1:0", false)
	if err != nil {
		return &failure{code: exitUnavailable, message: "there is no port for the gate: " + err.Error(), hint: "--no-gate runs the command without one"}
	}
	g.listener = l
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.cmd.Context()))
	server := &http.Server{
		Handler: g, ReadHeaderTimeout: runHeaderWithin, Protocols: new(http.Protocols),
		BaseContext: func(net.Listener) context.Context { return ctx }, // also ends requests whose body was not read
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	g.cut = cancel
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the child is gone: no client is left
	go func() { g.done <- server.Serve(framing.Listen(l)) }()
	return nil
}

// close ends the gate and closes the resources that it has opened.
func (g *runGate) close() error {
	if g == nil {
		return nil
	}
	var errs []error
	if g.forward != nil {
		errs = append(errs, g.forward.close())
	}
	if g.listener != nil {
		g.cut()
		<-g.done
	}
	g.past.close()
	g.mu.Lock()
	g.over = true
	open := slices.Collect(maps.Values(g.open))
	g.mu.Unlock()
	for _, d := range open {
		d.mu.Lock() // waits for late requests
		if d.daemon != nil {
			d.daemon.Settle()
		}
		if d.session != nil {
			errs = append(errs, d.session.close())
		}
		d.mu.Unlock()
	}
	return errors.Join(errs...)
}

// closeAfter is close after the command has ended: an error is only a warning.
func (g *runGate) closeAfter(s *session) {
	if err := g.close(); err != nil {
		fmt.Fprintf(s.stderr, "warning: the gate could not be closed: %s\n", harmless(err.Error()))
	}
}

// ServeHTTP opens the resource that a request is for, and forwards the request.
func (g *runGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	name, rest, _ := strings.Cut(path, "/")
	if strings.HasPrefix(name, "@") {
		name, _, _ = strings.Cut(rest, "/")
	}
	own := false
	if in := proxy.InterceptedOf(r); in != nil {
		name, own = in.Resource, in.Own
	}
	d, err := g.door(doorKey{name, own})
	if err != nil {
		http.Error(w, "sluice: "+err.Error(), http.StatusBadGateway)
		return
	}
	g.past.passed(name)
	if g.user != "" && r.Header.Get(userHeader) == "" { // a base URL has no place for it
		r.Header.Set(userHeader, g.user)
	}
	d.ServeHTTP(w, r)
}

// userHeader names the user of a request. The proxy removes it.
const userHeader = "X-Sluice-User"

func (g *runGate) door(key doorKey) (http.Handler, error) {
	name, upstreams := key.resource, g.upstreams
	if key.own {
		upstreams = nil
	}
	if _, ok := g.file.Resources[name]; !ok {
		return nil, fmt.Errorf("unknown resource %.80q", name)
	}
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		return nil, errors.New("the gate is closed")
	}
	d := g.open[key]
	if d == nil {
		d = &openDoor{}
		g.open[key] = d
	}
	g.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.daemon != nil {
		return d.daemon, nil
	}
	session, err := openToStay(g.cmd, name) // if it fails, the next request tries again
	if err != nil {
		return nil, err
	}
	if d.daemon, err = session.daemon(&daemon.Options{Upstreams: upstreams, Base: g.outlet.transport(), Behind: withinIntercept(cmp.Or(upstreams[name], g.file.UpstreamOf(name)))}); err != nil {
		return nil, errors.Join(err, session.close())
	}
	d.session = session
	return d.daemon, nil
}

// sum says in one line what went past the gate, or that nothing passed it; it returns "" if all is well. A command that took
// a turn need not send anything through the gate.
func (g *runGate) sum(turn bool) string {
	if g.listener == nil && g.forward == nil {
		return ""
	}
	hint := "sluice run --intercept -- COMMAND gates them"
	switch {
	case g.way.mode == config.InterceptOff && g.way.client.Intercepts():
		hint = "without --no-intercept they are gated"
	case g.forward != nil && g.forward.distrusted.Load():
		hint = "the command does not trust the gate's certificate (docs/intercept.md)"
	}
	return g.past.summary(hint, turn)
}

// variables returns the environment variables that lead the child's calls to the gate: base URLs with the agent in the
// path, and proxies.
func (g *runGate) variables(agent, class, user string) (vars []variable) {
	g.user = user // the child, whose requests read it, does not run yet
	who := url.PathEscape(agent)
	if class != "" {
		who += ":" + url.PathEscape(class)
	}
	for _, b := range g.way.bases {
		suffix := b.Suffix
		if g.bare[b.Variable] {
			suffix = ""
		}
		vars = append(vars, variable{b.Variable, fmt.Sprintf("http://%s/@%s/%s%s", g.listener.Addr(), who, url.PathEscape(g.names[b.Provider]), suffix)})
	}
	if g.forward != nil {
		return append(vars, g.forward.variables(agent, class)...)
	}
	if g.listener != nil { // which is on this machine, and not behind a proxy
		for _, name := range forward.NoProxyVariables() {
			vars = append(vars, variable{name, thisMachine + commaBefore(forward.NoProxyOf(os.Getenv))})
		}
	}
	return vars
}

// thisMachine lists the names of this machine in a NO_PROXY.
const thisMachine = "localhost,127.0.0.1,::1"

func commaBefore(list string) string {
	if list == "" {
		return ""
	}
	return "," + list
}
