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
	for _, body := range []string{"zz\r\nabc\r\n", "3\r\nabcdef\r\n", fmt.Sprintf("%x\r\n%s\r\nzz\r\n", len(long), long)} {
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
		} else if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%.20q: %d", body, resp.StatusCode)
		}
		_ = c.Close()
	}
}
