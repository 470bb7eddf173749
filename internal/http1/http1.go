// Package http1 sends small requests to plain http:// servers over HTTP/1.1. The goroutine that sends a request also writes it and
// reads its answer, which saves net/http's two goroutines a connection and the switches between them. Everything else (https, HTTP/2,
// proxies, large or streamed bodies) goes through an [http.Transport].
package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// Transport is an [http.RoundTripper]. It calls the hooks GetConn (only if it has to dial), GotConn and WroteHeaders of package httptrace.
type Transport struct {
	base *http.Transport
	mu   sync.Mutex
	idle map[string][]*conn // by address; the one used last is the last
	kept int                // idle connections of all addresses
	due  bool               // a sweep of idle connections is to come
}

// New returns a Transport that leaves to base what it does not do itself. It dials as base does.
func New(base *http.Transport) *Transport { return &Transport{base: base, idle: map[string][]*conn{}} }

// Base returns the transport for everything else.
func (t *Transport) Base() *http.Transport { return t.base }

// maxBody is how long a body may be. The kernel takes that much without delay, so that it need not be written while the answer is read.
const maxBody = 64 << 10

// maxEarly is how many informational answers may come before the real one.
const maxEarly = 5

// fits reports whether a request can be sent here.
func (t *Transport) fits(r *http.Request) bool {
	b := t.base
	if !canCheck || r.URL == nil || r.URL.Scheme != "http" || r.URL.Host == "" || r.Close || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 ||
		b.DialContext == nil || b.DisableKeepAlives || b.MaxConnsPerHost > 0 || b.ResponseHeaderTimeout > 0 ||
		b.Protocols != nil && (!b.Protocols.HTTP1() || b.Protocols.UnencryptedHTTP2()) {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		return false
	}
	if len(r.Header["Expect"]) > 0 || len(r.Header["Upgrade"]) > 0 || len(r.Header["Connection"]) > 0 {
		return false
	}
	if r.Body != nil && r.Body != http.NoBody && (r.GetBody == nil || r.ContentLength <= 0 || r.ContentLength > maxBody) {
		return false
	}
	if b.Proxy != nil {
		if by, err := b.Proxy(r); by != nil || err != nil {
			return false
		}
	}
	return true
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.fits(r) {
		return t.base.RoundTrip(r)
	}
	ctx := r.Context()
	if ctx.Err() != nil {
		closeBody(r)
		return nil, context.Cause(ctx)
	}
	trace := httptrace.ContextClientTrace(ctx)
	address := addressOf(r.URL)
	for {
		c, err := t.connection(ctx, trace, address)
		if err != nil {
			closeBody(r)
			return nil, err
		}
		resp, again, err := c.exchange(r)
		if err == nil {
			return resp, nil
		}
		c.close()
		if again && ctx.Err() == nil {
			if r, err = rewound(r); err == nil {
				continue
			}
		}
		return nil, err
	}
}

// CloseIdleConnections closes connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle, t.kept = map[string][]*conn{}, 0
	t.mu.Unlock()
	for _, list := range idle {
		for _, c := range list {
			c.close()
		}
	}
	t.base.CloseIdleConnections()
}

// connection returns one that is idle, or a new one.
func (t *Transport) connection(ctx context.Context, trace *httptrace.ClientTrace, address string) (*conn, error) {
	for {
		c := t.take(address)
		if c == nil {
			break
		}
		if c.alive() {
			got(trace, c, true)
			return c, nil
		}
		c.close()
	}
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(address)
	}
	network, err := t.base.DialContext(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c := newConn(t, address, network)
	got(trace, c, false)
	return c, nil
}

func got(trace *httptrace.ClientTrace, c *conn, reused bool) {
	c.reused = reused
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.net, Reused: reused, WasIdle: reused})
	}
}

func (t *Transport) take(address string) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.idle[address]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	t.idle[address] = list[:len(list)-1]
	t.kept--
	return c
}

// keep takes a connection back whose answer has been read.
func (t *Transport) keep(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.idle[c.address]
	if most := t.base.MaxIdleConnsPerHost; len(list) >= max(most, http.DefaultMaxIdleConnsPerHost) || t.base.MaxIdleConns > 0 && t.kept >= t.base.MaxIdleConns {
		c.close()
		return
	}
	c.since = time.Now()
	t.idle[c.address] = append(list, c)
	t.kept++
	if every := t.base.IdleConnTimeout; every > 0 && !t.due {
		t.due = true
		time.AfterFunc(every, t.sweep)
	}
}

// sweep closes connections that have been idle for too long.
func (t *Transport) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, every := time.Now(), t.base.IdleConnTimeout
	for address, list := range t.idle {
		n := 0
		for n < len(list) && now.Sub(list[n].since) >= every {
			list[n].close()
			n++
		}
		if t.kept -= n; n == len(list) {
			delete(t.idle, address)
		} else if n > 0 {
			t.idle[address] = append([]*conn(nil), list[n:]...)
		}
	}
	if t.due = t.kept > 0; t.due {
		time.AfterFunc(every, t.sweep)
	}
}

func addressOf(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// rewound is a request with its body from the beginning.
func rewound(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	again := *r
	again.Body = body
	return &again, nil
}

// replayable reports a request that may be sent again although the server may have seen it, as net/http judges.
func replayable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return len(r.Header["Idempotency-Key"]) > 0 || len(r.Header["X-Idempotency-Key"]) > 0
}

var (
	errEarly  = errors.New("http1: the server sent too many informational answers")
	errHeader = errors.New("http1: the header of the answer is too long")
)
