package daemon

import (
	"context"
	"net/http"
	"net/url"
	"time"

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
