package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/sluicehttp"
)

// away serves the exchanges of the API: requests that clients send by themselves. An exchange ends on the generation it began on.
type away struct{ g *generation }

func (a away) ResourceAt(u *url.URL) string                  { return a.g.origins.At(u) }
func (a away) CannotSend(resource string) (why, hint string) { return a.g.proxy.CannotSend(resource) }
func (a away) Patience(resource string) time.Duration        { return a.g.proxy.Patience(resource) }
func (a away) Away(ctx context.Context, resource string, c sluicehttp.Caller, r *http.Request, w *wire.Away) (*http.Response, error) {
	return a.g.proxy.Away(ctx, resource, c, r, w)
}

// Stay keeps the generation. The request that calls it keeps it now.
func (a away) Stay() (leave func()) {
	a.g.users.Add(1)
	return a.g.leave
}

// Away gates a request that its client sends by itself; see [proxy.Proxy.Away]. Without a resource it is the one that the request's address
// belongs to. The response's body has to be closed.
func (d *Daemon) Away(ctx context.Context, resource string, c sluicehttp.Caller, r *http.Request, w *wire.Away) (*http.Response, error) {
	g := d.enter()
	resp, err := away{g}.send(ctx, resource, c, r, w)
	if err != nil {
		g.leave()
		return nil, err
	}
	resp.Body = &leaving{resp.Body, sync.OnceFunc(g.leave)}
	return resp, nil
}

func (a away) send(ctx context.Context, resource string, c sluicehttp.Caller, r *http.Request, w *wire.Away) (*http.Response, error) {
	if resource == "" {
		if resource = a.ResourceAt(r.URL); resource == "" {
			return nil, &sluice.Error{Err: sluice.ErrUnknownResource, Message: fmt.Sprintf("no resource has the address %s://%.200s", r.URL.Scheme, r.URL.Host), Hint: "name the resource"}
		}
	}
	if why, hint := a.CannotSend(resource); why != "" {
		return nil, &sluice.Error{Err: sluice.ErrInvalid, Resource: resource, Message: why, Hint: hint}
	}
	if c.Wait == 0 {
		c.Wait = a.Patience(resource)
	}
	return a.Away(ctx, resource, c, r, w)
}

// leaving is the body of a response that keeps its generation until it is closed.
type leaving struct {
	io.ReadCloser
	leave func()
}

func (l *leaving) Close() error {
	defer l.leave()
	return l.ReadCloser.Close()
}
