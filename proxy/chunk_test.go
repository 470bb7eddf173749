package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Malformed chunks are the client's fault, whether the body is read before it is sent or while it is.
func TestBadChunkingIsTheClients(t *testing.T) {
	r := begin(t, perMinute(100), func(_ http.ResponseWriter, q *http.Request) { _, _ = io.Copy(io.Discard, q.Body) }, nil)
	long := strings.Repeat("x", 5<<20)
	for _, body := range []string{"zz\r\nabc\r\n", "3\r\nabcdef\r\n", "fffffffffffffffff\r\nabc\r\n", fmt.Sprintf("%x\r\n%s\r\nzz\r\n", len(long), long)} {
		c, err := net.Dial("tcp", r.proxy.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := fmt.Fprintf(c, "POST /@a/api/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%s", body); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%.20q: %v", body, err)
		} else if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest || !resp.Close {
			t.Errorf("%.20q: %d, closes %v", body, resp.StatusCode, resp.Close)
		}
		_ = c.Close()
	}
	if s := r.status(); s.State == "failing" {
		t.Errorf("the provider is blamed: %s", s.Reason)
	}
}

// Trailers passed on whatever a client wrote: the gate's own token, keys, and a Content-Length that net/http refuses to
// send, for which the provider was blamed.
func TestTrailersOfAClientAreFiltered(t *testing.T) {
	got := make(chan http.Header, 2)
	r := begin(t, perMinute(100), func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		got <- q.Trailer
	}, nil)
	for _, long := range []int{3, 5 << 20} { // read before it is sent, and while it is
		c, err := net.Dial("tcp", r.proxy.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, err = fmt.Fprintf(c, "POST /@a/api/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-T, X-Sluice-Token, Authorization, Content-Encoding\r\n\r\n"+
			"%x\r\n%s\r\n0\r\nX-T: yes\r\nX-Sluice-Token: tok\r\nAuthorization: Bearer tok\r\nContent-Encoding: br\r\nContent-Length: 7\r\nConnection: close\r\n\r\n",
			long, strings.Repeat("x", long))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		_ = c.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%d bytes: %d", long, resp.StatusCode)
		}
		if trailer := <-got; len(trailer) != 1 || trailer.Get("X-T") != "yes" {
			t.Errorf("%d bytes: %v", long, trailer)
		}
	}
	if s := r.status(); s.State == "failing" || s.Sent != 2 {
		t.Errorf("%d sends, %s: %s", s.Sent, s.State, s.Reason)
	}
}
