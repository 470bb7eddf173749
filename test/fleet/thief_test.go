//go:build linux || darwin

package fleet_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// thief stands between stores and Redis, and now and then keeps a reply to itself and cuts the line.
type thief struct {
	listener net.Listener
	upstream string
	running  sync.WaitGroup
	lost     atomic.Int64

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // of both sides
	closed bool
}

const (
	honest   = 8    // replies of a connection that pass first: those that make it
	stealing = 0.06 // of the others
)

func newThief(t *testing.T, upstream string) *thief {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &thief{listener: l, upstream: upstream, conns: map[net.Conn]struct{}{}}
	f.running.Go(f.accept)
	t.Cleanup(func() {
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *thief) url() string { return "redis://" + f.listener.Addr().String() }

// stolen is how many replies were lost so far.
func (f *thief) stolen() int64 { return f.lost.Load() }

func (f *thief) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.running.Go(func() { f.serve(client) })
	}
}

// serve passes on what the two sides say to each other, until one of them falls silent.
func (f *thief) serve(client net.Conn) {
	defer client.Close()
	if !f.add(client) {
		return
	}
	defer f.remove(client)
	server, err := net.DialTimeout("tcp", f.upstream, 5*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !f.add(server) {
		return
	}
	defer f.remove(server)
	f.running.Go(func() {
		_, _ = io.Copy(server, client) // the end of a line is no error here
		_ = server.Close()
	})
	buf := make([]byte, 64<<10)
	for replies := 0; ; replies++ {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if replies >= honest && rand.Float64() < stealing {
			f.lost.Add(1)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (f *thief) add(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.conns[c] = struct{}{}
	return true
}

func (f *thief) remove(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// stop cuts all lines, and returns when nothing is left.
func (f *thief) stop() error {
	err := f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
