// Package proxy is the gate for programs that speak HTTP to a provider. They send their requests to the proxy, and get
// the provider's responses. The proxy holds each request until its turn.
//
// The path names the resource, /RESOURCE/..., and can name the sender, /@AGENT/RESOURCE/... or
// /@AGENT:CLASS/RESOURCE/.... docs/proxy.md describes the rest.
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
	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/internal/framing"
	"github.com/sluicehq/sluice/internal/loopback"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/sluicehttp"
)

// DefaultDeadline is how long a client is held by default. Clients usually wait for some minutes.
const DefaultDeadline = 10 * time.Minute

// Options configures a proxy.
type Options struct {
	Gate *sluice.Gate
	// Resources lists the resources that clients can reach, by name.
	Resources map[string]Resource
	// Apart lists the resources that have no upstream, by name. A request to one of them is told so; clients can only send by
	// themselves, in their turn ([Proxy.Away]).
	Apart map[string]Resource
	// Classes are the names of the classes, highest first.
	Classes []string
	// Tokens give access and identify their bearers. Without tokens, every client that can connect has access.
	Tokens []Token
	// Hosts lists the host names of the proxy, in addition to those of this machine's loopback. A request for any other
	// name comes from a web page whose name was made to point here, and is refused.
	Hosts []string
	// Via names the store: a request that has passed a gate of the same store is not charged again.
	Via string
	// Behind reports that requests pass the forward proxy of another gate on this machine; that gate is then told what
	// has passed.
	Behind bool
	// Base sends requests. Nil means a transport of the proxy's own.
	Base http.RoundTripper
	// Done is called with every finished exchange. It must not block.
	Done func(sluicehttp.Exchange)
	// Trace follows exchanges; see [sluicehttp.Transport].
	Trace func(r *http.Request, header http.Header) (end func(sluicehttp.Exchange))
	// Book records how far off token estimates are. Nil means a new book.
	Book *estimate.Book
	// Users holds the users that tokens below the highest class must not speak for. Nil means only those of the
	// configuration.
	Users *Users
	// Clients are the clients that requests are recognized by. Nil means those that come with this program.
	Clients *clients.Table
	// Log records events that have no other receiver. Nil means no log.
	Log *slog.Logger
	// Requests gets one line for each request: sender, resource, wait, status, tokens and cost. It never contains a key
	// or a body. Nil means no such log.
	Requests *slog.Logger
}

// Resource describes a resource that clients can reach.
type Resource struct {
	Upstream *url.URL
	Dialect  provider.Dialect // nil means generic
	Limits   []sluice.Limit
	// Deadline is how long a client is held before it gets a 429. 0 means DefaultDeadline.
	Deadline time.Duration
	// KeepAlive is how often a held stream gets a keep-alive event, so that neither the client nor a load balancer
	// drops it. 0, or a value of Deadline or more, means never.
	KeepAlive time.Duration
	// InjectHeader and InjectValue are a header, such as x-api-key, that the proxy adds to requests. Clients then need
	// no key, but a token or a Unix socket.
	InjectHeader, InjectValue string
	// Keys lists several keys or addresses to send requests with; each request uses the first one that has room. If
	// they hold keys, clients need none, as with InjectHeader, which must then be empty.
	Keys []sluicehttp.Key
	// Free reports that the provider stops working for a client that is gone.
	Free bool
	// Overage lets lower classes use what the provider sells beyond a subscription's window.
	Overage bool
	Prices  func(model string, u *provider.Usage) (micros int64, known bool)
	Retry   retry.Policy
	// Letters keeps given-up requests, with bodies of up to LetterBody bytes (0 means 1 MiB). Nil means that they are
	// not kept.
	Letters    *deadletter.Keeper
	LetterBody int64
	// Route chooses the model of a call; empty keeps the call's own. [Task] returns the client's wish.
	Route func(ctx context.Context, c sluicehttp.Caller, asked *provider.ParsedRequest) (model string, err error)
}

// Proxy is the http.Handler that gates requests. Create it with New.
type Proxy struct {
	gate     *sluice.Gate
	doors    map[string]*door
	byHost   map[string]*door
	apart    map[string]*sluicehttp.Transport // for resources without an upstream
	classes  []string
	tokens   tokens
	hosts    map[string]bool
	via      string
	behind   bool
	log      *slog.Logger
	requests *slog.Logger // nil means that requests are not logged
	trace    func(*http.Request, http.Header) func(sluicehttp.Exchange)
	book     *estimate.Book
	users    *Users
	clients  *clients.Table
	sockets  sockets
}

// New returns a proxy.
func New(o Options) (*Proxy, error) {
	if o.Gate == nil {
		return nil, errors.New("proxy: there is no gate")
	}
	p := &Proxy{
		gate: o.Gate, doors: map[string]*door{}, byHost: map[string]*door{}, apart: map[string]*sluicehttp.Transport{}, classes: o.Classes, hosts: map[string]bool{}, via: o.Via, behind: o.Behind, log: o.Log, requests: o.Requests, users: o.Users, trace: o.Trace,
		clients: o.Clients,
	}
	if p.clients == nil {
		p.clients = clients.Builtin()
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
	for name, r := range o.Apart {
		p.apart[name] = p.transport(name, &r, base, o.Done)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Resources)) {
		r := o.Resources[name]
		d, err := newDoor(p, name, r, base, o.Done)
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

// ByHost reports whether a request came through a Unix socket and names its resource by the host.
func (p *Proxy) ByHost(r *http.Request) bool {
	return loopback.Socket(r) && p.byHost[strings.ToLower(hostname(r.Host))] != nil
}

// Names returns the names of the resources that clients can reach, in no order.
func (p *Proxy) Names() []string {
	names := make([]string, 0, len(p.doors))
	for name := range p.doors {
		names = append(names, name)
	}
	return names
}

// KeyLabels returns the labels of a resource's keys, or nil if it does not have several.
func (p *Proxy) KeyLabels(ctx context.Context, resource string) ([]string, error) {
	d := p.doors[resource]
	if d == nil || len(d.res.Keys) == 0 {
		return nil, nil
	}
	return d.gated.KeyLabels(ctx)
}

// Estimates returns the book of estimates for all resources.
func (p *Proxy) Estimates() *estimate.Book { return p.book }

// Settle ends realtime connections, and closes the tickets that are still held for responses that were cut off. Call it
// before closing the gate.
func (p *Proxy) Settle() {
	p.sockets.settle()
	for _, d := range p.doors {
		d.gated.Settle()
	}
	for _, t := range p.apart {
		t.Settle()
	}
}

// ServeHTTP sends a request to its provider when its turn comes.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	framing.IgnoreHTTP2Offer(r)
	var at destination
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
		p.deny(w, r, at.door, f)
		return
	}
	bareProtocols(r)
	caller, f := p.identify(r, &at)
	if f != nil {
		p.deny(w, r, at.door, f)
		return
	}
	live := at.door.live(r, at.place)
	if f := checkProtocol(r); f != nil && live == nil {
		p.deny(w, r, at.door, f)
		return
	}
	if !at.door.observe { // in observe mode no request is held for others
		if parent := parentOf(r.Header); p.mayHold(r, parent) {
			defer p.reportParent(r.Context(), caller.Agent, parent)()
		}
	}
	if live != nil {
		at.door.serveLive(w, r, at.place, caller, live)
		return
	}
	at.door.serve(w, r, &at, caller)
}

// destination is where a request goes, and who sends it.
type destination struct {
	door  *door
	path  string // escaped, as the client sends it to the resource
	place string // escaped, as sent to the provider
	agent string // as the path names it
	class string
}

// find reads the path. Clients on a Unix socket may not know the proxy; they name the resource by the host.
func (p *Proxy) find(r *http.Request) (at destination, f *refusal) {
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
			at.path = slashed(path, rest)
			at.place, f = at.door.locate(at.path)
			return at, f
		}
	}
	if loopback.Socket(r) {
		if at.door = p.byHost[strings.ToLower(hostname(r.Host))]; at.door != nil {
			at.path = r.URL.EscapedPath()
			at.place = provider.JoinPath(at.door.base, at.path) // as for the provider's own address
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

// slashed returns rest, the end of path, with a slash before it. It takes the one of path if there is one, which needs
// no memory.
func slashed(path, rest string) string {
	if i := len(path) - len(rest) - 1; i >= 0 && path[i] == '/' {
		return path[i:]
	}
	return "/" + rest
}

func (p *Proxy) list() string {
	names := p.Names()
	if len(names) == 0 {
		return "none is configured with an upstream"
	}
	sortNames(names)
	return strings.Join(names, ", ")
}
