package main

import (
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
	"github.com/sluicehq/sluice/internal/framing"
	"github.com/sluicehq/sluice/proxy"
)

// clients lists the environment variables that tell the clients of providers where to send, and the suffix that each
// expects after the provider's address.
var clients = []struct{ provider, variable, suffix string }{
	{"anthropic", "ANTHROPIC_BASE_URL", ""},
	{"openai", "OPENAI_BASE_URL", "/v1"},
	{"openai", "OPENAI_API_BASE", "/v1"},
	{"gemini", "GOOGLE_GEMINI_BASE_URL", ""},
	{"groq", "GROQ_BASE_URL", ""},
	{"github", "GITHUB_API_URL", ""},
}

func hasClients(provider string) bool {
	for _, c := range clients {
		if c.provider == provider {
			return true
		}
	}
	return false
}

// runHeaderWithin is how long the child may take to send the header of a request.
const runHeaderWithin = 30 * time.Second

// runGate is a gate for one child: a proxy on its own port, for as long as the child lives. It opens a resource when
// the child first sends to it.
type runGate struct {
	cmd       *cobra.Command
	file      *config.File
	names     map[string]string // resources that clients are pointed to, by provider
	upstreams map[string]string // of resources whose variable was already set
	bare      map[string]bool   // variables that were set without the usual suffix
	listener  net.Listener
	done      chan error
	cut       context.CancelFunc

	outlet  *outlet      // to providers
	forward *interceptor // nil if clients are pointed to the gate itself
	user    string       // of the run's agent; empty means the configured one

	mu   sync.Mutex
	open map[string]*openDoor
	over bool
}

// openDoor is a resource that the child has sent to.
type openDoor struct {
	mu      sync.Mutex
	session *session
	daemon  *daemon.Daemon
}

// newRunGate opens a gate for a child. It returns nil if no client could be pointed to it. With intercept it decrypts
// the child's connections to gated hosts, instead of pointing clients to itself.
func newRunGate(cmd *cobra.Command, intercept *interceptFlags) (*runGate, error) {
	if intercept != nil {
		f, err := configOf(cmd)
		if err != nil {
			return nil, err
		}
		g := gateOf(cmd, f)
		if g.outlet, err = newOutlet(f, nil, proxyOf()); err != nil { // the bundle of certificates comes with the warnings
			return nil, configFailure(err)
		}
		return g, g.intercept(*intercept)
	}
	f, err := selectedConfig(cmd, nil)
	if err != nil {
		return nil, err
	}
	g := gateOf(cmd, f)
	if len(g.names) == 0 {
		return nil, nil
	}
	if g.outlet, err = newOutlet(f, notesOf(cmd), nil); err != nil {
		return nil, configFailure(err)
	}
	return g, g.listen()
}

// gateOf returns a gate for the resources of a configuration and of built-in providers.
func gateOf(cmd *cobra.Command, f *config.File) *runGate {
	f.AddPresets()
	g := &runGate{cmd: cmd, file: f, names: map[string]string{}, upstreams: map[string]string{}, bare: map[string]bool{}, open: map[string]*openDoor{}, done: make(chan error, 1)}
	for name, r := range f.Resources {
		if was, there := g.names[r.Provider]; !there || r.Provider == name || was != r.Provider && name < was {
			g.names[r.Provider] = name
		}
	}
	maps.DeleteFunc(g.names, func(provider, _ string) bool { return !hasClients(provider) })
	for _, c := range clients {
		name, there := g.names[c.provider]
		if at := strings.TrimSuffix(os.Getenv(c.variable), "/"); there && at != "" {
			trimmed, had := strings.CutSuffix(at, c.suffix)
			if g.bare[c.variable] = !had; g.upstreams[name] == "" {
				if g.upstreams[name] = trimmed; !had && strings.Count(trimmed, "/") == len("//") {
					g.upstreams[name] += "/" // a server without the usual prefix: paths stay as they are written
				}
			}
		}
	}
	return g
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
	} else {
		g.cut()
		<-g.done
	}
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
	if in := proxy.InterceptedOf(r); in != nil {
		name = in.Resource
	}
	d, err := g.door(name)
	if err != nil {
		http.Error(w, "sluice: "+err.Error(), http.StatusBadGateway)
		return
	}
	if g.user != "" && r.Header.Get(userHeader) == "" { // a base URL has no place for it
		r.Header.Set(userHeader, g.user)
	}
	d.ServeHTTP(w, r)
}

// userHeader names the user of a request. The proxy removes it.
const userHeader = "X-Sluice-User"

func (g *runGate) door(name string) (http.Handler, error) {
	if _, ok := g.file.Resources[name]; !ok {
		return nil, fmt.Errorf("unknown resource %.80q", name)
	}
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		return nil, errors.New("the gate is closed")
	}
	d := g.open[name]
	if d == nil {
		d = &openDoor{}
		g.open[name] = d
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
	if d.daemon, err = session.daemon(&daemon.Options{Upstreams: g.upstreams, Base: g.outlet.transport(), Behind: withinIntercept()}); err != nil {
		return nil, errors.Join(err, session.close())
	}
	d.session = session
	return d.daemon, nil
}

// variables returns the environment variables that point the child's clients to the gate, with the agent in the path.
func (g *runGate) variables(agent, class, user string) (vars []variable) {
	g.user = user // the child, whose requests read it, does not run yet
	if g.forward != nil {
		return g.forward.variables(agent, class)
	}
	who := url.PathEscape(agent)
	if class != "" {
		who += ":" + url.PathEscape(class)
	}
	for _, c := range clients {
		suffix := c.suffix
		if g.bare[c.variable] {
			suffix = ""
		}
		if name, ok := g.names[c.provider]; ok {
			vars = append(vars, variable{c.variable, fmt.Sprintf("http://%s/@%s/%s%s", g.listener.Addr(), who, url.PathEscape(name), suffix)})
		}
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} { // the gate is on this machine, and not behind a proxy
		if os.Getenv("HTTP_PROXY")+os.Getenv("http_proxy")+os.Getenv("ALL_PROXY")+os.Getenv("all_proxy") != "" {
			vars = append(vars, variable{name, strings.Trim(os.Getenv(name)+",127.0.0.1", ",")})
		}
	}
	return vars
}

// gated returns the resources that pass the gate.
func (g *runGate) gated() []string {
	if g.forward != nil {
		return g.forward.origins.Resources()
	}
	return slices.Sorted(maps.Values(g.names))
}

// at returns the address that the gate listens on.
func (g *runGate) at() string {
	if g.forward != nil {
		return g.forward.listener.Addr().String()
	}
	return g.listener.Addr().String()
}
