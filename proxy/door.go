package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
)

// door leads to one resource.
type door struct {
	proxy   *Proxy
	name    string
	res     Resource
	speaker provider.Speaker // nil: it reads only answers
	forward httputil.ReverseProxy
	gated   *sluicehttp.Transport
	plain   http.RoundTripper // for what has passed a gate before
}

func newDoor(p *Proxy, name string, r Resource, base http.RoundTripper, book *estimate.Book, done func(sluicehttp.Exchange)) (*door, error) {
	if name == "" || strings.HasPrefix(name, "@") {
		return nil, fmt.Errorf("proxy: resource %q cannot be reached by a path", name)
	}
	if u := r.Upstream; u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("proxy: resource %s: the upstream has to be an http or https address", name)
	}
	if r.Dialect == nil {
		r.Dialect = provider.Generic{}
	}
	if r.Deadline <= 0 {
		r.Deadline = DefaultDeadline
	}
	d := &door{proxy: p, name: name, res: r, plain: base}
	d.speaker, _ = r.Dialect.(provider.Speaker)
	d.gated = &sluicehttp.Transport{
		Gate: p.gate, Resource: name, Dialect: r.Dialect, Limits: r.Limits, Base: base, Prices: r.Prices, Book: book,
		Retry: r.Retry, Abort: r.Free, Done: done, Route: r.Route,
	}
	d.forward = httputil.ReverseProxy{
		Rewrite: d.rewrite, BufferPool: buffers, ErrorHandler: d.failed, Transport: (*passage)(d),
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelInfo),
	}
	return d, nil
}

// visit is what a request carries through.
type visit struct {
	caller sluicehttp.Caller
	path   string
	passed bool   // through a gate of the same store
	task   string // for which the model is to be chosen
}

type visitKey struct{}

func (d *door) serve(w http.ResponseWriter, r *http.Request, path string, caller sluicehttp.Caller) {
	v := &visit{caller: caller, path: path, passed: d.hasPassed(r), task: r.Header.Get(headerRoute)}
	ctx := context.WithValue(r.Context(), visitKey{}, v)
	d.forward.ServeHTTP(w, r.WithContext(sluicehttp.WithCaller(ctx, caller)))
}

// Task is the kind of task that a client has chosen a model for by a header, empty if it has not.
func Task(ctx context.Context) string {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.task
	}
	return ""
}

// hasPassed reports that a gate of the same store has let the request through. Where the key is the
// proxy's own, that is nothing a client may say.
func (d *door) hasPassed(r *http.Request) bool {
	return d.proxy.via != "" && d.res.InjectHeader == "" && slices.Contains(r.Header.Values(headerVia), d.proxy.via)
}

// rewrite makes of a request to the proxy one to the provider.
func (d *door) rewrite(pr *httputil.ProxyRequest) {
	v := pr.In.Context().Value(visitKey{}).(*visit)
	up := d.res.Upstream
	u := *up
	escaped := joinPath(up.EscapedPath(), v.path)
	if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
	} else {
		u.Path, u.RawPath = escaped, ""
	}
	u.RawQuery = pr.In.URL.RawQuery // as it came, whatever it means
	if up.RawQuery != "" {
		u.RawQuery = strings.Trim(up.RawQuery+"&"+u.RawQuery, "&")
	}
	pr.Out.URL, pr.Out.Host = &u, ""
	for name := range pr.Out.Header {
		if strings.HasPrefix(name, headerPrefix) {
			delete(pr.Out.Header, name)
		}
	}
	d.proxy.tokens.strip(pr.Out.Header)
	if d.res.InjectHeader != "" {
		for _, name := range keyHeaders {
			pr.Out.Header.Del(name)
		}
		pr.Out.Header.Set(d.res.InjectHeader, d.res.InjectValue)
	}
	if d.proxy.via != "" && isLoopback(up.Hostname()) { // it may be another gate; a provider need not see it
		pr.Out.Header.Set(headerVia, d.proxy.via)
	}
}

// joinPath joins two escaped paths with one slash.
func joinPath(a, b string) string {
	return strings.TrimSuffix(a, "/") + "/" + strings.TrimPrefix(b, "/")
}

// passage sends a request through the gate, if it has not been there.
type passage door

func (p *passage) RoundTrip(r *http.Request) (*http.Response, error) {
	if v, ok := r.Context().Value(visitKey{}).(*visit); ok && v.passed {
		return p.plain.RoundTrip(r)
	}
	return p.gated.RoundTrip(r)
}

// failed answers in the provider's place.
func (d *door) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		return // nobody is there to be told
	}
	f := refusalOf(err)
	d.proxy.log.Warn("not sent on", "resource", d.name, "status", f.status, "reason", f.message)
	f.write(w, d)
}

// buffers are for copying bodies.
var buffers httputil.BufferPool = &bufferPool{pool: sync.Pool{New: func() any { return new([bufferSize]byte) }}}

const bufferSize = 32 << 10

type bufferPool struct{ pool sync.Pool }

func (b *bufferPool) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }
func (b *bufferPool) Put(p []byte) {
	if len(p) == bufferSize {
		b.pool.Put((*[bufferSize]byte)(p))
	}
}
