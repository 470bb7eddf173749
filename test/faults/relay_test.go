package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

func TestReadFrame(t *testing.T) {
	for _, frame := range []string{
		"+OK\r\n", "-ERR no\r\n", ":12\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n",
		"$3\r\na\r\n\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "=5\r\ntxt:a\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "%1\r\n+a\r\n~1\r\n:1\r\n", ">2\r\n+message\r\n+x\r\n", "|1\r\n+ttl\r\n:3\r\n+OK\r\n",
	} {
		in := bufio.NewReader(strings.NewReader(frame + "+next\r\n"))
		got, err := readFrame(in)
		if err != nil || string(got) != frame {
			t.Errorf("%q: %q, %v", frame, got, err)
		}
		if next, err := readFrame(in); err != nil || string(next) != "+next\r\n" {
			t.Errorf("after %q: %q, %v", frame, next, err)
		}
	}
	for _, bad := range []string{"", "+OK", "?\r\n", "$x\r\n", "$5\r\nab", "*2\r\n:1\r\n", "hello\r\n", strings.Repeat("*1\r\n", 20), "$99999999999\r\n"} {
		if got, err := readFrame(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q is a frame: %q", bad, got)
		}
	}
	if name := command([]byte("*2\r\n$7\r\nevalsha\r\n$1\r\nx\r\n")); name != "EVALSHA" || !isScript(name) {
		t.Error(name)
	}
	if command([]byte("+OK\r\n")) != "" || hasReply("SUBSCRIBE") || hasReply("SUNSUBSCRIBE") || !hasReply("GET") || isScript("GET") {
		t.Error("commands are not told apart")
	}
}

// client is a connection that speaks the protocol.
type client struct {
	t  *testing.T
	in *bufio.Reader
	net.Conn
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t, bufio.NewReader(conn), conn}
}

func (c *client) send(args ...string) {
	c.t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write(b.Bytes()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) ask(args ...string) string {
	c.t.Helper()
	c.send(args...)
	frame, err := readFrame(c.in)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(frame)
}

const counts = "return redis.call('INCR', KEYS[1])"

func startTestRelay(t *testing.T) (*relay, *redisrun.Server) {
	t.Helper()
	s := redisrun.New(t)
	r, err := startRelay(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r, s
}

func TestRelaySwallowsOneReply(t *testing.T) {
	r, s := startTestRelay(t)
	left := 2
	r.setPlan(func() action {
		left--
		return action{swallow: left == 0}
	})
	c := dial(t, r.addr())
	if got := c.ask("SET", "a", "0"); got != "+OK\r\n" {
		t.Errorf("%q", got)
	}
	if got := c.ask("EVAL", "return redis.call('NOSUCH')", "0"); got[0] != '-' {
		t.Errorf("%q", got)
	}
	if got := c.ask("EVAL", counts, "1", "a"); got != ":1\r\n" {
		t.Errorf("%q", got)
	}
	c.send("EVAL", counts, "1", "a")
	if got, err := readFrame(c.in); err == nil {
		t.Errorf("not swallowed: %q", got)
	}
	if got, err := s.Do(t.Context(), "GET", "a"); got != "2" || err != nil {
		t.Errorf("the script has counted to %s, %v", got, err)
	}
	if got := dial(t, r.addr()).ask("EVAL", counts, "1", "a"); got != ":3\r\n" {
		t.Errorf("the next one: %q", got)
	}
}

func TestRelayHoldsAReply(t *testing.T) {
	r, _ := startTestRelay(t)
	const hold = 50 * time.Millisecond
	r.setPlan(func() action { return action{hold: hold} })
	c := dial(t, r.addr())
	began := time.Now()
	if got := c.ask("EVAL", counts, "1", "a"); got != ":1\r\n" || time.Since(began) < hold {
		t.Errorf("%q after %v", got, time.Since(began))
	}
}

func TestRelayFreezes(t *testing.T) {
	r, s := startTestRelay(t)
	old := dial(t, r.addr())
	old.ask("PING")
	r.freezeAll()
	old.send("INCR", "a")
	if got := dial(t, r.addr()).ask("INCR", "b"); got != ":1\r\n" {
		t.Errorf("a new connection: %q", got)
	}
	if got, err := s.Do(t.Context(), "EXISTS", "a"); got != "0" || err != nil {
		t.Errorf("it passed: %s, %v", got, err)
	}
}

func TestToxic(t *testing.T) {
	s := redisrun.New(t)
	p, err := startToxic(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	if got := dial(t, p.addr()).ask("PING"); got != "+PONG\r\n" {
		t.Errorf("%q", got)
	}
	if err := p.add("nonsense", toClient, nil); err == nil {
		t.Error("a toxic that there is not")
	}
	if err := p.add("timeout", toClient, attributes{"timeout": 0}); err != nil {
		t.Fatal(err)
	}
	stuck := dial(t, p.addr())
	stuck.send("PING")
	if err := stuck.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got, err := readFrame(stuck.in); err == nil {
		t.Errorf("it passed: %q", got)
	}
	if err := p.clear(); err != nil {
		t.Fatal(err)
	}
	at := p.addr()
	p.disable()
	if conn, err := net.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
	if err := p.enable(); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, at).ask("PING"); got != "+PONG\r\n" {
		t.Errorf("%q", got)
	}
}
