package forward

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/framing"
)

// transport returns the transport for requests with an absolute URL to hosts that are not gated. Clients on this
// machine have a separate transport, so that others cannot reuse their connections.
func (s *Server) transport(near bool, through func(*url.URL) (*url.URL, error)) *http.Transport {
	t := &http.Transport{
		DialContext:         dialer(near).DialContext,
		MaxIdleConnsPerHost: 16, MaxIdleConns: 256, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	if through != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return through(r.URL) }
	}
	return t
}

// forward sends a request that is not gated to its host, and the response back.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, client Client) {
	way := s.near
	if client.Anonymous {
		way = s.bare
	}
	if !client.Near {
		if err := nameAllowed(r.URL.Hostname()); err != nil {
			refuseReach(w, r.URL.Host, err)
			return
		}
		if through, err := s.o.Proxy(r.URL); err == nil && through == nil {
			way = s.far
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
		Transport: way, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuseReach(w, r.URL.Host, err) },
		ErrorLog:     s.outer.ErrorLog,
	}
	p.ServeHTTP(framing.Freed{ResponseWriter: w}, r)
}
