package forward

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// quietFor is how long a tunnel must be without traffic before a shutdown may close it.
	quietFor = time.Second
	// lookAround is how often a shutdown checks for such tunnels.
	lookAround = 100 * time.Millisecond
)

// tunnels holds the open tunnels.
type tunnels struct {
	mu     sync.Mutex
	open   map[*tunnel]bool
	closed bool
	end    sync.WaitGroup
}

// tunnel passes bytes between two connections.
type tunnel struct {
	here, there net.Conn
	last        atomic.Int64 // time of the last traffic, in nanoseconds since begun
	begun       time.Time
}

// join copies bytes between two connections until both have ended.
func (ts *tunnels) join(here, there net.Conn) {
	t := &tunnel{here: here, there: there, begun: time.Now()}
	ts.mu.Lock()
	if ts.closed {
		ts.mu.Unlock()
		t.close()
		return
	}
	if ts.open == nil {
		ts.open = map[*tunnel]bool{}
	}
	ts.open[t] = true
	ts.end.Add(1)
	ts.mu.Unlock()
	defer func() {
		t.close()
		ts.mu.Lock()
		delete(ts.open, t)
		ts.mu.Unlock()
		ts.end.Done()
	}()
	var up sync.WaitGroup
	up.Go(func() { t.copy(there, here) })
	t.copy(here, there)
	up.Wait()
}

// copy copies bytes until their source ends. It then closes the sending side of the destination, which may go on
// sending. An error on either connection closes the tunnel.
func (t *tunnel) copy(to, from net.Conn) {
	_, err := io.Copy(seen{to, t}, from)
	if err != nil || closeWrite(to) != nil {
		t.close()
	}
}

func (t *tunnel) close() {
	_ = t.here.Close()
	_ = t.there.Close()
}

// seen records the time of each write.
type seen struct {
	io.Writer
	t *tunnel
}

func (s seen) Write(p []byte) (int, error) {
	s.t.last.Store(int64(time.Since(s.t.begun)))
	return s.Writer.Write(p)
}

// drain closes tunnels as soon as they have no traffic, until ctx ends.
func (ts *tunnels) drain(ctx context.Context) error {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for {
		ts.mu.Lock()
		ts.closed = true
		left := len(ts.open)
		for t := range ts.open {
			if time.Since(t.begun)-time.Duration(t.last.Load()) >= quietFor {
				t.close()
			}
		}
		ts.mu.Unlock()
		if left == 0 {
			ts.end.Wait()
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// close closes all tunnels.
func (ts *tunnels) close() {
	ts.mu.Lock()
	ts.closed = true
	for t := range ts.open {
		t.close()
	}
	ts.mu.Unlock()
	ts.end.Wait()
}
