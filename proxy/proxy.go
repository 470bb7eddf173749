// Package proxy is the gate for programs that speak HTTP to a provider: they send to the proxy what they would
// send to the provider, and get what the provider answers. A request is held until it is its turn.
//
// The path says where a request goes, /RESOURCE/..., and may say who sends it, /@AGENT/RESOURCE/... or
// /@AGENT:CLASS/RESOURCE/.... docs/proxy.md has the rest.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/sluicehttp"
)

// DefaultDeadline is how long a client is held by default: its own patience is some minutes.
const DefaultDeadline = 10 * time.Minute

// Options describe a proxy.
type Options struct {
	Gate *sluice.Gate
	// Resources are those that can be reached, by name.
	Resources map[string]Resource
	// Classes are the names of the classes, highest first.
	Classes []string
	// Tokens let their bearers in, and say who they are. Where there are none everybody who can connect gets in.
	Tokens []Token
	// Hosts are names that clients may call the proxy by, besides those of this machine's loopback. Any other
	// is a web page's that was made to point here.
	Hosts []string
	// Via names the store: what has passed a gate of the same one is not charged again.
	Via string
	// Behind tells that what is sent passes the forward proxy of another gate of this machine, which is then told what has passed.
	Behind bool
	// Base sends requests. Nil means a transport of its own.
	Base http.RoundTripper
	// Done is told of every exchange that is over. It must not block.
	Done func(sluicehttp.Exchange)
	// Trace follows exchanges; see [sluicehttp.Transport].
	Trace func(r *http.Request, header http.Header) (end func(sluicehttp.Exchange))
	// Book is what is known of how far off estimates are. Nil means nothing yet.
	Book *estimate.Book
	// Users are those that tokens below the highest class must not speak for. Nil means only those of the configuration.
	Users *Users
	// Log is told what nobody else is. Nil means nothing is.
	Log *slog.Logger
	// Requests gets one line for each request: who sent it, where, how long it waited, its status, tokens and cost. It never has a key or
	// a body. Nil means there are no such lines.
	Requests *slog.Logger
}

// Resource is one that can be reached.
type Resource struct {
	Upstream *url.URL
	Dialect  provider.Dialect // nil: generic
	Limits   []sluice.Limit
	// Deadline is how long a client is held before it is told to come back. 0 means DefaultDeadline.
	Deadline time.Duration
	// KeepAlive is how often a stream that is held gets a sign of life, so that neither the client nor a load balancer drops it. 0, or as
	// long as Deadline and more, means never.
	KeepAlive time.Duration
	// Inject is a header, such as x-api-key, and its value, which requests are sent with: clients need no
	// key, but a token, or to come through a Unix socket.
	InjectHeader, InjectValue string
	// Keys are several keys or addresses that requests can go with: each takes the first that can go. Where they have keys, clients
	// need none, as with InjectHeader, which must be empty then.
	Keys []sluicehttp.Key
	// Free tells that the provider stops working for a client that is gone.
	Free bool
	// Overage lets lower classes use what the provider sells beyond a subscription's window.
	Overage bool
	Prices  func(model string, u *provider.Usage) (micros int64, known bool)
	Retry   retry.Policy
	// Letters keeps requests that were given up, with bodies of up to LetterBody bytes (0: 1 MiB). Nil means that they are not kept.
	Letters    *deadletter.Keeper
	LetterBody int64
	// Route chooses another model for a call, empty for that of the call. [Task] tells what the client says.
	Route func(ctx context.Context, c sluicehttp.Caller, asked *provider.ParsedRequest) (model string, err error)
}

// Proxy is an http.Handler.
type Proxy struct {
	gate     *sluice.Gate
	doors    map[string]*door
	byHost   map[string]*door
	classes  []string
	tokens   tokens
	hosts    map[string]bool
	via      string
	behind   bool
	log      *slog.Logger
	requests *slog.Logger // nil: requests are not logged
	trace    func(*http.Request, http.Header) func(sluicehttp.Exchange)
	book     *estimate.Book
	users    *Users
	sockets  sockets
}

// New makes a proxy.
func New(o Options) (*Proxy, error) {
	if o.Gate == nil {
		return nil, errors.New("proxy: there is no gate")
	}
	p := &Proxy{
		gate: o.Gate, doors: map[string]*door{}, byHost: map[string]*door{}, classes: o.Classes, hosts: map[string]bool{}, via: o.Via, behind: o.Behind, log: o.Log, requests: o.Requests, users: o.Users, trace: o.Trace,
	}
	p.sockets.ctx, p.sockets.cancel = context.WithCancel(context.Background())
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for _, h := range o.Hosts {
		p.hosts[strings.ToLower(h)] = true
	}
	var err error
	if p.tokens, err = newTokens(o.Tokens, o.Classes); err != nil {
		return nil, err
	}
	base := o.Base
	if base == nil {
		base = sluicehttp.Tuned()
	}
	if p.book = o.Book; p.book == nil {
		p.book = &estimate.Book{}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
		r := o.Resources[name]
		d, err := newDoor(p, name, r, base, p.book, o.Done)
		if err != nil {
			return nil, err
		}
		p.doors[name] = d
		if host := strings.ToLower(r.Upstream.Hostname()); p.byHost[host] == nil { // the first by name
			p.byHost[host] = d
		}
	}
	return p, nil
}

// ByHost reports that a request came through a Unix socket and says by the host's name where it goes.
func (p *Proxy) ByHost(r *http.Request) bool {
	return overSocket(r) && p.byHost[strings.ToLower(hostname(r.Host))] != nil
}

// Names are the resources that can be reached.
func (p *Proxy) Names() []string {
	names := make([]string, 0, len(p.doors))
	for name := range p.doors {
		names = append(names, name)
	}
	return names
}

// KeyLabels are the labels of the several keys of a resource; nil if it has none.
func (p *Proxy) KeyLabels(ctx context.Context, resource string) ([]string, error) {
	d := p.doors[resource]
	if d == nil || len(d.res.Keys) == 0 {
		return nil, nil
	}
	return d.gated.KeyLabels(ctx)
}

// Estimates is the book of estimates for all resources.
func (p *Proxy) Estimates() *estimate.Book { return p.book }

// Settle ends realtime connections, and the tickets of answers that were broken off, for which places are held for a while. Call it
// before the gate is closed.
func (p *Proxy) Settle() {
	p.sockets.settle()
	for _, d := range p.doors {
		d.gated.Settle()
	}
}

// ServeHTTP sends a request on when it is its turn.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var at place
	var f *refusal
	if in := InterceptedOf(r); in != nil {
		at, f = p.findIntercepted(in, r)
	} else if f = p.checkOrigin(r); f == nil {
		at, f = p.find(r)
	}
	if f == nil && hasDots(at.path) {
		f = refuse(http.StatusBadRequest, "the path has parts that lead elsewhere", "leave out . and ..")
	}
	if f != nil {
		p.deny(w, r, nil, f)
		return
	}
	bareProtocols(r)
	caller, f := p.identify(r, &at)
	if f != nil {
		p.deny(w, r, at.door, f)
		return
	}
	live := at.door.live(r, at.path)
	if f := checkProtocol(r); f != nil && live == nil {
		p.deny(w, r, at.door, f)
		return
	}
	if !at.door.observe { // else nobody is held because of others
		if parent := parentOf(r.Header); p.mayHold(r, parent) {
			defer p.link(r.Context(), caller.Agent, parent)()
		}
	}
	if live != nil {
		at.door.serveLive(w, r, at.path, caller, live)
		return
	}
	at.door.serve(w, r, at.path, caller)
}

// place is where a request goes.
type place struct {
	door  *door
	path  string // escaped, as the provider gets it
	agent string // as the path says
	class string
}

// find reads the path. On a Unix socket clients may not know of the proxy and say where they want to go
// by the host's name.
func (p *Proxy) find(r *http.Request) (at place, f *refusal) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	first, rest, _ := strings.Cut(path, "/")
	if who, ok := strings.CutPrefix(first, "@"); ok {
		name, err := url.PathUnescape(who)
		if err != nil || name == "" {
			return at, refuse(http.StatusBadRequest, "the path names no agent", "send to /@AGENT/RESOURCE/...")
		}
		at.agent, at.class, _ = strings.Cut(name, ":")
		first, rest, _ = strings.Cut(rest, "/")
	}
	name, err := url.PathUnescape(first)
	if err == nil {
		if at.door = p.doors[name]; at.door != nil {
			at.path = "/" + rest
			return at, nil
		}
	}
	if overSocket(r) {
		if at.door = p.byHost[strings.ToLower(hostname(r.Host))]; at.door != nil {
			at.path = r.URL.EscapedPath()
			return at, nil
		}
	}
	agent := ""
	if at.agent != "" {
		if agent = "/@" + at.agent; at.class != "" {
			agent += ":" + at.class
		}
	}
	return at, p.unknown(first, rest, agent)
}

func (p *Proxy) list() string {
	names := p.Names()
	if len(names) == 0 {
		return "none is configured with an upstream"
	}
	sortNames(names)
	return strings.Join(names, ", ")
}
