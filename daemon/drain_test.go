package daemon_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/provider"
)

// When the drain time is over, requests that would never end are cancelled: one with a silent provider, one that waits
// for its turn, and one with an unread body, whose connection the server does not watch.
func TestDrainEnds(t *testing.T) {
	came, over := make(chan struct{}, 10), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		came <- struct{}{}
		w.(http.Flusher).Flush()
		select {
		case <-q.Context().Done():
		case <-over:
		}
	}))
	defer silent.Close()
	defer close(over)
	r := begin(t, "generic", `
resources:
  api: {upstream: "`+silent.URL+`", limits: [{name: inflight, concurrency: 1}]}
`, nil)
	l, err := daemon.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cut, end := context.WithCancel(t.Context())
	defer end()
	served := make(chan error, 1)
	go func() { served <- r.daemon.Serve(ctx, cut, l) }()
	send := func(head string) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "POST /@a/api/ HTTP/1.1\r\nHost: localhost\r\n%s\r\n", head); err != nil {
			t.Fatal(err)
		}
	}
	send("Content-Length: 0\r\n")
	<-came
	send("Content-Length: 0\r\n")
	long := strings.Repeat("x", provider.MaxCall) // as much as is read before it is sent; the rest stays unread
	send(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 2*len(long), long))
	for { // until both wait
		s, err := r.gate.Resource(t.Context(), "api")
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Waiting["p2"]; n == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	select {
	case err := <-served:
		t.Fatalf("it did not wait for running requests: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	end()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it never ends")
	}
	s, err := r.gate.Resource(t.Context(), "api")
	if err != nil || s.InFlight != 0 || s.Waiting["p2"] != 0 {
		t.Errorf("%d in flight, %v wait, %v", s.InFlight, s.Waiting, err)
	}
}
