package proxy

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/sluicehq/sluice/internal/loopback"
)

// CheckHost refuses requests for a host name that is not the gate's own. Such requests come from web pages whose name
// was made to point here (DNS rebinding). The error is for the client.
func (p *Proxy) CheckHost(r *http.Request) error {
	if f := p.checkHost(r); f != nil {
		return errors.New(f.message)
	}
	return nil
}

// checkOrigin refuses requests of web pages, which would spend the key of the person who views them. A page of another
// site is recognized by its origin, and a page whose name was made to point here by its host.
func (p *Proxy) checkOrigin(r *http.Request) *refusal {
	if f := checkPage(r); f != nil {
		return f
	}
	return p.checkHost(r)
}

// checkPage refuses requests of web pages, whatever host they name.
func checkPage(r *http.Request) *refusal {
	if origin := get(r.Header, "Origin"); origin != "" {
		return refuse(http.StatusForbidden, "web pages may not send through this gate", "send without an Origin header, from a program")
	}
	if site := get(r.Header, "Sec-Fetch-Site"); site != "" && site != "none" {
		return refuse(http.StatusForbidden, "web pages may not send through this gate", "send from a program")
	}
	return nil
}

func (p *Proxy) checkHost(r *http.Request) *refusal {
	if loopback.Socket(r) {
		return nil // a web page cannot reach a Unix socket
	}
	host := strings.ToLower(hostname(r.Host))
	if loopback.Host(host) || p.hosts[host] {
		return nil
	}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(addr.String()); err == nil && ap.Addr().Unmap().String() == host {
			return nil // the request uses the gate's own address, which cannot be a page's host name
		}
	}
	return refuse(http.StatusMisdirectedRequest, "this gate is not called "+quoted(host), "use its address, or name it in the configuration")
}

// checkProtocol refuses WebSockets and tunnels that cannot be metered, and TRACE.
func checkProtocol(r *http.Request) *refusal {
	switch {
	case isUpgrade(r), r.Method == http.MethodConnect:
		return refuse(http.StatusNotImplemented, "this WebSocket or tunnel cannot be metered and does not pass this gate",
			"turn it off in the client: plain requests, streamed answers and known realtime connections pass")
	case r.Method == http.MethodTrace:
		return refuse(http.StatusMethodNotAllowed, "TRACE would show the key", "use another method")
	}
	return nil
}

// hostname returns a host without its port.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

// hasDots reports whether a path contains . or .. segments, which lead elsewhere.
func hasDots(escaped string) bool {
	if !strings.ContainsAny(escaped, ".%") {
		return false
	}
	for part := range strings.SplitSeq(escaped, "/") {
		plain, err := url.PathUnescape(part)
		if err != nil || plain == "." || plain == ".." || strings.Contains(plain, "/../") || strings.HasPrefix(plain, "../") || strings.HasSuffix(plain, "/..") {
			return true
		}
	}
	return false
}
