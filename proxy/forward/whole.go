package forward

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/framing"
)

// way holds the transport for requests with an absolute URL to hosts that are not gated. Clients on this machine have one
// of their own, so that others cannot reuse their connections.
type way struct {
	near    bool                             // for clients on this machine
	through func(*url.URL) (*url.URL, error) // the proxy to use; nil means none

	mu        sync.Mutex
	transport *http.Transport // nil before the first request
	roots     *x509.CertPool  // that it trusts
}

// to returns the transport, a new one if other certificates are to be trusted than before.
func (w *way) to(roots *x509.CertPool) *http.Transport {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.transport == nil || w.roots != roots {
		if w.transport != nil {
			w.transport.CloseIdleConnections()
		}
		w.transport, w.roots = w.open(roots), roots
	}
	return w.transport
}

func (w *way) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.transport != nil {
		w.transport.CloseIdleConnections()
	}
}

func (w *way) open(roots *x509.CertPool) *http.Transport {
	t := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		DialContext:         dialer(w.near).DialContext,
		MaxIdleConnsPerHost: 16, MaxIdleConns: 256, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	if w.through != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return w.through(r.URL) }
	}
	return t
}

// forward sends a request that is not gated to its host, and the response back.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, client Client) {
	by := s.near
	if client.Anonymous {
		by = s.bare
	}
	if !client.Near {
		if err := nameAllowed(r.URL.Hostname()); err != nil {
			refuseReach(w, r.URL.Host, err)
			return
		}
		if through, err := s.o.Proxy(r.URL); err == nil && through == nil {
			by = s.far
		}
	}
	p := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} { // pass on the client's own
				if v, ok := p.In.Header[name]; ok {
					p.Out.Header[name] = v
				}
			}
			for name := range p.Out.Header {
				if strings.HasPrefix(name, "X-Sluice-") { // for the gate alone: a token may be among them
					delete(p.Out.Header, name)
				}
			}
			p.Out.Host = p.In.Host
			if _, ok := p.In.Header["User-Agent"]; !ok {
				p.Out.Header["User-Agent"] = []string{""} // send none, instead of Go's default
			}
		},
		Transport: by.to(s.o.Roots()), FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuseReach(w, r.URL.Host, err) },
		ErrorLog:     s.outer.ErrorLog,
	}
	p.ServeHTTP(framing.Freed{ResponseWriter: w}, r)
}
