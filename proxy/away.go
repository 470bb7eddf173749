package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/sluicehttp"
)

// CannotSend says why clients cannot send requests to a resource by themselves. It is empty if they can.
func (p *Proxy) CannotSend(resource string) (why, hint string) {
	if d := p.doors[resource]; d != nil && (d.lends() || len(d.res.Keys) > 0) {
		return "the gate chooses the API key of " + resource + ", so its clients send through the gate",
			"set the client's base URL to the path /" + resource + " of this gate"
	}
	return "", ""
}

// Patience returns how long a client of a resource is held by default.
func (p *Proxy) Patience(resource string) time.Duration {
	if d := p.doors[resource]; d != nil {
		return d.res.Deadline
	}
	return DefaultDeadline
}

// Away gates a request that its client sends by itself: the transport of the resource waits for the turn, calls away.Send, judges the
// response, sends again where that helps, and settles the usage when the response's body was read or closed. The error is
// [sluice.ErrUnknownResource] if there is no such resource.
func (p *Proxy) Away(ctx context.Context, resource string, caller sluicehttp.Caller, r *http.Request, away *wire.Away) (*http.Response, error) {
	t := p.apart[resource]
	if d := p.doors[resource]; d != nil {
		t = d.gated
	}
	if t == nil {
		if _, err := p.gate.Resource(ctx, resource); err != nil {
			return nil, err
		}
		return nil, sluice.ErrUnknownResource
	}
	return t.RoundTrip(r.WithContext(wire.WithAway(sluicehttp.WithCaller(ctx, caller), away)))
}
