package redisconn

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// cutter passes bytes on to a server, and can be told to lose the answer to a script.
type cutter struct {
	net.Listener

	mu     sync.Mutex
	server string   // that new connections are passed on to
	armed  bool     // the next script is the one
	lose   net.Conn // to the server: what it says next is lost, and the connection with it
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: listener, server: server}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", c.to())
			if err != nil {
				near.Close()
				continue
			}
			wg.Go(func() {
				pass(near, far, func(b []byte) bool { return c.sent(far, b) })
			})
			wg.Go(func() {
				pass(far, near, func([]byte) bool { return c.keeps(far) })
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return c
}

// swallow makes the answer to the next script get lost.
func (c *cutter) swallow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

// redirect passes new connections on to another server.
func (c *cutter) redirect(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
}

func (c *cutter) to() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

func (c *cutter) sent(far net.Conn, b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed && bytes.Contains(b, []byte("EVALSHA")) {
		c.armed, c.lose = false, far
	}
	return true
}

func (c *cutter) keeps(far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lose != far
}

// pass copies until an end closes or it may not, and closes both.
func pass(from, to net.Conn, may func([]byte) bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !may(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
