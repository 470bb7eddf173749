package proxy

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// CheckHost refuses requests that call the gate by a name that is not its own, as those of a web page do whose name was
// made to point here. The error is for the client.
func (p *Proxy) CheckHost(r *http.Request) error {
	if f := p.checkHost(r); f != nil {
		return errors.New(f.message)
	}
	return nil
}

// checkOrigin refuses what a web page sends: it would spend the key of whoever looks at it. A page of
// another site is told by its origin, one whose name was made to point here by the host that it asks for.
func (p *Proxy) checkOrigin(r *http.Request) *refusal {
	if f := checkPage(r); f != nil {
		return f
	}
	return p.checkHost(r)
}

// checkPage refuses what a web page sends, wherever it is sent to.
func checkPage(r *http.Request) *refusal {
	if origin := r.Header.Get("Origin"); origin != "" {
		return refuse(http.StatusForbidden, "web pages may not send through this gate", "send without an Origin header, from a program")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" {
		return refuse(http.StatusForbidden, "web pages may not send through this gate", "send from a program")
	}
	return nil
}

func (p *Proxy) checkHost(r *http.Request) *refusal {
	if overSocket(r) {
		return nil // no page gets there
	}
	host := strings.ToLower(hostname(r.Host))
	if isLoopback(host) || p.hosts[host] {
		return nil
	}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(addr.String()); err == nil && ap.Addr().Unmap().String() == host {
			return nil // by its own address: that is nobody's name
		}
	}
	return refuse(http.StatusMisdirectedRequest, "this gate is not called "+quoted(host), "use its address, or name it in the configuration")
}

// checkProtocol refuses what is no request and answer.
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

// hostname is a host without its port.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// isNear reports that a request comes from this machine.
func isNear(r *http.Request) bool {
	if overSocket(r) {
		return true
	}
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

// hasDots reports a path with parts that lead elsewhere.
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

// overSocket reports that a request came through a Unix socket.
func overSocket(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}
