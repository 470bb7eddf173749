// Package sluicehttp puts a gate in front of any http.Client. [Transport] waits for the request's turn, sends it, and
// reports to the gate what the response says about limits. It retries where that is safe, and settles the actual usage
// when the response has been read.
//
//	client := &http.Client{Transport: &sluicehttp.Transport{
//		Gate: gate, Resource: "github", Dialect: provider.GitHub{}, Limits: limits,
//		Caller: sluicehttp.Caller{Agent: "indexer", Class: sluice.P1},
//	}}
//
// Requests and responses pass byte for byte, with the few exceptions listed in docs/http.md.
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

// HeaderModel is the response header that names the model chosen by [Transport.Route].
const HeaderModel = "X-Sluice-Model"

// Transport is an [http.RoundTripper] that sends requests through a gate. Gate and Resource are required. Do not change
// its fields once it is in use, and do not copy it.
type Transport struct {
	Gate     *sluice.Gate
	Resource string
	// Dialect interprets the provider's responses. Nil means [provider.Generic].
	Dialect provider.Dialect
	// Limits are the limits of the resource; statements in responses are mapped to them. If nil, statements are
	// ignored, and an aborted response keeps its concurrency for a while as if there were a concurrency limit.
	Limits []sluice.Limit
	// Base sends requests. Nil means [Tuned]. If it does not support net/http/httptrace, every request counts as sent.
	Base http.RoundTripper
	// Caller is the default caller for requests whose context states none.
	Caller Caller
	// Prices returns the cost of a usage in millionths of a dollar; known is false if that is a guess. Nil means that
	// costs are not counted.
	Prices func(model string, u *provider.Usage) (micros int64, known bool)
	// Book estimates tokens. Nil means a new one.
	Book *estimate.Book
	// Retry says how often and how long to retry. With Attempts 1 each request is sent once.
	Retry retry.Policy
	// Abort is set if the provider stops working when its client disconnects. The concurrency of an aborted response is
	// then free at once, otherwise after the usual time.
	Abort bool
	// Overage lets lower classes continue when a subscription's window is used up and the provider sells usage beyond
	// it. Otherwise they wait for the reset.
	Overage bool
	// Done is called when an exchange is over, for metrics and logs. It must not block.
	Done func(Exchange)
	// Trace is called when an exchange begins and returns the function to call at its end. Fields that it adds to
	// header are sent with the request, except in mode observe. Nil means no tracing.
	Trace func(r *http.Request, header http.Header) (end func(Exchange))
	// Letters keeps requests that were given up. Nil means that they are not kept.
	Letters *Letters
	// Route chooses another model for a call; empty keeps the call's model. After an error nothing is sent.
	Route func(ctx context.Context, c Caller, asked *provider.ParsedRequest) (model string, err error)
	// Bodies bounds the memory for the bodies of waiting requests. Nil means no bound.
	Bodies *Bodies
	// Fingerprint turns an API key into a label that identifies the key and reveals nothing else, for limits per key.
	// Nil means [sluice.Gate.KeyLabel], if the resource tells keys apart.
	Fingerprint func(key string) string
	// Keys lists several keys or addresses. Each request uses the first one that is available. The resource must tell
	// keys apart ([sluice.Resource.SplitKeys]). If empty, requests keep their own credentials.
	Keys []Key
	// Upstream is the address that [Key.Upstream] replaces. Nil means that addresses stay as they are.
	Upstream *url.URL

	once    sync.Once
	base    http.RoundTripper
	dialect provider.Dialect
	speaker provider.Speaker // dialect, if it implements this
	coster  provider.Coster  // dialect, if it implements this
	book    *estimate.Book
	github  bool // the dialect is GitHub's
	places  bool // there is a concurrency limit, or the limits are not known

	windows    []sluice.Limit // the windows of a subscription among Limits
	plan       estimate.Plan
	timings    timings
	looks      looks
	lingering  lingering
	ring       ring
	connecting connecting
	unhurried  bool // no bound on connecting: set by tests on real sockets, on busy machines
}

// Tuned returns a transport for many requests to few hosts. It keeps idle connections, passes responses on as they
// come, and detects dead connections.
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

// RoundTrip sends a request when its turn comes. If the gate refuses it, errors.As finds a [sluice.Error]. A refusal by
// the provider is returned unchanged once a retry cannot help or is not safe. In mode observe the request is sent once,
// unchanged and without waiting.
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
		if err != nil {
			f.lost(err)
			f.payload.close()
			return nil, f.fail(err)
		}
		f.payload.close()
		resp.Request = r
		if f.routed {
			resp.Header.Set(HeaderModel, f.asked.Model)
		} else if len(resp.Header[HeaderModel]) > 0 && !f.observe {
			resp.Header.Del(HeaderModel) // only the transport says which model it chose
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

// Settle ends the tickets of aborted responses whose concurrency is still held. Call it before closing the gate;
// otherwise their usage remains an estimate.
func (t *Transport) Settle() { t.lingering.settle() }

// Estimates returns the book of estimates that the transport uses.
func (t *Transport) Estimates() *estimate.Book {
	t.once.Do(t.init)
	return t.book
}
