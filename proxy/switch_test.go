package proxy_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
)

// rawUpstream answers every request with fixed bytes and then keeps the connection open and silent.
func rawUpstream(t *testing.T, answer func(w io.Writer)) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				answer(c)
			}
		}
	}()
	u, err := url.Parse("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func onePlace() []sluice.Limit {
	return []sluice.Limit{{Name: "inflight", Kind: sluice.Concurrency, Size: 1, Unit: "requests"}}
}

// An upstream that responds with 101 gets no connection: the client gets a 502 in the provider's format, and the
// concurrency slot is free.
func TestUpstreamAnswers101(t *testing.T) {
	up := rawUpstream(t, func(w io.Writer) {
		_, _ = io.WriteString(w, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	})
	via := sha256.Sum256([]byte("here\x00api")) // as a gate of the same store says it
	for _, passed := range []bool{false, true} {
		r := begin(t, onePlace(), hello, func(o *proxy.Options) {
			res := o.Resources["api"]
			res.Upstream = up
			res.Dialect, _ = provider.Lookup("anthropic")
			o.Resources["api"], o.Via = res, "here"
		})
		r.proxy.Client().Timeout = 20 * time.Second
		var header []string
		if passed {
			header = []string{"X-Sluice-Via", hex.EncodeToString(via[:12])}
		}
		for range 2 { // the second finds the place free
			resp, text := r.send(http.MethodPost, "/@a/api/v1/messages", strings.NewReader(`{"model":"m","max_tokens":1,"messages":[]}`), header...)
			if resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, `"type":"error"`) || !strings.Contains(text, "101") {
				t.Errorf("passed %v: %d %s", passed, resp.StatusCode, text)
			}
		}
		if s := r.status(); s.InFlight != 0 {
			t.Errorf("passed %v: %d in flight", passed, s.InFlight)
		}
	}
}

// Endless informational responses are cut off, and the concurrency slot is free.
func TestUpstreamFloodsInformationalResponses(t *testing.T) {
	up := rawUpstream(t, func(w io.Writer) {
		for {
			if _, err := io.WriteString(w, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 1000)); err != nil {
				return
			}
		}
	})
	r := begin(t, onePlace(), hello, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Upstream, res.Retry.Attempts = up, 1
		o.Resources["api"], o.Base = res, nil
	})
	r.proxy.Client().Timeout = 20 * time.Second
	if resp, text := r.get("/@a/api/"); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if s := r.status(); s.InFlight != 0 {
		t.Errorf("%d in flight", s.InFlight)
	}
}
