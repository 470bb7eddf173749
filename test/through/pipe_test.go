package through_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// wires is a network in memory, so that time can be virtual.
type wires struct {
	mu    sync.Mutex
	hosts map[string]*host
}

// host accepts connections.
type host struct {
	name  string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newWires() *wires { return &wires{hosts: map[string]*host{}} }

// serve starts a server at a name.
func (ws *wires) serve(t *testing.T, name string, h http.Handler) {
	l := &host{name: name, conns: make(chan net.Conn), done: make(chan struct{})}
	ws.mu.Lock()
	ws.hosts[name] = l
	ws.mu.Unlock()
	s := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { _ = s.Close(); wg.Wait() })
}

// transport is one that dials here.
func (ws *wires) transport(t *testing.T) *http.Transport {
	tr := &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		name, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		ws.mu.Lock()
		l := ws.hosts[name]
		ws.mu.Unlock()
		if l == nil {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}}
		}
		near, far := net.Pipe()
		select {
		case l.conns <- far:
			return near, nil
		case <-l.done:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (l *host) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *host) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *host) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
