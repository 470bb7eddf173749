// Package sluicehttp lets any http.Client go through a gate. [Transport] waits for the client's turn, sends
// the request, tells the gate what the answer says of limits, tries again where that is safe, and settles what
// the answer really used when it has been read.
//
//	client := &http.Client{Transport: &sluicehttp.Transport{
//		Gate: gate, Resource: "github", Dialect: provider.GitHub{}, Limits: limits,
//		Caller: sluicehttp.Caller{Agent: "indexer", Class: sluice.P1},
//	}}
//
// What is sent and what the client reads is what came, byte for byte, with the few exceptions that docs/http.md
// names.
package sluicehttp

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
)

// HeaderModel is the header of an answer that names the model which [Transport.Route] chose.
const HeaderModel = "X-Sluice-Model"

// Transport is an [http.RoundTripper] that does everything. Gate and Resource are needed. Its fields must not be
// changed once it is in use, and it must not be copied.
type Transport struct {
	Gate     *sluice.Gate
	Resource string
	// Dialect reads what the provider says. Nil means generic.
	Dialect provider.Dialect
	// Limits are those of the resource, so that what answers state is mapped to them. Nil means that
	// nobody knows: then nothing that is stated is, and an answer that was broken off keeps its place as if
	// there were a limit of concurrency.
	Limits []sluice.Limit
	// Base sends requests. Nil means [Tuned]. One that does not support net/http/httptrace cannot tell what was
	// sent: then every request counts as sent.
	Base http.RoundTripper
	// Caller is who sends, where the request's context does not say.
	Caller Caller
	// Prices is what a usage costs, in millionths of a dollar; known is false if that is a guess. Nil means
	// that money is not counted.
	Prices func(model string, u *provider.Usage) (micros int64, known bool)
	// Book estimates tokens. Nil means one of its own.
	Book *estimate.Book
	// Retry is how often and how long a request is tried. Attempts 1 means once.
	Retry retry.Policy
	// Abort tells that the provider stops when its client goes: the place of an answer that was broken off
	// is free at once, else after the usual time.
	Abort bool
	// Overage lets lower classes go on when a subscription's window is used up and the provider sells what is beyond it. Without it
	// they wait for the reset.
	Overage bool
	// Done is told when an exchange is over, for metrics and logs. It must not block.
	Done func(Exchange)
	// Trace is told when an exchange begins and returns what is to be told when it is over. What it puts into header goes out with the
	// request, except where the gate only observes. Nil means that nothing is traced.
	Trace func(r *http.Request, header http.Header) (end func(Exchange))
	// Letters keeps requests that were given up. Nil means that they are not kept.
	Letters *Letters
	// Route chooses another model for a call. Empty means that of the call. After an error nothing is sent.
	Route func(ctx context.Context, c Caller, asked *provider.ParsedRequest) (model string, err error)
	// Fingerprint turns an API key into a name that tells keys apart and says nothing else, where limits are
	// per key. Nil means [sluice.Gate.KeyLabel], where the resource tells keys apart.
	Fingerprint func(key string) string
	// Keys are several keys or addresses that requests can go with: each takes the first that can go. The resource must tell keys
	// apart ([sluice.Resource.SplitKeys]). Empty means that requests go with the credentials that they come with.
	Keys []Key
	// Upstream is the address that [Key.Upstream] takes the place of. Nil means that addresses stay as they are.
	Upstream *url.URL

	once    sync.Once
	base    http.RoundTripper
	dialect provider.Dialect
	speaker provider.Speaker // the same, if it is one
	coster  provider.Coster  // the same
	book    *estimate.Book
	github  bool // it is GitHub's
	places  bool // some limit is of concurrency, or that is not known

	windows    []sluice.Limit // those of Limits that are windows of a subscription
	plan       estimate.Plan
	paces      timings
	looks      looks
	lingering  lingering
	ring       ring
	connecting connecting
	unhurried  bool // a connection may take as long as it takes: set by tests on real sockets, on machines that are busy
}

// Tuned returns a transport for many requests to few hosts: idle connections are kept, answers are passed on as
// they come, and a connection that is dead is noticed.
func Tuned() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4096,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 1 << 20,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

func (t *Transport) init() {
	t.base, t.dialect, t.book = t.Base, t.Dialect, t.Book
	if t.base == nil {
		t.base = Tuned()
	}
	if t.dialect == nil {
		t.dialect = provider.Generic{}
	}
	if t.book == nil {
		t.book = &estimate.Book{}
	}
	t.speaker, _ = t.dialect.(provider.Speaker)
	t.coster, _ = t.dialect.(provider.Coster)
	t.github = t.dialect.Name() == provider.GitHub{}.Name()
	t.places = len(t.Limits) == 0
	for i := range t.Limits {
		t.places = t.places || t.Limits[i].Kind == sluice.Concurrency
		if t.Limits[i].Plan {
			t.windows = append(t.windows, t.Limits[i])
		}
	}
}

// RoundTrip sends a request when it is its turn. If it is not let through, the error is the gate's: errors.As
// finds a [sluice.Error]. An answer by which the provider refuses is returned as it is, once trying again
// cannot help or is not safe. Where the gate only observes the resource, the request is sent once, as it came.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.once.Do(t.init)
	f := &flight{t: t, origin: r, ctx: r.Context(), start: time.Now()}
	if err := f.prepare(); err != nil {
		f.payload.close()
		return nil, f.fail(err)
	}
	for {
		resp, again, err := f.once()
		if again {
			continue
		}
		f.payload.close()
		if err != nil {
			f.lost(err)
			return nil, f.fail(err)
		}
		resp.Request = r
		if f.routed {
			resp.Header.Set(HeaderModel, f.asked.Model)
		}
		return resp, nil
	}
}

// CloseIdleConnections closes connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.once.Do(t.init)
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Settle ends the tickets of answers that were broken off and whose places are held for a while. Call
// it before the gate is closed: what they used would remain an estimate.
func (t *Transport) Settle() { t.lingering.settle() }

// Estimates returns the book of estimates that the transport uses.
func (t *Transport) Estimates() *estimate.Book {
	t.once.Do(t.init)
	return t.book
}
