//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A request whose answer never ends does not keep the daemon from ending.
func TestServeDrainsForABoundedTime(t *testing.T) {
	t.Parallel()
	came := make(chan struct{}, 1)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.(http.Flusher).Flush()
		came <- struct{}{}
		<-q.Context().Done()
	}))
	defer endless.Close()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {api: {upstream: "+endless.URL+"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, urls := listening(t, "--config", file, "--listen", "127.0.0.1:0", "--drain", "0.2")
	c, err := net.Dial("tcp", strings.TrimPrefix(urls[0], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "GET /@a/api/ HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-came
	p.signal(syscall.SIGTERM)
	p.warns("did not finish within 200ms")
	p.ends(0)
}

// With --exit-idle the daemon ends by itself, and says why.
func TestServeEndsWhenItIsIdle(t *testing.T) {
	t.Parallel()
	p, _ := listening(t, "--listen", "127.0.0.1:0", "--exit-idle", "0.2")
	p.warns("no request for 200ms")
	p.ends(0)
}
