package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/upstream"
)

const (
	established = "HTTP/1.1 200 Connection established\r\n\r\n"
	// dialWithin bounds how long connecting to a tunnel's host may take.
	dialWithin = 20 * time.Second
)

// connect serves CONNECT.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, client Client) {
	host, port, err := net.SplitHostPort(r.Host)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || !isHost(host) {
		refuse(w, http.StatusBadRequest, "CONNECT needs HOST:PORT", "")
		return
	}
	site, agent := s.o.Origins().find(host, port), r.UserAgent()
	switch {
	case site != nil && (client.Anonymous || s.o.Yield && s.trust.refuses(site.host, agent)):
		s.tunnel(w, r, host, port, client, site)
	case site != nil:
		s.intercept(w, site, port, agent, client)
	case s.o.OnlyGated:
		refuseUngated(w, r.Host)
	default:
		s.tunnel(w, r, host, port, client, s.o.Watched().find(host, port))
	}
}

// isHost reports whether host can be the name or address of a host.
func isHost(host string) bool {
	return host != "" && len(host) <= 255 && !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\@?#"<>`, r) })
}

// intercept answers in place of a gated host.
func (s *Server) intercept(w http.ResponseWriter, site *site, port, agent string, client Client) {
	var leaf *tls.Certificate
	if site.tls {
		var err error
		if leaf, err = s.o.Authority().Leaf(site.host); err != nil {
			hint := ""
			if errors.Is(err, ErrNotCovered) {
				hint = "sluice ca rotate makes a new one; give clients its certificate"
			}
			refuse(w, http.StatusBadGateway, err.Error(), hint)
			return
		}
	}
	c, err := s.hijack(w)
	if err != nil {
		return
	}
	c.host, c.port, c.agent, c.client = site.host, port, agent, client
	s.handOver(c, leaf)
}

// handOver completes the handshake and passes the connection to the server that speaks for gated hosts.
func (s *Server) handOver(c *conn, leaf *tls.Certificate) {
	ctx, cancel := context.WithTimeout(s.ctx, headerWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })() // ends a blocked read
	first, err := c.in.Peek(1)
	if err != nil {
		_ = c.Close()
		return
	}
	const handshake = 22 // the first byte of TLS
	switch encrypted := first[0] == handshake; {
	case !encrypted && leaf == nil:
		s.plain.put(c)
		return
	case encrypted != (leaf != nil):
		_ = c.Close() // HTTP to a host that speaks TLS, or the other way round
		return
	}
	t := tls.Server(c, tlsConfig(leaf))
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		s.notTrusted(c, err)
		return
	}
	c.shaken = time.Now()
	s.encrypted.put(t)
}

// tunnel connects a client to a host, and copies bytes both ways. If the host is that of a resource, site says so.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request, host, port string, client Client, site *site) {
	ctx, cancel := context.WithTimeout(r.Context(), dialWithin)
	there, err := s.dial(ctx, host, port, client)
	cancel()
	if err != nil {
		refuseReach(w, net.JoinHostPort(host, port), err)
		return
	}
	here, err := s.hijack(w)
	if err != nil {
		_ = there.Close()
		return
	}
	if site != nil {
		s.o.Past(client, site.resource(), site.host)
	}
	s.tunnels.join(here, there)
}

// refuseReach responds that a host cannot be reached.
func refuseReach(w http.ResponseWriter, host string, err error) {
	status, hint := http.StatusBadGateway, ""
	switch {
	case errors.Is(err, errPrivate):
		status, hint = http.StatusForbidden, "addresses of this machine and of private networks are for clients on this machine; add the host as the upstream of a resource"
	case upstream.OutOfFiles(err):
		status, hint = http.StatusServiceUnavailable, "raise the limit on open files of sluice serve (ulimit -n): each tunnel needs 2"
	case upstream.Kind(err) == upstream.Timeout:
		status = http.StatusGatewayTimeout
	case upstream.Untrusted(err):
		hint = upstream.TrustHint
	}
	text := err.Error()
	switch {
	case upstream.Kind(err) == upstream.TLS && errors.Is(err, errProxy): // what a certificate says may be anything
		text = errProxy.Error() + ": " + upstream.Words(err)
	case !errors.Is(err, errPrivate) && !errors.Is(err, errProxy):
		text = upstream.Words(err)
	}
	refuse(w, status, host+": "+text, hint)
}

// hijack takes over the connection and tells the client that it is established.
func (s *Server) hijack(w http.ResponseWriter) (*conn, error) {
	raw, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(time.Time{})
	c := &conn{Conn: raw, in: rw.Reader}
	if _, err := raw.Write([]byte(established)); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// conn is a client's connection that was taken over, with the bytes that were already read.
type conn struct {
	net.Conn
	in         *bufio.Reader
	host, port string // the host that the client connected to
	agent      string // the User-Agent of its CONNECT; most programs send one
	client     Client
	shaken     time.Time   // when its handshake was over
	used       atomic.Bool // by a request
}

func (c *conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// CloseWrite closes the sending side. Reading still works.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// queue is a listener for connections that other code accepted.
type queue struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newQueue() *queue { return &queue{conns: make(chan net.Conn), done: make(chan struct{})} }

func (q *queue) put(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.done:
		_ = c.Close()
	}
}

func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

func (q *queue) Addr() net.Addr { return queueAddr{} }

type queueAddr struct{}

func (queueAddr) Network() string { return "sluice" }
func (queueAddr) String() string  { return "intercepted" }
