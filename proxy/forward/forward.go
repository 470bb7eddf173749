// Package forward is the gate as a forward proxy, for programs that cannot use another base URL. They send CONNECT, or
// requests with an absolute URL, as to any proxy. Connections to gated hosts are decrypted with a certificate of a
// local authority, and their requests go to the handler of package proxy, which gates them. All other connections are
// tunnelled: their bytes pass unchanged, with the certificate of their own host.
//
// The package uses only net/http and crypto/tls; docs/adr/0008-interception-with-the-standard-library.md compares that
// with a library. docs/intercept.md is the guide.
package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// Bounds on connections. Bodies, responses and tunnels have no time limit.
const (
	headerWithin   = 30 * time.Second
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 256 << 10
)

// Options configures a forward proxy.
type Options struct {
	// Handler gets the requests to gated hosts. [proxy.InterceptedOf] returns the resource they are for.
	Handler http.Handler
	// Origins returns the origins that are gated at the moment.
	Origins func() *Origins
	// Authority returns the authority that issues certificates for gated hosts.
	Authority func() *Authority
	// Admit identifies the sender of a request by its credentials. A client that it refuses gets a 407. Nil admits
	// every client as one on this machine.
	Admit func(r *http.Request) (Client, bool)
	// Anonymous gives tunnels to clients on this machine that Admit refuses because they send no credentials: browsers take
	// a proxy's address from the environment, and not its password. Nothing is decrypted for them, and no credentials of a
	// further proxy are used. Programs that send credentials only when asked are asked for those of gated hosts.
	Anonymous bool
	// OnlyGated refuses connections to hosts that are not gated.
	OnlyGated bool
	// Proxy returns the proxy to use for a URL. Nil means no proxy.
	Proxy func(*url.URL) (*url.URL, error)
	// Roots returns the certificates to trust at the proxy of Proxy, and at hosts that clients reach with an absolute
	// URL. Nil means those of the system.
	Roots func() *x509.CertPool
	// Log records hosts whose clients refuse the certificate. Nil means no log.
	Log *slog.Logger
	// Yield leaves a host alone once a client has refused the certificate for it: that client's further connections to it
	// are tunnelled. Without it the client is refused each time.
	Yield bool
	// Watched returns origins that are tunnelled like any other, but whose connections Past is told of. Nil means none.
	Watched func() *Origins
	// Past is called for each connection that is tunnelled to a watched origin, or to a gated one because of Yield. It must
	// not block. Nil means that nobody counts.
	Past func(client Client, resource, host string)
}

// Server is a forward proxy. Create it with New.
type Server struct {
	o     Options
	outer *http.Server // the proxy that clients connect to
	inner *http.Server // answers in place of the gated hosts
	ctx   context.Context
	end   context.CancelFunc

	encrypted, plain *queue
	near, far, bare  *way // for requests with an absolute URL to hosts that are not gated
	running          sync.WaitGroup
	upgrades         atomic.Int64 // requests with a WebSocket, open or being opened
	tunnels          tunnels
	trust            trust
}

// New returns a forward proxy. Close it after use.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Admit == nil {
		o.Admit = func(*http.Request) (Client, bool) { return Client{Near: true}, true }
	}
	if o.Roots == nil {
		o.Roots = func() *x509.CertPool { return nil }
	}
	if o.Proxy == nil {
		o.Proxy = func(*url.URL) (*url.URL, error) { return nil, nil }
	}
	if o.Watched == nil {
		o.Watched = func() *Origins { return nil }
	}
	if o.Past == nil {
		o.Past = func(Client, string, string) {}
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
		Protocols: new(http.Protocols), ErrorLog: quiet, ConnContext: withConn, ConnState: s.changed,
	}
	s.inner.Protocols.SetHTTP1(true)
	s.inner.Protocols.SetHTTP2(true)
	s.near, s.far, s.bare = &way{near: true, through: s.o.Proxy}, &way{}, &way{near: true, through: s.withoutPassword}
	s.running.Go(func() { _ = s.inner.Serve(framing.ListenTLS(s.encrypted, headerWithin)) })
	s.running.Go(func() { _ = s.inner.Serve(framing.Listen(s.plain)) })
	return s
}

// Serve serves the clients of a listener until Shutdown or Close. It then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.outer.Serve(framing.ListenTunnels(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown accepts no more connections, and lets running requests and tunnels finish until ctx ends. A tunnel counts as
// finished after a second without traffic.
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

// drainUpgrades waits for upgraded connections until ctx ends. The handler closes them.
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
	s.end() // first: a request with an unread body does not notice that its connection is gone
	err := errors.Join(s.outer.Close(), s.inner.Close())
	s.tunnels.close()
	s.near.close()
	s.far.close()
	s.bare.close()
	s.running.Wait()
	return err
}

// serve serves one request to the proxy itself.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	client, ok := s.o.Admit(r)
	if !ok && s.o.Anonymous && r.Header.Get("Proxy-Authorization") == "" {
		client, ok = Client{Near: true, Anonymous: true}, !s.asks(r)
	}
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

// whole serves a request with an absolute URL.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, client Client) {
	framing.IgnoreHTTP2Offer(r)
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
	if site := s.o.Watched().find(host, port); site != nil {
		s.o.Past(client, site.resource(), site.host)
	}
	s.forward(w, r, client)
}

// gate passes a request to the gate.
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
	if c == nil { // cannot happen
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

// refuse responds in the proxy's own name. The text is short, because programs show at most the status line.
func refuse(w http.ResponseWriter, status int, message, hint string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Sluice-Refused", "1")
	h.Set("Connection", "close") // the client may already have sent bytes meant for a tunnel
	text := "sluice: " + message + "\n"
	if hint != "" {
		text += "hint: " + hint + "\n"
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // an error means that the client is gone
}

func refuseUngated(w http.ResponseWriter, host string) {
	refuse(w, http.StatusForbidden, strconv.Quote(host)+" is not gated, and --only-gated refuses other hosts", "add it as the upstream of a resource, or leave --only-gated out")
}

// connKey is the context key of a connection to a gated host.
type connKey struct{}

// withConn puts the client's connection into the context.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if own := connBelow(c); own != nil {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// connBelow finds the client's connection below TLS and HTTP. It returns nil if there is none.
func connBelow(c net.Conn) *conn {
	for c != nil {
		if own, ok := c.(*conn); ok {
			return own
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = below.NetConn()
	}
	return nil
}

// tlsConfig returns the TLS configuration for connections to a gated host.
func tlsConfig(leaf *tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*leaf}}
}
