package daemon

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/internal/requestid"
)

// name gives a request that the daemon answers itself its id, which the answer carries from then on. What the proxy passes back is the
// provider's, with ids of the provider's own that clients read: nothing is added to it. Where the proxy refuses, it names the request itself.
func name(w http.ResponseWriter, r *http.Request) {
	if own(r.URL.Path) {
		requestid.Set(w.Header(), r)
	}
}

// own reports a path that the daemon answers, and not the proxy.
func own(path string) bool {
	switch path {
	case "/", "/healthz", "/readyz", "/metrics", "/mcp":
		return true
	}
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/page/") || strings.HasPrefix(path, "/-/")
}

// refuse answers with a problem, and says so in the log.
func (d *Daemon) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	d.log.Debug("refused", "request_id", w.Header().Get(requestid.Header), "method", r.Method, "path", fmt.Sprintf("%.200s", r.URL.Path), "status", p.Status, "reason", p.Detail)
	p.Write(w)
}
