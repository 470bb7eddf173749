package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/loopback"
	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
)

// bodies bounds the memory that bodies of waiting requests take in this process.
var bodies = &sluicehttp.Bodies{Max: 256 << 20}

// door sends requests to one resource.
type door struct {
	proxy   *Proxy
	name    string
	res     Resource
	speaker provider.Speaker // nil if the dialect reads only responses
	locator provider.Locator // nil if the dialect does not know the provider's paths
	base    string           // the upstream's path, escaped
	near    bool             // the upstream is on this machine
	observe bool             // requests are counted but never held
	via     string           // marks requests that have passed this gate; empty means no mark
	next    bool             // the upstream may be another gate, which needs the mark; in observe mode only if its path begins with /@, as a gate's does
	gated   *sluicehttp.Transport
	plain   http.RoundTripper // for requests that have already passed a gate
}

func newDoor(p *Proxy, name string, r Resource, base http.RoundTripper, done func(sluicehttp.Exchange)) (*door, error) {
	if name == "" || strings.HasPrefix(name, "@") {
		return nil, fmt.Errorf("proxy: resource %q cannot be reached by a path", name)
	}
	if u := r.Upstream; u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("proxy: resource %s: the upstream has to be an http or https address", name)
	}
	t := p.transport(name, &r, base, done)
	d := &door{proxy: p, name: name, res: r, plain: base, gated: t}
	d.speaker, _ = r.Dialect.(provider.Speaker)
	d.locator, _ = r.Dialect.(provider.Locator)
	if d.observe = inside.Of(p.gate).Observes(name); !d.observe {
		d.plain = once{base}
	}
	d.base, d.near = r.Upstream.EscapedPath(), loopback.Host(r.Upstream.Hostname())
	if p.via != "" { // another resource of the same store is another pool
		sum := sha256.Sum256([]byte(p.via + "\x00" + name + d.mode()))
		d.via = hex.EncodeToString(sum[:12])
	}
	d.next = d.via != "" && (d.near || p.behind) && (!d.observe || strings.HasPrefix(d.base, "/@"))
	return d, nil
}

// transport returns the gated transport of a resource, and fills in what r leaves out.
func (p *Proxy) transport(name string, r *Resource, base http.RoundTripper, done func(sluicehttp.Exchange)) *sluicehttp.Transport {
	if r.Dialect == nil {
		r.Dialect = provider.Generic{}
	}
	if r.Deadline <= 0 {
		r.Deadline = DefaultDeadline
	}
	return &sluicehttp.Transport{
		Gate: p.gate, Resource: name, Dialect: r.Dialect, Limits: r.Limits, Base: base, Prices: r.Prices, Book: p.book,
		Retry: r.Retry, Abort: r.Free, Overage: r.Overage, Done: p.logged(done), Trace: p.trace, Route: r.Route, Keys: r.Keys, Upstream: r.Upstream,
		Bodies: bodies, Letters: r.DeadLetters(),
	}
}

// DeadLetters returns where given-up requests of the resource are kept, or nil if they are not kept.
func (r Resource) DeadLetters() *sluicehttp.Letters {
	if r.Letters == nil || r.Upstream == nil {
		return nil
	}
	l := &sluicehttp.Letters{Keeper: r.Letters, MaxBody: r.LetterBody, Base: r.Upstream.EscapedPath()}
	if r.InjectHeader != "" { // keys of a ring are added after the request was kept
		l.Secrets = []string{r.InjectHeader}
	}
	return l
}

// mode distinguishes the pool of observe mode from that of gate mode: a request that was only observed must not pass
// another gate unmetered.
func (d *door) mode() string {
	if d.observe {
		return "\x00observe"
	}
	return ""
}

// visit carries facts about a request that only the proxy knows.
type visit struct {
	task string // the kind of task to choose the model for
}

type visitKey struct{}

// Task returns the kind of task that the client named in a header for the choice of a model, or "".
func Task(ctx context.Context) string {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.task
	}
	return ""
}

// serve sends a request to the provider and the response back. The request passes the gate unless it already passed
// one.
func (d *door) serve(w http.ResponseWriter, r *http.Request, at *destination, caller sluicehttp.Caller) {
	caller.RequestID = requestid.Of(r)
	ctx := sluicehttp.WithCaller(r.Context(), caller)
	if task := get(r.Header, headerRoute); task != "" {
		ctx = context.WithValue(ctx, visitKey{}, &visit{task: task})
	}
	way, passed := http.RoundTripper(d.gated), d.hasPassed(r)
	if passed {
		way = d.plain
	}
	body := &clientBody{ReadCloser: r.Body, cut: func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) }}
	if r.Body != nil && r.Body != http.NoBody {
		// The server must find its own body in its request: otherwise it takes the rest of a body that was not read to its
		// end for the next request.
		own := *r
		own.Body = body
		r = &own
	}
	var alive *keepAlive
	if !passed {
		alive = d.keepAlive(w, r, caller.RequestID)
	}
	if alive != nil {
		caller.Parsed = alive.keep
		ctx = sluicehttp.WithCaller(ctx, caller)
	}
	began := time.Now()
	resp, err := way.RoundTrip(d.rewrite(ctx, r, at.place))
	if alive.end() {
		d.serveHeld(alive, r, resp, err)
		return
	}
	if passed {
		d.proxy.logPassed(d.name, &caller, began, resp)
	}
	if err != nil && body.failed.Load() && (r.Context().Err() == nil || body.stalled.Load()) { // a read that was cut ends the context
		w.Header().Set("Connection", "close") // it is unknown where the next request begins
		d.proxy.answer(w, caller.RequestID, d, body.refusal())
		return
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols { // only on the plain way: the gated one checks this itself
		_ = resp.Body.Close()
		err = sluicehttp.ErrSwitched
	}
	if err != nil {
		d.failed(w, r, caller.RequestID, err)
		return
	}
	d.relink(r, at.path, resp.Header)
	d.passBack(w, caller.RequestID, resp)
}

// serveHeld completes a response that began while its request was held.
func (d *door) serveHeld(k *keepAlive, r *http.Request, resp *http.Response, err error) {
	switch {
	case err == nil:
		k.pass(resp)
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // the client is gone
	default:
		k.refuse(refusalOf(err))
	}
}

// relink rewrites the provider's addresses in a response header so that they point to the gate. A client that follows
// them, page by page, then passes the gate too. Clients that do not know the gate keep the addresses they use.
func (d *door) relink(r *http.Request, path string, h http.Header) {
	if len(h["Link"])+len(h["Location"])+len(h["Content-Location"]) == 0 {
		return
	}
	from, to := d.prefixes(r, path)
	if from == "" {
		return
	}
	for _, name := range []string{"Link", "Location", "Content-Location"} {
		for i, v := range h[name] {
			if strings.Contains(v, from) {
				h[name] = slices.Clone(h[name])
				h[name][i] = strings.ReplaceAll(v, from, to)
			}
		}
	}
}

// prefixes returns the prefix of the upstream's addresses, and the prefix that replaces it for the client. Both are empty
// if the client reaches the upstream under its own address.
func (d *door) prefixes(r *http.Request, path string) (from, to string) {
	if in := InterceptedOf(r); in != nil {
		return d.relinkIntercepted(in)
	}
	here, ok := strings.CutSuffix(r.URL.EscapedPath(), path)
	if !ok || loopback.Socket(r) {
		return "", ""
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.TrimSuffix(d.res.Upstream.String(), "/") + "/", scheme + "://" + r.Host + strings.TrimSuffix(here, "/") + "/"
}

// hasPassed reports whether a gate of the same store has already let the request through. If the proxy adds its own
// key, it does not believe a client that claims this.
func (d *door) hasPassed(r *http.Request) bool {
	return d.via != "" && !d.lends() && len(d.res.Keys) == 0 && len(d.proxy.tokens) == 0 && slices.Contains(r.Header[headerVia], d.via) && loopback.Request(r)
}

// lends reports whether requests go with the gate's own keys.
func (d *door) lends() bool {
	return d.res.InjectHeader != "" || len(d.res.Keys) > 0 && d.res.Keys[0].Header != ""
}

// rewrite converts a request to the proxy into one to the provider, at an escaped path.
func (d *door) rewrite(ctx context.Context, r *http.Request, place string) *http.Request {
	out := (&http.Request{
		Method: r.Method, URL: d.address(r, place), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(r.Header)+2), Body: r.Body, ContentLength: r.ContentLength, Trailer: d.trailer(r),
	}).WithContext(ctx)
	if r.ContentLength == 0 {
		out.Body = nil // no body: such a request can be sent again
	}
	copyHeader(out.Header, r.Header, func(name string) bool { return strings.HasPrefix(name, headerPrefix) })
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // send none, instead of Go's default
	}
	if slices.Contains(r.Header["Te"], "trailers") {
		out.Header["Te"] = []string{"trailers"}
	}
	d.proxy.tokens.strip(out.Header)
	if d.lends() {
		for _, name := range keyHeaders {
			out.Header.Del(name)
		}
	}
	if d.res.InjectHeader != "" {
		out.Header.Set(d.res.InjectHeader, d.res.InjectValue)
	}
	if d.next { // a provider need not see it
		out.Header[headerVia] = []string{d.via}
	}
	return out
}

// trailer returns the trailers to pass on. The client must have announced them, and they must say nothing about the
// connection, the sender or the body. Their values come with the end of the body.
func (d *door) trailer(r *http.Request) http.Header {
	body, ok := r.Body.(*clientBody)
	if !ok || len(r.Trailer) == 0 {
		return nil
	}
	to := http.Header{}
	for name := range r.Trailer {
		if !hopByHop[name] && !strings.HasPrefix(name, headerPrefix) && !strings.HasPrefix(name, "Content-") && name != "Host" && !slices.Contains(keyHeaders, name) &&
			name != http.CanonicalHeaderKey(d.res.InjectHeader) {
			to[name] = nil
		}
	}
	body.ended = func() {
		for name := range to {
			to[name] = r.Trailer[name]
		}
	}
	return to
}

// address returns the URL that a request goes to. The query stays exactly as it came.
func (d *door) address(r *http.Request, escaped string) *url.URL {
	u := *d.res.Upstream
	if !strings.Contains(escaped, "%") {
		u.Path, u.RawPath = escaped, ""
	} else if plain, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = plain, escaped
	} else {
		u.Path, u.RawPath = escaped, ""
	}
	query := r.URL.RawQuery
	if _, ours := d.proxy.tokens.query(r); ours || d.lends() {
		query = withoutKey(query)
	}
	switch {
	case u.RawQuery == "":
		u.RawQuery = query
	case query != "":
		u.RawQuery += "&" + query
	}
	return &u
}

// withoutKey removes API keys from a query, because the gate's own key is sent.
func withoutKey(query string) string {
	if !strings.Contains(query, "key") && !strings.Contains(query, "%") { // a name may be escaped
		return query
	}
	parts := strings.Split(query, "&")
	parts = slices.DeleteFunc(parts, func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		return err != nil || plain == "key" || plain == "api_key" || plain == "api-key"
	})
	return strings.Join(parts, "&")
}

// failed responds with an error in place of the provider.
func (d *door) failed(w http.ResponseWriter, r *http.Request, id string, err error) {
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		panic(http.ErrAbortHandler) // the client is gone, or got half a response: it must not look like a whole one
	}
	d.proxy.answer(w, id, d, refusalOf(upstream.At(err, d.res.Upstream.Host)))
}
