package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

type late struct{}

func (late) Error() string   { return "i/o timeout" }
func (late) Timeout() bool   { return true }
func (late) Temporary() bool { return true }

func TestKinds(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}
	dial := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://api.example.com/v1?key=secret", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: err}}
	}
	for _, c := range []struct {
		err         error
		kind, words string
	}{
		{nil, "", ""},
		{context.Canceled, "", ""},
		{dial(&net.DNSError{Err: "no such host", Name: "api.invalid", IsNotFound: true}), DNS, "the name api.invalid does not resolve: no such host"},
		{dial(syscall.ECONNREFUSED), Refused, "connection refused by 127.0.0.1:9"},
		{dial(syscall.EHOSTUNREACH), Connect, "no connection to 127.0.0.1:9: " + syscall.EHOSTUNREACH.Error()},
		{dial(late{}), Timeout, "no connection in time to 127.0.0.1:9"},
		{&url.Error{Op: "Get", URL: "https://x/?key=secret", Err: context.DeadlineExceeded}, Timeout, "no answer in time: context deadline exceeded"},
		{&net.OpError{Op: "read", Net: "tcp", Addr: addr, Err: syscall.ECONNRESET}, Reset, "the connection broke before an answer came from 127.0.0.1:9"},
		{fmt.Errorf("Post %q: %w", "https://x/?key=secret", io.EOF), Reset, "the connection broke before an answer came from the provider"},
		{errors.New("http: server gave HTTP response to HTTPS client"), TLS, "TLS failed: http: server gave HTTP response to HTTPS client"},
		{&url.Error{Op: "Get", URL: "https://x/", Err: textproto.ProtocolError(`malformed MIME header: missing colon: "Set-Cookie secret"`)}, Other, "malformed MIME header: missing colon"},
		{errors.New(`http: message cannot contain multiple Content-Length headers; got ["secret" "1"]`), Other, "http: message cannot contain multiple Content-Length headers; got"},
		{errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response"), Other, "net/http: HTTP/1.x transport connection broken: malformed HTTP response"},
	} {
		if got := Kind(c.err); got != c.kind {
			t.Errorf("%v is %q, want %q", c.err, got, c.kind)
		}
		if c.kind == "" {
			continue
		}
		if got := Words(c.err); got != c.words || strings.Contains(got, "secret") {
			t.Errorf("%v is %q, want %q", c.err, got, c.words)
		}
	}
}

// Real errors of net/http are classified correctly.
// A process that can open no more files says nothing of a provider.
func TestNoMoreFilesIsNoKind(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	for _, err := range []error{dial, &url.Error{Op: "Get", URL: "http://x.test", Err: dial}, &net.DNSError{Err: "dial udp: socket: too many open files", Name: "x.test"}} {
		if !OutOfFiles(err) || Kind(err) != "" {
			t.Errorf("%v is %q", err, Kind(err))
		}
	}
	if OutOfFiles(nil) || OutOfFiles(io.EOF) {
		t.Error("another error counts")
	}
}

func TestKindsOfRealErrors(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}))
	defer plain.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := gone.Addr().String()
	_ = gone.Close()
	for _, c := range []struct{ address, kind string }{
		{secure.URL, TLS}, {strings.Replace(plain.URL, "http:", "https:", 1), ""}, {plain.URL, Reset}, {"http://" + address, Refused}, {"http://nowhere.invalid", DNS},
	} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.address+"/?key=secret", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatalf("%s answers", c.address)
		}
		got := Kind(err)
		if c.kind == "" { // broken while TLS is agreed on: either is true
			if got != TLS && got != Reset {
				t.Errorf("%s: %v is %q", c.address, err, got)
			}
		} else if got != c.kind && (c.kind != DNS || got != Timeout) {
			t.Errorf("%s: %v is %q, want %q", c.address, err, got, c.kind)
		}
		if w := Words(err); strings.Contains(w, "secret") || w == "" {
			t.Errorf("%v is told as %q", err, w)
		}
	}
}
