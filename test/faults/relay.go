package main

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// relay stands between clients and a Redis and understands what passes: so it can do something to exactly one
// reply of a script.
type relay struct {
	listener net.Listener
	upstream string
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[*relayed]struct{}
	closed bool
	plan   func() action // of the next reply to a script; nil: pass
}

// action is what happens to a reply.
type action struct {
	swallow bool          // it is dropped, and the connection closed
	hold    time.Duration // before it is passed on
}

// relayed is one connection.
type relayed struct {
	relay            *relay
	client, upstream net.Conn
	frozen           chan struct{} // closed: nothing passes any more, and nobody is told
	gone             chan struct{}
	once             sync.Once
	freeze           sync.Once

	mu    sync.Mutex
	names []string // of commands that are not answered yet
}

// maxUnanswered bounds the commands of a connection that wait for their replies.
const maxUnanswered = 1 << 16

func startRelay(upstream string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, upstream: upstream, conns: map[*relayed]struct{}{}}
	r.running.Go(r.accept)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", r.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		c := &relayed{relay: r, client: client, upstream: upstream, frozen: make(chan struct{}), gone: make(chan struct{})}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			c.close()
			return
		}
		r.conns[c] = struct{}{}
		r.mu.Unlock()
		r.running.Go(c.up)
		r.running.Go(c.down)
	}
}

// setPlan says what happens to replies of scripts from now on.
func (r *relay) setPlan(plan func() action) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = plan
}

func (r *relay) next() action {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plan == nil {
		return action{}
	}
	return r.plan()
}

// freezeAll makes the connections of this moment half open: they stay, nothing passes, nobody is told. New
// ones work.
func (r *relay) freezeAll() {
	for _, c := range r.current() {
		c.freeze.Do(func() { close(c.frozen) })
	}
}

func (r *relay) current() []*relayed {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*relayed
	for c := range r.conns {
		list = append(list, c)
	}
	return list
}

// stop closes everything and returns when nothing is left.
func (r *relay) stop() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	err := r.listener.Close()
	for _, c := range r.current() {
		c.close()
	}
	r.running.Wait()
	return err
}

func (c *relayed) close() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.client.Close()
		_ = c.upstream.Close()
		c.relay.mu.Lock()
		delete(c.relay.conns, c)
		c.relay.mu.Unlock()
	})
}

// passes reports whether anything passes; if not it waits until the connection is closed by the relay.
func (c *relayed) passes() bool {
	select {
	case <-c.frozen:
		<-c.gone
		return false
	default:
		return true
	}
}

// up passes commands on.
func (c *relayed) up() {
	in := bufio.NewReaderSize(c.client, maxLine)
	for {
		frame, err := readFrame(in)
		if !c.passes() {
			return
		}
		if err != nil {
			c.close()
			return
		}
		if name := command(frame); hasReply(name) && !c.expect(name) {
			c.close()
			return
		}
		if _, err := c.upstream.Write(frame); err != nil {
			c.close()
			return
		}
	}
}

func (c *relayed) expect(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
	return len(c.names) <= maxUnanswered
}

// answered is the command that a reply belongs to.
func (c *relayed) answered() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 {
		return "", errors.New("a reply that nobody asked for")
	}
	name := c.names[0]
	c.names = c.names[1:]
	return name, nil
}

// down passes replies on, or does to them what is planned.
func (c *relayed) down() {
	in := bufio.NewReaderSize(c.upstream, maxLine)
	for {
		frame, err := readFrame(in)
		if !c.passes() {
			return
		}
		if err == nil && !isPush(frame) {
			err = c.deal(frame)
		}
		if err == nil {
			_, err = c.client.Write(frame)
		}
		if err != nil {
			c.close()
			return
		}
	}
}

var errSwallowed = errors.New("swallowed")

// deal does to a reply what is planned.
func (c *relayed) deal(frame []byte) error {
	name, err := c.answered()
	if err != nil || !isScript(name) || frame[0] == '-' { // an error has done nothing
		return err
	}
	a := c.relay.next()
	if a.swallow {
		return errSwallowed
	}
	if a.hold > 0 {
		t := time.NewTimer(a.hold)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.gone:
		}
	}
	return nil
}
