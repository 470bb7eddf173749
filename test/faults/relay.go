package main

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// relay is a proxy in front of Redis that parses the protocol. So it can affect exactly one reply of a script.
type relay struct {
	listener net.Listener
	upstream string
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[*relayed]struct{}
	closed bool
	plan   func() action // returns the action for the next reply to a script; nil: pass all
}

// action says what to do with a reply.
type action struct {
	swallow bool          // drop the reply and close the connection
	hold    time.Duration // delay the reply
}

// relayed is one connection of a client.
type relayed struct {
	relay            *relay
	client, upstream net.Conn
	frozen           chan struct{} // closed: nothing passes any more, and neither side is told
	gone             chan struct{}
	once             sync.Once
	freeze           sync.Once

	mu    sync.Mutex
	names []string // commands without a reply yet, oldest first
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

// setPlan sets the plan for the replies of scripts from now on. nil passes all.
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

// freezeAll makes the current connections half open: they stay open, but nothing passes, and neither side is told. New
// connections work.
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

// stop closes all connections and waits until their goroutines have ended.
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

// passes reports whether the connection is not frozen. If it is frozen, passes first waits until the relay closes it.
func (c *relayed) passes() bool {
	select {
	case <-c.frozen:
		<-c.gone
		return false
	default:
		return true
	}
}

// up forwards commands to Redis.
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

// answered returns the command that the next reply belongs to.
func (c *relayed) answered() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 {
		return "", errors.New("a reply without a command")
	}
	name := c.names[0]
	c.names = c.names[1:]
	return name, nil
}

// down forwards replies to the client, or does what the plan says.
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

// deal applies the plan to a reply. An error means that the connection must be closed.
func (c *relayed) deal(frame []byte) error {
	name, err := c.answered()
	if err != nil || !isScript(name) || frame[0] == '-' { // an error reply means that nothing was executed
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
