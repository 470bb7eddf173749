package proxy

import (
	"context"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/internal/loopback"
)

// Intercepted describes a request that its client sent to the provider's own address and that a forward proxy (package
// proxy/forward) decrypted. It replaces the path and host that other requests are routed by.
type Intercepted struct {
	Resource string // the resource that the address belongs to
	Path     string // the escaped path at the upstream, with the upstream's own part
	// Address is the address at which the client reaches the upstream, such as https://api.github.com. Empty means that
	// it is the upstream's own.
	Address string
	// Own says that the request goes to the upstream of the configuration, whatever variables say.
	Own   bool
	Agent string // the agent that the client's credentials name; empty means that the headers may name one
	Class string
	Token string // the token in the client's credentials; empty means that the headers may hold one
	// Trusted marks a client that is identified by a secret of its own: it needs no token, and may use keys of the
	// gate.
	Trusted bool
}

type interceptedKey struct{}

// WithIntercepted returns a context for a request that was intercepted.
func WithIntercepted(ctx context.Context, in *Intercepted) context.Context {
	return context.WithValue(ctx, interceptedKey{}, in)
}

// InterceptedOf returns how a request was intercepted, or nil if its client sent it to the gate.
func InterceptedOf(r *http.Request) *Intercepted {
	in, _ := r.Context().Value(interceptedKey{}).(*Intercepted)
	return in
}

// isTrusted reports whether a client needs no token.
func isTrusted(r *http.Request) bool {
	in := InterceptedOf(r)
	return loopback.Socket(r) || in != nil && in.Trusted
}

// findIntercepted is find for a request to the provider's own address.
func (p *Proxy) findIntercepted(in *Intercepted, r *http.Request) (at destination, f *refusal) {
	at = destination{door: p.doors[in.Resource], path: in.Path, place: in.Path, agent: in.Agent, class: in.Class}
	if at.door == nil {
		return at, refuse(http.StatusBadGateway, "unknown resource "+quoted(in.Resource), "the configuration has changed; connect again")
	}
	if !at.door.lends() {
		return at, nil // a web page spends only its own key
	}
	return at, checkPage(r)
}

// relinkIntercepted returns the prefixes that rewrite addresses of the upstream to the address that the client uses.
func (d *door) relinkIntercepted(in *Intercepted) (from, to string) {
	if in.Address == "" {
		return "", ""
	}
	return strings.TrimSuffix(d.res.Upstream.String(), "/") + "/", strings.TrimSuffix(in.Address, "/") + "/"
}
