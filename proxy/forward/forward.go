// Package forward is the gate as a forward proxy, for programs that cannot be pointed to another address. They send CONNECT or
// requests with a whole URL, as to any proxy. Connections to gated hosts are decrypted with a certificate of a local authority,
// and their requests go to the handler of package proxy, which gates them. All other connections are tunnelled: their bytes pass
// unchanged, with the certificate of their own host.
//
// It is written on net/http and crypto/tls alone; docs/adr/0008-interception-with-the-standard-library.md has the comparison with
// a library. docs/intercept.md is the guide.
package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/framing"
	"github.com/sluicehq/sluice/proxy"
)

// Bounds on connections. Bodies, answers and tunnels may take as long as they take.
const (
	headerWithin   = 30 * time.Second
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 256 << 10
)

// Options describe a forward proxy.
type Options struct {
	// Handler gets the requests to gated hosts. [proxy.InterceptedOf] tells which resource they are for.
	Handler http.Handler
	// Origins returns what is gated at the moment.
	Origins func() *Origins
	// Authority returns what issues certificates for gated hosts.
	Authority func() *Authority
	// Admit finds out who sends a request, by its credentials. A client that is not admitted is answered 407. Nil admits everyone
	// as a client of this machine.
	Admit func(r *http.Request) (Client, bool)
	// OnlyGated refuses connections to hosts that are not gated.
	OnlyGated bool
	// Proxy returns the proxy through which a URL is reached. Nil means that there is none.
	Proxy func(*url.URL) (*url.URL, error)
	// Log is told which hosts' clients refuse the certificate. Nil drops that.
	Log *slog.Logger
}

// Server is a forward proxy.
type Server struct {
	o     Options
	outer *http.Server // speaks to clients as a proxy
	inner *http.Server // speaks to clients as the hosts that are gated
	ctx   context.Context
	end   context.CancelFunc

	encrypted, plain *queue
	near, far        *http.Transport // for requests with a whole URL to hosts that are not gated
	running          sync.WaitGroup
	upgrades         atomic.Int64 // requests whose connections are, or are to be, WebSockets
	tunnels          tunnels
	refused          sync.Map // hosts whose clients refused the certificate, which has been logged
}

// New makes a forward proxy. Close ends it.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Admit == nil {
		o.Admit = func(*http.Request) (Client, bool) { return Client{Near: true}, true }
	}
	if o.Proxy == nil {
		o.Proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	}
	s := &Server{o: o, encrypted: newQueue(), plain: newQueue()}
	s.ctx, s.end = context.WithCancel(context.Background())
	base := func(net.Listener) context.Context { return s.ctx }
	quiet := slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)
	s.outer = &http.Server{
		Handler: http.HandlerFunc(s.serve), BaseContext: base, ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeaderBytes,
		Protocols: new(http.Protocols), ErrorLog: quiet,
	}
	s.outer.Protocols.SetHTTP1(true) // a tunnel needs the whole connection
	s.inner = &http.Server{
		Handler: http.HandlerFunc(s.decrypted), BaseContext: base, ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeaderBytes,
		Protocols: new(http.Protocols), ErrorLog: quiet, ConnContext: withConn,
	}
	s.inner.Protocols.SetHTTP1(true)
	s.inner.Protocols.SetHTTP2(true)
	s.near, s.far = s.transport(true), s.transport(false)
	s.running.Go(func() { _ = s.inner.Serve(framing.ListenTLS(s.encrypted, headerWithin)) })
	s.running.Go(func() { _ = s.inner.Serve(framing.Listen(s.plain)) })
	return s
}

// Serve serves clients of a listener until Shutdown or Close. It then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.outer.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown accepts no more connections, and finishes running requests and tunnels until ctx ends. A tunnel is over when nothing
// has passed it for a second.
func (s *Server) Shutdown(ctx context.Context) error {
	var errs [4]error
	var parts sync.WaitGroup
	parts.Go(func() { errs[0] = s.outer.Shutdown(ctx) })
	parts.Go(func() { errs[1] = s.inner.Shutdown(ctx) })
	parts.Go(func() { errs[2] = s.tunnels.drain(ctx) })
	parts.Go(func() { errs[3] = s.drainUpgrades(ctx) })
	parts.Wait()
	return errors.Join(errors.Join(errs[:]...), s.Close())
}

// drainUpgrades waits for connections that were upgraded, until ctx ends: the handler ends them.
func (s *Server) drainUpgrades(ctx context.Context) error {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for s.upgrades.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// Close ends all connections.
func (s *Server) Close() error {
	s.end() // first: a request whose body was not read does not notice that its connection is gone
	err := errors.Join(s.outer.Close(), s.inner.Close())
	s.tunnels.close()
	s.near.CloseIdleConnections()
	s.far.CloseIdleConnections()
	s.running.Wait()
	return err
}

// serve serves one request to the proxy itself.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	client, ok := s.o.Admit(r)
	switch {
	case r.Method != http.MethodConnect && !r.URL.IsAbs():
		refuse(w, http.StatusBadRequest, "this is a forward proxy, which takes CONNECT and requests with a whole URL", "name it in HTTPS_PROXY and HTTP_PROXY")
	case !ok:
		w.Header().Set("Proxy-Authenticate", `Basic realm="sluice"`)
		refuse(w, http.StatusProxyAuthRequired, "this proxy needs credentials that are known here", "HTTPS_PROXY=http://AGENT:TOKEN@HOST:PORT")
	case r.Method == http.MethodConnect:
		s.connect(w, r, client)
	default:
		s.whole(w, r, client)
	}
}

// whole serves a request with a whole URL.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, client Client) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" || r.URL.Hostname() == "" {
		refuse(w, http.StatusBadRequest, "the URL has to be of http or https", "")
		return
	}
	host, port, _ := net.SplitHostPort(addressOf(r.URL))
	if site := s.o.Origins().find(host, port); site != nil {
		s.gate(w, r, site, client)
		return
	}
	if s.o.OnlyGated {
		refuseUngated(w, r.URL.Host)
		return
	}
	s.forward(w, r, client)
}

// gate hands a request to the gate.
func (s *Server) gate(w http.ResponseWriter, r *http.Request, site *site, client Client) {
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	in := site.route(path)
	in.Agent, in.Class, in.Token, in.Trusted = client.Agent, client.Class, client.Token, client.Trusted
	if r.Header.Get("Upgrade") != "" {
		s.upgrades.Add(1)
		defer s.upgrades.Add(-1)
	}
	s.o.Handler.ServeHTTP(w, r.WithContext(proxy.WithIntercepted(r.Context(), &in)))
}

// decrypted serves a request that came through a connection to a gated host.
func (s *Server) decrypted(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil { // it cannot be
		refuse(w, http.StatusInternalServerError, "the connection is not known", "")
		return
	}
	host, port := r.Host, ""
	if h, p, err := net.SplitHostPort(r.Host); err == nil {
		host, port = h, p
	}
	if !strings.EqualFold(strings.Trim(host, "[]"), c.host) || port != "" && port != c.port {
		refuse(w, http.StatusMisdirectedRequest, "this connection is to "+c.host+", the request to "+strconv.Quote(r.Host), "connect to each host by itself")
		return
	}
	site := s.o.Origins().find(c.host, c.port)
	if site == nil {
		refuse(w, http.StatusMisdirectedRequest, c.host+" is not gated any more", "connect again")
		return
	}
	s.gate(w, r, site, c.client)
}

// refuse answers in the proxy's own name. Programs show the status line at best: the text is short.
func refuse(w http.ResponseWriter, status int, message, hint string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Sluice-Refused", "1")
	h.Set("Connection", "close") // a client may have sent what belongs to a tunnel
	text := "sluice: " + message + "\n"
	if hint != "" {
		text += "hint: " + hint + "\n"
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // who is gone misses nothing
}

func refuseUngated(w http.ResponseWriter, host string) {
	refuse(w, http.StatusForbidden, strconv.Quote(host)+" is not gated, and --only-gated refuses other hosts", "add it as the upstream of a resource, or leave --only-gated out")
}

// connKey is the context key of a connection to a gated host.
type connKey struct{}

// withConn finds the connection below the layers of TLS and HTTP.
func withConn(ctx context.Context, c net.Conn) context.Context {
	for c != nil {
		if own, ok := c.(*conn); ok {
			return context.WithValue(ctx, connKey{}, own)
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = below.NetConn()
	}
	return ctx
}

// tlsConfig is for connections to a gated host.
func tlsConfig(leaf *tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*leaf}}
}
