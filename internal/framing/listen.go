package framing

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listen returns a listener for http.Server whose connections refuse requests that have both a Transfer-Encoding and a
// Content-Length: the server answers 400 and closes the connection. It also refuses a Transfer-Encoding in HTTP/1.0 and
// fields that continue on a second line. A handler that hijacks such a connection calls Release.
func Listen(l net.Listener) net.Listener { return plain{Listener: l} }

// ListenTunnels is Listen for a proxy that speaks HTTP/1 only. After a CONNECT all bytes pass: a client may send them
// before the tunnel is established. The server must hijack the connection or close it.
func ListenTunnels(l net.Listener) net.Listener {
	return plain{l, scanner{tunnels: true, prefaced: -1}}
}

type plain struct {
	net.Listener
	begin scanner
}

func (l plain) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, scanner: l.begin}, nil
}

// conn is a connection whose incoming bytes are scanned. Only one goroutine reads it at a time.
type conn struct {
	net.Conn
	scanner scanner
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.scanner.scan(p[:n])
	return n, err
}

// Release stops the scanning of a hijacked connection: its bytes are no longer HTTP requests.
func Release(c net.Conn) {
	for c != nil {
		if own, ok := c.(interface{ release() }); ok {
			own.release()
			return
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return
		}
		c = below.NetConn()
	}
}

// Freed is a response whose connection is released when it is hijacked.
type Freed struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (w Freed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		Release(c)
	}
	return c, rw, err
}

// Unwrap returns the response below, for http.ResponseController.
func (w Freed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (c *conn) release() { c.scanner.state = passing }

// NetConn returns the connection whose bytes are scanned.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets http.Server deliver an error before it closes the connection.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// ListenTLS is Listen for a listener whose connections are of type *tls.Conn, such as one of tls.NewListener. It
// accepts a connection once its handshake is over, which may take as long as within. HTTP/2 connections come as they
// are: http.Server only speaks HTTP/2 on a *tls.Conn.
func ListenTLS(l net.Listener, within time.Duration) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	t := &encrypted{Listener: l, within: within, ready: make(chan net.Conn), failed: make(chan error), ctx: ctx, cancel: cancel}
	t.running.Go(t.accept)
	return t
}

type encrypted struct {
	net.Listener
	within  time.Duration
	ready   chan net.Conn
	failed  chan error
	ctx     context.Context // ends when the listener is closed
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func (l *encrypted) accept() {
	for {
		c, err := l.Listener.Accept()
		if err == nil {
			l.running.Go(func() { l.shake(c) })
			continue
		}
		select {
		case l.failed <- err: // the server asks again if the error will pass
		case <-l.ctx.Done():
			return
		}
	}
}

// shake performs the handshake. After a failure http.Server meets the same error, and answers it.
func (l *encrypted) shake(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(l.ctx, l.within)
		err := t.HandshakeContext(ctx)
		cancel()
		if err == nil && t.ConnectionState().NegotiatedProtocol != "h2" {
			c = &secret{conn{Conn: c, scanner: scanner{prefaced: -1}}, t}
		}
	}
	select {
	case l.ready <- c:
	case <-l.ctx.Done():
		_ = c.Close()
	}
}

func (l *encrypted) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *encrypted) Close() error {
	l.cancel()
	err := l.Listener.Close()
	l.running.Wait()
	return err
}

// secret is an encrypted connection. Its state becomes the TLS field of requests.
type secret struct {
	conn
	tls *tls.Conn
}

// NetConn returns the connection that carries the encrypted bytes, as that of *tls.Conn does.
func (c *secret) NetConn() net.Conn { return c.tls.NetConn() }

func (c *secret) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }
