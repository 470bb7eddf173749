package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice/internal/framing"
	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
)

// protocolKey is the prefix of a key that is sent as a WebSocket protocol, by programs that cannot set headers.
const protocolKey = "openai-insecure-api-key."

// isUpgrade reports whether a request asks for a protocol upgrade.
func isUpgrade(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" && slices.ContainsFunc(r.Header.Values("Connection"), func(v string) bool { return strings.Contains(strings.ToLower(v), "upgrade") })
}

// bareProtocols moves a key from the WebSocket protocols to the Authorization header.
func bareProtocols(r *http.Request) {
	const name = "Sec-Websocket-Protocol"
	if !isUpgrade(r) || len(r.Header[name]) == 0 {
		return
	}
	var rest []string
	for _, p := range protocols(r.Header) {
		if key, ok := strings.CutPrefix(p, protocolKey); !ok {
			rest = append(rest, p)
		} else if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
	r.Header.Del(name)
	if len(rest) > 0 {
		r.Header.Set(name, strings.Join(rest, ", "))
	}
}

// protocols returns the protocols that a client offers.
func protocols(h http.Header) (list []string) {
	for _, v := range h.Values("Sec-Websocket-Protocol") {
		for p := range strings.SplitSeq(v, ",") {
			if p = strings.TrimSpace(p); p != "" {
				list = append(list, p)
			}
		}
	}
	return list
}

// live returns the reader for the messages of the realtime connection that a request opens, or nil if it opens none
// that is known.
func (d *door) live(r *http.Request, path string) provider.Live {
	speaks, ok := d.res.Dialect.(interface {
		Live(*provider.Call) provider.Live
	})
	if !ok || r.Method != http.MethodGet || r.ProtoMajor != 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return nil
	}
	return speaks.Live(&provider.Call{Method: r.Method, Path: path, Query: r.URL.RawQuery})
}

// serveLive connects a client to the provider with a WebSocket.
func (d *door) serveLive(w http.ResponseWriter, r *http.Request, place string, caller sluicehttp.Caller, live provider.Live) {
	caller.RequestID = requestid.Of(r)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &socket{door: d, live: live, caller: caller, ctx: ctx, cancel: cancel, task: r.Header.Get(headerRoute), passed: d.hasPassed(r)}
	if !d.proxy.sockets.add(s) {
		f := refuse(http.StatusServiceUnavailable, "this gate is about to end", "connect again")
		f.after, f.fatal = time.Second, false
		d.proxy.deny(w, r, d, f)
		return
	}
	defer d.proxy.sockets.remove(s)
	s.to = d.rewrite(ctx, r, place)
	s.to.Header = s.to.Header.Clone()
	for name := range s.to.Header {
		if strings.HasPrefix(name, "Sec-Websocket-") {
			delete(s.to.Header, name)
		}
	}
	shake := s.dial(protocols(r.Header))
	switch {
	case shake.err != nil:
		d.failed(w, r, caller.RequestID, shake.err)
		return
	case shake.resp != nil:
		d.passBack(w, caller.RequestID, shake.resp)
		return
	}
	defer func() { _ = s.upstream.CloseNow() }()
	copyHeader(w.Header(), shake.header, func(name string) bool { return strings.HasPrefix(name, "Sec-Websocket-") || d.poses(name) })
	o := &websocket.AcceptOptions{InsecureSkipVerify: true} // pages that may not connect were refused before
	if p := s.upstream.Subprotocol(); p != "" {
		o.Subprotocols = []string{p}
	}
	var err error
	if s.client, err = websocket.Accept(framing.Freed{ResponseWriter: w}, r, o); err != nil {
		return // Accept has responded
	}
	defer func() { _ = s.client.CloseNow() }()
	s.run()
}

// dial opens the connection to the provider.
func (s *socket) dial(protocols []string) *handshake {
	asked := s.live.Asked()
	s.line = &wire.Line{Asked: &provider.ParsedRequest{Model: asked.Model, Part: asked.Part}}
	shake := &handshake{way: s.door.gated}
	if s.passed {
		shake.way = s.door.plain
	}
	var err error
	s.upstream, _, err = websocket.Dial(wire.With(sluicehttp.WithCaller(s.ctx, s.caller), s.line), s.to.URL.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     shake,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader: s.to.Header, Subprotocols: protocols,
	})
	if err != nil && shake.err == nil && shake.resp == nil {
		shake.err = errHandshake // Dial's error shows the address, which may hold a key
	}
	return shake
}

var errHandshake = errors.New("the provider's answer to the WebSocket handshake is invalid")

// handshake sends the request that opens a WebSocket. It keeps a response that does not open one, for the client.
type handshake struct {
	way    http.RoundTripper
	resp   *http.Response
	header http.Header
	err    error
}

// RoundTrip implements http.RoundTripper.
func (h *handshake) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := h.way.RoundTrip(r)
	if err != nil {
		h.err = err
		return nil, err
	}
	if h.header = resp.Header; resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, nil
	}
	h.resp = resp
	return &http.Response{StatusCode: resp.StatusCode, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// sockets holds the realtime connections of a proxy.
type sockets struct {
	mu     sync.Mutex
	open   map[*socket]struct{}
	drains bool
	empty  chan struct{} // closed when draining is done
	// counting waits for responses that are still to be counted, even if their connection is gone.
	counting sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

func (x *sockets) add(s *socket) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.drains {
		return false
	}
	if x.open == nil {
		x.open = map[*socket]struct{}{}
	}
	x.open[s] = struct{}{}
	return true
}

func (x *sockets) remove(s *socket) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, s)
	x.check()
}

// check signals that no connection is left. The caller holds the lock.
func (x *sockets) check() {
	if x.drains && len(x.open) == 0 && x.empty != nil {
		close(x.empty)
		x.empty = nil
	}
}

// drain refuses new connections, and asks the open ones to end after their current responses. empty is closed when none
// is left.
func (x *sockets) drain() (empty <-chan struct{}) {
	x.mu.Lock()
	first := !x.drains
	x.drains = true
	none := make(chan struct{})
	if x.empty == nil {
		x.empty = none
	} else {
		none = x.empty
	}
	all := make([]*socket, 0, len(x.open))
	for s := range x.open {
		all = append(all, s)
	}
	x.check()
	x.mu.Unlock()
	if first {
		for _, s := range all {
			s.drain()
		}
	}
	return none
}

// DrainSockets refuses new realtime connections and ends the open ones: each after its current responses, all when ctx
// ends.
func (p *Proxy) DrainSockets(ctx context.Context) {
	empty := p.sockets.drain()
	select {
	case <-empty:
	case <-ctx.Done():
		p.sockets.cut(empty)
	}
}

// cut ends all connections at once.
func (x *sockets) cut(empty <-chan struct{}) {
	x.mu.Lock()
	for s := range x.open {
		s.cut()
	}
	x.mu.Unlock()
	late := time.NewTimer(cutWithin)
	defer late.Stop()
	select {
	case <-empty:
	case <-late.C: // each connection has its own timeout
	}
}

// cutWithin bounds how long cut waits for the connections to end.
const cutWithin = 2 * time.Second

// settle ends all connections, and finishes counting.
func (x *sockets) settle() {
	x.cut(x.drain())
	x.cancel()
	x.counting.Wait()
}
