package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/proxy"
)

// inProcess is a listener for connections within the process.
type inProcess struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *inProcess) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *inProcess) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *inProcess) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (l *inProcess) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	l.conns <- there
	return here, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A body that stalled was waited for without end. It is cut after 30 seconds without a byte, before the request is sent
// and while it is. A body that is slow is not, and neither is a client that waits for its response.
func TestABodyThatStallsIsCut(t *testing.T) {
	for _, c := range []struct {
		name   string
		begin  int // bytes at once
		slow   int // bytes that then come every 29 seconds
		stalls bool
		status int
		after  time.Duration
	}{
		{"at once", 10, 0, true, 408, 30 * time.Second},
		{"slowly", 10, 3, true, 408, 3*29*time.Second + 30*time.Second},
		{"while it is sent", 6 << 20, 0, true, 408, 30 * time.Second},
		{"slow", 10, 3, false, 200, 3*29*time.Second + 5*time.Minute},
		{"fast", 10, 0, false, 200, 5 * time.Minute},
		{"large and slow", 6 << 20, 3, false, 200, 3*29*time.Second + 5*time.Minute},
	} {
		for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
			t.Run(c.name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := stalling(t, version == "HTTP/2.0")
					body, out := io.Pipe()
					go func() {
						_, _ = io.CopyN(out, zeros{}, int64(c.begin))
						for range c.slow {
							time.Sleep(29 * time.Second)
							_, _ = io.WriteString(out, "x")
						}
						if !c.stalls {
							_ = out.Close()
						}
					}()
					began := time.Now()
					resp, err := client.Post("http://localhost/api/x", "text/plain", body)
					if err != nil {
						t.Fatal(err)
					}
					text, err := io.ReadAll(resp.Body)
					if took := time.Since(began); err != nil || resp.StatusCode != c.status || resp.Proto != version || took < c.after || took > c.after+time.Second {
						t.Errorf("%s %s after %v, %q, %v", resp.Proto, resp.Status, took, text, err)
					}
					if c.stalls && !strings.Contains(string(text), "sent nothing for 30s") {
						t.Errorf("%q", text)
					}
					_ = resp.Body.Close()
					_ = body.CloseWithError(io.ErrClosedPipe)
				})
			})
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// stalling starts a proxy for a provider that reads the whole body, and answers five minutes later. It returns a client.
func stalling(t *testing.T, http2 bool) *http.Client {
	gate, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{
		Gate: gate, Classes: []string{"p0"},
		Resources: map[string]proxy.Resource{"api": {Upstream: &url.URL{Scheme: "http", Host: "provider.test"}}},
		Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return nil, err
			}
			_ = r.Body.Close()
			select {
			case <-time.After(5 * time.Minute):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &inProcess{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: p, Protocols: new(http.Protocols)}
	way := &http.Transport{DialContext: l.dial, Protocols: new(http.Protocols)}
	for _, of := range []*http.Protocols{server.Protocols, way.Protocols} {
		of.SetHTTP1(!http2)
		of.SetUnencryptedHTTP2(http2)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		way.CloseIdleConnections()
		_ = server.Close()
		p.Settle()
		_ = gate.Close()
	})
	return &http.Client{Transport: way}
}
