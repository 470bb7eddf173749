package daemon_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon"
)

// A request that has both a Transfer-Encoding and a Content-Length gets a 400, and the provider never sees it. A body
// that only contains such text passes.
func TestTwoLengthsGetA400(t *testing.T) {
	came := make(chan string, 8)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { came <- q.URL.Path }))
	defer upstream.Close()
	r := begin(t, "generic", `resources: {api: {upstream: "`+upstream.URL+`"}}`, nil)
	l, err := daemon.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.daemon.Serve(ctx, ctx, l) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	twice := "POST /@a/api/bad HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	once := fmt.Sprintf("POST /@a/api/good HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(twice), twice)
	url, config := r.secure(certs(t))
	for name, dial := range map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) },
		"TLS":   func() (net.Conn, error) { return tls.Dial("tcp", strings.TrimPrefix(url, "https://"), config) },
	} {
		c, err := dial()
		if err != nil {
			t.Fatal(name, err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := fmt.Fprint(c, once, twice); err != nil {
			t.Fatal(name, err)
		}
		answers := bufio.NewReader(c)
		for _, want := range []int{http.StatusOK, http.StatusBadRequest} {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(name, err)
			}
			if _ = resp.Body.Close(); resp.StatusCode != want {
				t.Errorf("%s: %d, want %d", name, resp.StatusCode, want)
			}
		}
		_ = c.Close()
		if got := <-came; got != "/good" || len(came) != 0 {
			t.Errorf("%s: the provider saw %s and %d more", name, got, len(came))
		}
	}
}
