package forward_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
)

// FuzzConnection sends any bytes to a forward proxy that allows only gated hosts, and then closes. It gets an HTTP
// response or none, the connection ends, and only requests for gated hosts reach the gate. Bytes after a CONNECT count
// as the handshake.
func FuzzConnection(f *testing.F) {
	up := &url.URL{Scheme: "https", Host: host}
	origins := forward.NewOrigins([]forward.Origin{{Resource: "api", Address: up, Upstream: up}, {Resource: "api", Address: &url.URL{Scheme: "http", Host: "plain.provider.test"}, Upstream: up}})
	authority, err := forward.NewAuthority("test", origins.Hosts(), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	strays := make(chan string, 100)
	s := forward.New(forward.Options{
		Origins: func() *forward.Origins { return origins }, Authority: func() *forward.Authority { return authority }, OnlyGated: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if in := proxy.InterceptedOf(r); in == nil || in.Resource != "api" {
				strays <- r.Host
			}
		}),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	f.Cleanup(func() { _ = s.Close(); <-done })
	hello := "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"
	for _, text := range []string{
		"CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\n\r\n" + hello,
		"CONNECT " + host + ":443 HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"CONNECT plain.provider.test:80 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic YTpi\r\n\r\nGET / HTTP/1.1\r\nHost: plain.provider.test\r\n\r\n",
		"CONNECT 10.0.0.1:22 HTTP/1.1\r\nHost: 10.0.0.1:22\r\n\r\n", "CONNECT a:0 HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT [::1]:70000 HTTP/1.1\r\n\r\n",
		"GET http://plain.provider.test/a HTTP/1.1\r\nHost: plain.provider.test\r\n\r\n", "GET http://elsewhere.test/ HTTP/1.1\r\nHost: elsewhere.test\r\nProxy-Authorization: Bearer x\r\n\r\n",
		"POST http://plain.provider.test/ HTTP/1.1\r\nHost: plain.provider.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", hello, "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = c.Write(text) // the proxy may have ended it
		_ = c.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(c)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatalf("%q: the connection does not end", text)
		}
		if len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
			t.Errorf("%q is answered %q", text, answer)
		}
		select {
		case host := <-strays:
			t.Errorf("%q gets to the gate as %q", text, host)
		default:
		}
	})
}

// FuzzCredentials reads any text as Proxy-Authorization. What is taken says the same in its usual form.
func FuzzCredentials(f *testing.F) {
	for _, text := range []string{"Basic YTpi", "basic YTpwMTp0b2tlbg==", "Bearer token", "bearer  token ", "Bearer ", "Basic !", "Digest x", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) (forward.Credentials, bool) {
			return forward.CredentialsOf(&http.Request{Header: http.Header{"Proxy-Authorization": {text}}})
		}
		c, ok := read(text)
		if !ok {
			if c != (forward.Credentials{}) {
				t.Errorf("%q is refused, and is %+v", text, c)
			}
			return
		}
		usual := "Bearer " + c.Bearer
		if c.Bearer == "" {
			usual = "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
		}
		if again, ok := read(usual); !ok || again != c {
			t.Errorf("%q is %+v, and %q is %+v", text, c, usual, again)
		}
	})
}

// FuzzAuthority reads any file as the authority in the state directory. An authority that is taken signs certificates, and an error does
// not show the key.
func FuzzAuthority(f *testing.F) {
	dir := f.TempDir()
	if _, err := forward.OpenFile(dir, "test", []string{host}); err != nil {
		f.Fatal(err)
	}
	made, err := os.ReadFile(forward.PathIn(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made)
	f.Add(made[:len(made)/2])
	f.Add(bytes.Replace(made, []byte("CERTIFICATE"), []byte("PRIVATE KEY"), 2))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(forward.PathIn(dir), text, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := forward.LoadFile(dir)
		if err != nil {
			return
		}
		if _, err := a.Authority().Leaf(host); err != nil {
			t.Errorf("%q is taken, and signs nothing: %v", text, err)
		}
	})
}
