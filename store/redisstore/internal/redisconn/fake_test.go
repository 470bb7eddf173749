package redisconn

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fake is a server that answers as it is told: for versions that are not at hand.
type fake struct {
	net.Listener
	answer func(args []string) string // in the protocol's form; nil: it says nothing
}

func newFake(t *testing.T, answer func(args []string) string) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener, answer}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return f
}

func (f *fake) URL() string { return "redis://" + f.Addr().String() }

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	if f.answer == nil {
		io.Copy(io.Discard, conn)
		return
	}
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, f.answer(args)); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	length := func(mark byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil || line[0] != mark {
			return 0, fmt.Errorf("%q: %w", line, err)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := length('*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := length('$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, nil
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// unknownCommand quotes the arguments, as servers do.
func unknownCommand(args []string) string {
	return fmt.Sprintf("-ERR unknown command `%s`, with args beginning with: `%s`, \r\n", args[0], strings.Join(args[1:], "`, `"))
}

// redis answers like a server with that INFO, which speaks protocol 3 from Redis 6 on.
func redis(info string, eval func(args []string) string) func(args []string) string {
	three := !strings.Contains(info, "redis_version:5")
	return func(args []string) string {
		switch strings.ToUpper(args[0]) {
		case "HELLO":
			if !three {
				return unknownCommand(args)
			}
			return "%2\r\n" + bulk("version") + bulk("7.0.0") + bulk("proto") + ":3\r\n"
		case "INFO":
			return bulk(info)
		case "AUTH", "SELECT", "CLIENT":
			return "+OK\r\n"
		case "PING":
			return "+PONG\r\n"
		case "EVAL":
			return eval(args)
		}
		return unknownCommand(args)
	}
}

func evalOK([]string) string { return bulk("ok") }

// answersAtOnce returns the address of a server that speaks first, and not TLS.
func answersAtOnce(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				io.WriteString(conn, "-DENIED Redis is running in protected mode\r\n")
				io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return listener.Addr().String()
}
