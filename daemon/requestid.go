package daemon

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/internal/requestid"
)

// name sets the request id in the response header, for requests that the daemon answers itself. Responses that the
// proxy passes back carry the provider's own ids, which clients read, so nothing is added to them. Where the proxy
// refuses a request, it sets the id itself.
func name(w http.ResponseWriter, r *http.Request) {
	if own(r.URL.Path) {
		requestid.Set(w.Header(), r)
	}
}

// own reports whether the daemon answers a path itself.
func own(path string) bool {
	switch path {
	case "/", "/healthz", "/readyz", "/metrics", "/mcp":
		return true
	}
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/page/") || strings.HasPrefix(path, "/-/")
}

// refuse logs a problem and sends it as the response.
func (d *Daemon) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	d.log.Debug("refused", "request_id", w.Header().Get(requestid.Header), "method", r.Method, "path", fmt.Sprintf("%.200s", r.URL.Path), "status", p.Status, "reason", p.Detail)
	p.Write(w)
}
