package daemon_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener for connections within the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// A body that does not arrive is not waited for. A client that waits for a ticket is not cut off.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reloadable(t, onePlace)
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		server := &http.Server{Handler: r.daemon, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }()
		defer func() { _ = server.Close() }()
		send := func(path, head, body string) (status string, after time.Duration) {
			here, there := net.Pipe()
			l.conns <- there
			defer func() { _ = here.Close() }()
			began := time.Now()
			if _, err := fmt.Fprintf(here, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s", path, head, body); err != nil {
				t.Error(err)
			}
			_ = here.SetReadDeadline(time.Now().Add(10 * time.Minute))
			line, err := bufio.NewReader(here).ReadString('\n')
			if err != nil {
				line = "closed"
				if time.Since(began) >= 10*time.Minute {
					line = "never"
				}
			}
			return strings.TrimSpace(line), time.Since(began)
		}
		for _, path := range []string{"/v1/tickets", "/healthz", "/-/reload", "/v1/store/clients", "/page/x", "/nowhere/at/all"} {
			status, after := send(path, "Content-Length: 1000\r\n", "{")
			if status == "never" || after > time.Minute {
				t.Errorf("%s: %s after %v", path, status, after)
			}
		}
		r.must("POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`)
		body := `{"resource":"api","agent":"b","wait_ms":120000}`
		if status, after := send("/v1/tickets", fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body)), body); !strings.Contains(status, "429") || after < 2*time.Minute {
			t.Errorf("who waits for two minutes: %s after %v", status, after)
		}
	})
}
