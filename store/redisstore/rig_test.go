package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// unhurried is how long a member waits for a server that is there: a busy machine can hold one up for longer than the half
// second after which a store counts as lost.
const unhurried = 10 * time.Second

const patience = 20 * time.Second // how long anything may take on a busy machine

// member is one process, on the server's own clock.
type member struct {
	*testing.T
	store *redisstore.Store
	pool  store.Pool
	told  chan []store.ID
	heard map[store.ID]bool
}

func perMinute(n int64) store.Limit {
	return store.Limit{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: n, Window: time.Minute, Guard: store.GuardOff}
}

func poolOf(limits ...store.Limit) store.Spec {
	back := store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}
	return store.Spec{
		Name: "x", Limits: limits, Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}}, MaxWaiting: 100, Throttle: back, Overload: back,
	}
}

// passing is a spec of one who is no member.
func passing(limits ...store.Limit) store.Spec {
	s := poolOf(limits...)
	s.OneShot = true
	return s
}

// slowly is the URL of a server that may be slow because the machine is busy.
func slowly(url string) string {
	if strings.Contains(url, "timeout=") {
		return url
	}
	sign := "?"
	if strings.Contains(url, "?") {
		sign = "&"
	}
	return url + sign + "timeout=" + unhurried.String()
}

// join opens a pool as a process of its own.
func join(t *testing.T, url string, spec store.Spec, opts ...redisstore.Option) *member {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := redisstore.Open(ctx, slowly(url), append([]redisstore.Option{redisstore.WithStateDir("")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.AnswerWithin(unhurried)
	m := &member{T: t, store: s, told: make(chan []store.ID, 1000), heard: map[store.ID]bool{}}
	m.pool = m.open(spec)
	return m
}

func (m *member) open(spec store.Spec) store.Pool {
	m.Helper()
	p, err := m.store.Pool(context.Background(), spec)
	if err != nil {
		m.Fatal(err)
	}
	p.Watch(func(ids []store.ID) { m.told <- append([]store.ID(nil), ids...) })
	return p
}

func ask(n int64) store.Op {
	return store.Op{Kind: store.OpAcquire, Agent: "a", TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: n}}}
}

func waiting(op store.Op) store.Op {
	op.Wait = -1
	return op
}

// try applies one operation within a time.
func (m *member) try(op store.Op, within time.Duration) (store.Result, error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	ops := []store.Op{op}
	err := m.pool.Apply(ctx, ops)
	return ops[0].Result, err
}

func (m *member) do(op store.Op) store.Result {
	m.Helper()
	r, err := m.try(op, patience)
	if err != nil {
		m.Fatal(err)
	}
	return r
}

// must applies one operation, which must come out so.
func (m *member) must(op store.Op, state store.State) store.ID {
	m.Helper()
	r := m.do(op)
	if r.State != state {
		m.Fatalf("it is %v (%v), want %v", r.State, r.Reason.Code, state)
	}
	return r.ID
}

func (m *member) take(n int64) store.ID { m.Helper(); return m.must(ask(n), store.Granted) }

func (m *member) close(id store.ID) {
	m.Helper()
	m.must(store.Op{Kind: store.OpClose, ID: id}, store.Ended)
}

func (m *member) state(id store.ID) store.State {
	m.Helper()
	return m.do(store.Op{Kind: store.OpPoll, ID: id}).State
}

func (m *member) snapshot() store.Snapshot {
	m.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := m.pool.Snapshot(ctx)
	if err != nil {
		m.Fatal(err)
	}
	return s
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// collect waits to be told of a ticket, and returns what became of it.
func (m *member) collect(id store.ID) store.State {
	m.Helper()
	end := time.After(patience)
	for {
		if m.heard[id] {
			delete(m.heard, id)
			if s := m.state(id); s != store.Waiting {
				return s
			}
		}
		select {
		case ids := <-m.told:
			for _, told := range ids {
				m.heard[told] = true
			}
		case <-end:
			m.Fatal("nobody told of it")
		}
	}
}

// joined waits until a member has its share.
func (m *member) joined() {
	m.Helper()
	await(m.T, "the member has its share", func() bool { return redisstore.Share(m.pool) > 0 })
}

func (m *member) lost() bool {
	_, lost := m.pool.(store.Alarm).Outage()
	return lost
}

// back waits until the store is back.
func (m *member) back() {
	m.Helper()
	await(m.T, "the store is back", func() bool { return !m.lost() })
}

// refuses checks that an error says that the store cannot be reached.
func (m *member) refuses(err error) {
	m.Helper()
	if !errors.Is(err, store.ErrUnavailable) || err.Error() == "" || strings.Contains(err.Error(), "context") {
		m.Errorf("the error is %v", err)
	}
}

func do(t *testing.T, s *redisrun.Server, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := s.Do(ctx, command...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// cutter passes bytes on to a server, and can be told to lose what it answers to a script.
type cutter struct {
	net.Listener
	server string

	mu    sync.Mutex
	skip  int               // scripts that are left alone
	count int               // and those after them that are not
	slow  time.Duration     // what the server says is passed on so late
	about []byte            // only scripts with these bytes in them are meant; nil: all
	lose  map[net.Conn]bool // to the server: what it says next is lost, and the connection with it
	met   int
	shut  bool // nothing passes
	conns map[net.Conn]bool
}

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: listener, server: server, lose: map[net.Conn]bool{}, conns: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err == nil && !c.enter(far) {
				far.Close()
				err = net.ErrClosed
			}
			if err != nil {
				near.Close()
				continue
			}
			wg.Go(func() { pass(near, far, func(b []byte) bool { c.sent(far, b); return true }) })
			wg.Go(func() { pass(far, near, func([]byte) bool { time.Sleep(c.late()); return !c.loses(far) }) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return c
}

func (c *cutter) url() string { return "redis://" + c.Addr().String() }

// swallow makes the answers to some scripts get lost, after others.
func (c *cutter) swallow(skip, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skip, c.count = skip, count
}

// swallowAbout makes the answers to scripts get lost that name something.
func (c *cutter) swallowAbout(what string, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skip, c.count, c.about = 0, count, []byte(what)
}

// slowDown has answers passed on late.
func (c *cutter) slowDown(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = by
}

func (c *cutter) late() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow
}

// block closes all connections and takes no new ones, or takes them again.
func (c *cutter) block(shut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = shut
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

func (c *cutter) enter(far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.conns[far] = true
	}
	return !c.shut
}

func (c *cutter) swallowed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met
}

func (c *cutter) sent(far net.Conn, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	script := (bytes.Contains(b, []byte("FCALL")) || bytes.Contains(b, []byte("EVALSHA"))) && bytes.Contains(b, c.about)
	switch {
	case !script || c.count == 0:
	case c.skip > 0:
		c.skip--
	default:
		c.count--
		c.met++
		c.lose[far] = true
	}
}

func (c *cutter) loses(far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lose[far]
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
