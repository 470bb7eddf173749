package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
)

// door leads to one resource.
type door struct {
	proxy   *Proxy
	name    string
	res     Resource
	speaker provider.Speaker // nil: it reads only answers
	base    string           // the upstream's path, escaped
	near    bool             // it is on this machine
	observe bool             // requests are counted, and go as they came
	via     string           // what is said of requests that have passed; empty: nothing
	next    bool             // the upstream may be another gate, which is to be told; one that observes tells only what names itself a gate
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
		Retry: r.Retry, Abort: r.Free, Overage: r.Overage, Done: p.logged(done), Trace: p.trace, Route: r.Route, Keys: r.Keys, Upstream: r.Upstream,
	}
	d.gated.Letters = r.DeadLetters()
	d.observe = inside.Of(p.gate).Observes(name)
	d.base, d.near = r.Upstream.EscapedPath(), isLoopback(r.Upstream.Hostname())
	if p.via != "" { // another resource of the same store is another pool
		sum := sha256.Sum256([]byte(p.via + "\x00" + name + d.mode()))
		d.via = hex.EncodeToString(sum[:12])
	}
	d.next = d.via != "" && (d.near || p.behind) && (!d.observe || strings.HasPrefix(d.base, "/@"))
	return d, nil
}

// DeadLetters keeps requests of the resource that were given up. It is nil if they are not kept.
func (r Resource) DeadLetters() *sluicehttp.Letters {
	if r.Letters == nil {
		return nil
	}
	l := &sluicehttp.Letters{Keeper: r.Letters, MaxBody: r.LetterBody, Base: r.Upstream.EscapedPath()}
	if r.InjectHeader != "" { // keys of a ring are put in behind what is kept
		l.Secrets = []string{r.InjectHeader}
	}
	return l
}

// mode tells the pool of the mode observe from that of the mode gate: what was only observed is not let through anywhere.
func (d *door) mode() string {
	if d.observe {
		return "\x00observe"
	}
	return ""
}

// visit is what a request carries through that only the proxy knows of.
type visit struct {
	task string // for which the model is to be chosen
}

type visitKey struct{}

// Task is the kind of task that a client has chosen a model for by a header, empty if it has not.
func Task(ctx context.Context) string {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v.task
	}
	return ""
}

// serve sends a request on, through the gate if it has not passed one, and its answer back.
func (d *door) serve(w http.ResponseWriter, r *http.Request, path string, caller sluicehttp.Caller) {
	caller.RequestID = requestid.Of(r)
	ctx := sluicehttp.WithCaller(r.Context(), caller)
	if task := r.Header.Get(headerRoute); task != "" {
		ctx = context.WithValue(ctx, visitKey{}, &visit{task: task})
	}
	way, passed := http.RoundTripper(d.gated), d.hasPassed(r)
	if passed {
		way = d.plain
	}
	body := &clientBody{ReadCloser: r.Body}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = body
	}
	var alive *keepAlive
	if event := d.sign(r); event != nil && !passed {
		alive = &keepAlive{door: d, event: event, every: d.res.KeepAlive, id: caller.RequestID, w: w}
		caller.Parsed = alive.keep
		ctx = sluicehttp.WithCaller(ctx, caller)
	}
	began := time.Now()
	resp, err := way.RoundTrip(d.rewrite(ctx, r, path))
	if alive.end() {
		d.serveHeld(alive, r, resp, err)
		return
	}
	if passed {
		d.proxy.logPassed(d.name, &caller, began, resp)
	}
	if err != nil && body.failed.Load() && r.Context().Err() == nil {
		d.proxy.answer(w, caller.RequestID, d, refuse(http.StatusBadRequest, "the request's body is malformed or incomplete", "look at its chunks and its Content-Length"))
		return
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols { // by the plain way: the gated one has looked
		_ = resp.Body.Close()
		err = sluicehttp.ErrSwitched
	}
	if err != nil {
		d.failed(w, r, caller.RequestID, err)
		return
	}
	d.relink(r, path, resp.Header)
	passBack(w, resp)
}

// serveHeld ends an answer that has begun while its request was held.
func (d *door) serveHeld(k *keepAlive, r *http.Request, resp *http.Response, err error) {
	switch {
	case err == nil:
		k.pass(resp)
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // nobody is there to be told
	default:
		k.refuse(refusalOf(err))
	}
}

// clientBody notes that the client's body could not be read: then the provider is not to blame.
type clientBody struct {
	io.ReadCloser
	failed atomic.Bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.failed.Store(true)
	}
	return n, err
}

// relink points addresses of the provider's in an answer's header to the gate: who follows them, page by page, should pass it
// too. Clients that know nothing of the gate go on as they came.
func (d *door) relink(r *http.Request, path string, h http.Header) {
	if len(h["Link"])+len(h["Location"])+len(h["Content-Location"]) == 0 {
		return
	}
	from, to := d.links(r, path)
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

// links returns what addresses of the upstream begin with, and what they begin with for the client. Both are empty where the client
// reaches the upstream under its own address.
func (d *door) links(r *http.Request, path string) (from, to string) {
	if in := InterceptedOf(r); in != nil {
		return d.relinkIntercepted(in)
	}
	here, ok := strings.CutSuffix(r.URL.EscapedPath(), path)
	if !ok || overSocket(r) {
		return "", ""
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.TrimSuffix(d.res.Upstream.String(), "/") + "/", scheme + "://" + r.Host + strings.TrimSuffix(here, "/") + "/"
}

// hasPassed reports that a gate of the same store has let the request through. Where the key is the
// proxy's own, that is nothing a client may say.
func (d *door) hasPassed(r *http.Request) bool {
	return d.via != "" && !d.lends() && len(d.res.Keys) == 0 && len(d.proxy.tokens) == 0 && slices.Contains(r.Header[headerVia], d.via) && isNear(r)
}

// lends reports that requests go with keys of the gate's own.
func (d *door) lends() bool {
	return d.res.InjectHeader != "" || len(d.res.Keys) > 0 && d.res.Keys[0].Header != ""
}

// rewrite makes of a request to the proxy one to the provider.
func (d *door) rewrite(ctx context.Context, r *http.Request, path string) *http.Request {
	out := (&http.Request{
		Method: r.Method, URL: d.address(r, path), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(r.Header)+2), Body: r.Body, ContentLength: r.ContentLength, Trailer: r.Trailer,
	}).WithContext(ctx)
	if r.ContentLength == 0 {
		out.Body = nil // there is none, and a request without one can be sent again
	}
	copyHeader(out.Header, r.Header, func(name string) bool { return strings.HasPrefix(name, headerPrefix) })
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // none, and not ours
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

// address is where a request goes. Path and query stay as they came, whatever they mean.
func (d *door) address(r *http.Request, path string) *url.URL {
	u := *d.res.Upstream
	escaped := path
	if InterceptedOf(r) == nil {
		escaped = joinPath(d.base, path)
	}
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

// withoutKey takes a key out of a query: the gate's is sent.
func withoutKey(query string) string {
	if !strings.Contains(query, "key") {
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

// joinPath joins two escaped paths with one slash.
func joinPath(a, b string) string {
	return strings.TrimSuffix(a, "/") + "/" + strings.TrimPrefix(b, "/")
}

// failed answers in the provider's place.
func (d *door) failed(w http.ResponseWriter, r *http.Request, id string, err error) {
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		panic(http.ErrAbortHandler) // nobody is there to be told, or only half: it must not look like an answer
	}
	d.proxy.answer(w, id, d, refusalOf(err))
}
