package redisrun

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

func TestReadReply(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"+OK\r\n":                              "OK",
		":42\r\n":                              "42",
		"$-1\r\n":                              "",
		"*-1\r\n":                              "",
		"*0\r\n":                               "",
		"$4\r\na\r\nb\r\n":                     "a\r\nb",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n":        "a\n1",
		"*3\r\n:1\r\n-ERR no\r\n:2\r\n+more":   "1\nERR no\n2",
		"*2\r\n*0\r\n*2\r\n+a\r\n+b\r\n:9\r\n": "a\nb",
	} {
		r, err := readReply(bufio.NewReader(strings.NewReader(in)), 0)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		var items []string
		r.flatten(&items)
		if got := strings.Join(items, "\n"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{
		"", "+OK", "\r\n", "?1\r\n", "$x\r\n", "$-2\r\n", "$99999999999\r\n", "$5\r\nab", "*2\r\n:1\r\n",
		"*2000000\r\n", strings.Repeat("*1\r\n", mostNested+1), "+" + strings.Repeat("x", 5000) + "\r\n",
	} {
		if _, err := readReply(bufio.NewReader(strings.NewReader(in)), 0); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	_, err := readReply(bufio.NewReader(strings.NewReader("-MOVED 1 a:2\r\n")), 0)
	if err != ReplyError("MOVED 1 a:2") {
		t.Errorf("an error: %v", err)
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n*1\r\n:1\r\n"))
	f.Add([]byte("-ERR no\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := readReply(bufio.NewReader(strings.NewReader(string(in))), 0)
		if err == nil {
			r.flatten(new([]string))
		}
	})
}

// A port accepts connections and never answers.
func TestDoEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := &Server{port: l.Addr().(*net.TCPAddr).Port}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		cancel()
		if err == nil {
			io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	if _, err := s.Do(ctx, "GET", "hush"); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "hush") {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := s.Do(t.Context()); err == nil {
		t.Error("no command: no error")
	}
}
