package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/retry"
)

// closing is a provider that reads the second request of every connection and closes it without an answer. It counts
// what arrives.
func closing(t *testing.T) (*url.URL, *atomic.Int64) {
	t.Helper()
	var arrived atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = l.Close() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for i := range 2 {
					q, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, q.Body)
					if arrived.Add(1); i == 0 {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			})
		}
	})
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, &arrived
}

// Behind a first gate, a second one sent requests again that no gate counted, whenever a kept connection closed.
func TestAResendBehindAnotherGateIsCounted(t *testing.T) {
	up, arrived := closing(t)
	second := begin(t, perMinute(1000), hello, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Upstream = up
		o.Via, o.Resources["api"] = "a store", res
	})
	first := begin(t, perMinute(1000), hello, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Upstream, _ = url.Parse(second.proxy.URL + "/api")
		res.Retry.Base, res.Retry.Cap = time.Millisecond, time.Millisecond
		res.Retry.Windows = map[string]retry.Window{}
		o.Via, o.Resources["api"] = "a store", res
	})
	answered := 0
	for range 6 {
		if resp, _ := first.get("/@a/api/x"); resp.StatusCode == http.StatusOK {
			answered++
		}
	}
	s := first.status()
	if sent := s.Sent; sent != arrived.Load() || second.status().Sent != 0 {
		t.Errorf("%d arrived, %d were counted by the first gate and %d by the second", arrived.Load(), sent, second.status().Sent)
	}
	if answered != 6 {
		t.Errorf("%d of 6 got their answer", answered)
	}
	if s.Retried == 0 {
		t.Error("nothing was sent again: the test shows nothing")
	}
}
