package forward_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
)

// Requests to a gated host pass the gate, whatever version of HTTP their client speaks.
func TestGatedHostsPassTheGate(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
			r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
				o.Admit = func(*http.Request) (forward.Client, bool) { return forward.Client{Agent: "indexer", Near: true}, true }
			})
			c := r.client(version == 2)
			for range 3 {
				resp, text := r.get(c, "https://"+host+"/v1/things?q=1")
				if resp.ProtoMajor != version || resp.StatusCode != http.StatusOK || text != "hello /v1/things" {
					t.Errorf("HTTP/%d: %d %q", resp.ProtoMajor, resp.StatusCode, text)
				}
			}
			if q := <-r.seen; q.URL.RawQuery != "q=1" || q.Header.Get("Proxy-Authorization") != "" {
				t.Errorf("the provider got %v with %v", q.URL, q.Header)
			}
			rep, err := r.gate.Report(t.Context(), time.Time{})
			if err != nil || len(rep.Resources) != 1 || rep.Resources[0].Total.FirstSends != 3 || rep.Resources[0].Callers[0].Name != "indexer" {
				t.Errorf("the gate counted %+v, %v", rep.Resources, err)
			}
		})
	}
}

// Plain HTTP is gated too, as a request with an absolute URL and inside CONNECT.
func TestPlainRequestsPassTheGate(t *testing.T) {
	r := begin(t, hello, nil)
	resp, text := r.get(r.client(false), "http://plain.provider.test/a")
	if resp.StatusCode != http.StatusOK || text != "hello /a" {
		t.Errorf("with a whole URL: %d %q", resp.StatusCode, text)
	}
	c := r.raw("CONNECT plain.provider.test:80 HTTP/1.1\r\nHost: plain.provider.test:80\r\n\r\n")
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	if _, err := io.WriteString(c, "GET /b HTTP/1.1\r\nHost: plain.provider.test\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello /b" {
		t.Errorf("inside CONNECT: %d %q", resp.StatusCode, body)
	}
	rep, err := r.gate.Report(t.Context(), time.Time{})
	if err != nil || rep.Resources[0].Total.FirstSends != 2 {
		t.Errorf("the gate counted %+v, %v", rep.Resources, err)
	}
}

// Links in the responses of a substitute upstream lead back to the address that the client used.
func TestLinksLeadToTheGatedHost(t *testing.T) {
	r := begin(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Link", "<https://"+q.Host+"/page/2>; rel=next")
	}, nil)
	resp, _ := r.get(r.client(true), "https://"+host+"/page/1")
	if got := resp.Header.Get("Link"); got != "<https://"+host+"/page/2>; rel=next" {
		t.Errorf("Link: %s", got)
	}
}

// twoLengths is the end of a request with two lengths, which proxies may read differently.
const twoLengths = "POST / HTTP/1.1\r\nHost: plain.provider.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"

// Connections to other hosts keep their own certificate, and every byte.
func TestOtherHostsAreTunnelled(t *testing.T) {
	r := begin(t, hello, nil)
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { _, _ = io.WriteString(w, q.Proto) }))
	other.EnableHTTP2 = true
	other.StartTLS()
	defer other.Close()
	c := r.client(true, func(tr *http.Transport) { tr.TLSClientConfig.RootCAs = trusting(other).TLSClientConfig.RootCAs })
	resp, text := r.get(c, other.URL)
	if text != "HTTP/2.0" || !bytes.Equal(resp.TLS.PeerCertificates[0].Raw, other.Certificate().Raw) {
		t.Errorf("%s, with the certificate of %v", text, resp.TLS.PeerCertificates[0].Subject)
	}

	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	sent := make([]byte, 1<<20)
	_, _ = rand.Read(sent)
	copy(sent, twoLengths) // which only matters in a request to the proxy
	head := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", echo.Addr())
	conn := r.raw(head + string(sent[:100])) // a hasty client sends at once
	in := bufio.NewReader(conn)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	go func() {
		_, _ = conn.Write(sent[100:])
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(in)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(sent), err)
	}
}

// Requests with an absolute URL to other hosts are passed on unchanged.
func TestWholeURLsOfOtherHosts(t *testing.T) {
	seen := make(chan *http.Request, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		seen <- q
		_, _ = io.WriteString(w, "other")
	}))
	defer other.Close()
	r := begin(t, hello, nil)
	c := r.raw("GET " + other.URL + "/x?y HTTP/1.1\r\nHost: " + strings.TrimPrefix(other.URL, "http://") + "\r\nX-Forwarded-For: 192.0.2.1\r\nProxy-Authorization: Basic eDp5\r\nX-Sluice-Token: tok\r\nX-Sluice-Agent: a\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(resp.Body); string(text) != "other" {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
	q := <-seen
	if q.RequestURI != "/x?y" || q.Header.Get("X-Forwarded-For") != "192.0.2.1" || q.Header.Get("Proxy-Authorization") != "" || len(q.Header["X-Sluice-Token"])+len(q.Header["X-Sluice-Agent"]) > 0 || q.Header.Get("User-Agent") != "" {
		t.Errorf("it got %s with %v", q.RequestURI, q.Header)
	}
}

// Once a connection to another host is upgraded, its bytes are no longer read as requests.
func TestUpgradesToOtherHosts(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.CopyN(c, rw, int64(len(twoLengths)))
	}))
	defer other.Close()
	r := begin(t, hello, nil)
	c := r.raw("GET " + other.URL + "/ HTTP/1.1\r\nHost: " + strings.TrimPrefix(other.URL, "http://") + "\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	_, _ = io.WriteString(c, twoLengths)
	if got, err := io.ReadAll(in); string(got) != twoLengths {
		t.Errorf("%q %v", got, err)
	}
}

// A plain request that offers HTTP/2 passes, to a gated host and to another one, and neither gets the offer.
func TestAnOfferOfHTTP2IsIgnored(t *testing.T) {
	seen := make(chan *http.Request, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { seen <- q }))
	defer other.Close()
	r := begin(t, hello, nil)
	for at, got := range map[string]chan *http.Request{other.URL: seen, "http://plain.provider.test": r.seen} {
		c := r.raw("GET " + at + "/x HTTP/1.1\r\nHost: " + strings.TrimPrefix(at, "http://") +
			"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", at, resp, err)
		}
		if q := <-got; q.Header["Upgrade"] != nil || q.Header["Http2-Settings"] != nil {
			t.Errorf("%s gets %v", at, q.Header)
		}
	}
}

// With OnlyGated other hosts are refused, and gated ones pass.
func TestOnlyGated(t *testing.T) {
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) { o.OnlyGated = true })
	if resp, _ := r.get(r.client(true), "https://"+host+"/a"); resp.StatusCode != http.StatusOK {
		t.Errorf("a gated host: %d", resp.StatusCode)
	}
	if _, err := r.client(true).Get("https://elsewhere.test/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("another host: %v", err)
	}
	if resp, text := r.get(r.client(true), "http://elsewhere.test/"); resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "hint: ") {
		t.Errorf("another host over HTTP: %d %q", resp.StatusCode, text)
	}
}

// A client without credentials gets a 407, and reaches nothing.
func TestCredentials(t *testing.T) {
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
		o.Admit = func(q *http.Request) (forward.Client, bool) {
			c, _ := forward.CredentialsOf(q)
			return forward.Client{Near: true}, c.User == "indexer" && c.Password == "secret" || c.Bearer == "secret"
		}
	})
	if resp, _ := r.get(r.client(true), "https://"+host+"/a"); resp.StatusCode != http.StatusOK {
		t.Errorf("with credentials: %d", resp.StatusCode)
	}
	for header, want := range map[string]int{
		"":                                    http.StatusProxyAuthRequired,
		"Proxy-Authorization: Basic !\r\n":    http.StatusProxyAuthRequired,
		"Proxy-Authorization: Bearer no\r\n":  http.StatusProxyAuthRequired,
		"Proxy-Authorization: Digest x\r\n":   http.StatusProxyAuthRequired,
		"Authorization: Bearer secret\r\n":    http.StatusProxyAuthRequired,
		"Proxy-Authorization: bearer  secret": http.StatusOK,
	} {
		c := r.raw("CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\n" + strings.TrimSuffix(header, "\r\n") + "\r\n" + strings.Repeat("\r\n", min(1, len(header))))
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
		if err != nil {
			t.Fatalf("%q: %v", header, err)
		}
		if resp.StatusCode != want || want == http.StatusProxyAuthRequired && !strings.HasPrefix(resp.Header.Get("Proxy-Authenticate"), "Basic ") {
			t.Errorf("%q: %s %v", header, resp.Status, resp.Header)
		}
	}
}

// A token in the credentials applies to every request of the connection.
func TestTokensOfTheCredentials(t *testing.T) {
	sum := sha256.Sum256([]byte("good"))
	for token, want := range map[string]int{"good": http.StatusOK, "bad": http.StatusUnauthorized} {
		r := begin(t, hello, func(o *forward.Options, po *proxy.Options) {
			po.Tokens = []proxy.Token{{Name: "one", Hash: hex.EncodeToString(sum[:]), Agent: "bound"}}
			o.Admit = func(*http.Request) (forward.Client, bool) { return forward.Client{Token: token}, true }
		})
		if resp, text := r.get(r.client(true), "https://"+host+"/a"); resp.StatusCode != want {
			t.Errorf("%s: %d %s", token, resp.StatusCode, text)
		}
	}
}

// A known client may use the gate's key; a web page in its browser may not.
func TestKeysOfTheGate(t *testing.T) {
	for trusted, want := range map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized} {
		r := begin(t, hello, func(o *forward.Options, po *proxy.Options) {
			api := po.Resources["api"]
			api.InjectHeader, api.InjectValue = "X-Api-Key", "of the gate"
			po.Resources["api"] = api
			o.Admit = func(*http.Request) (forward.Client, bool) { return forward.Client{Trusted: trusted, Near: true}, true }
		})
		resp, _ := r.get(r.client(true), "https://"+host+"/a")
		if resp.StatusCode != want {
			t.Errorf("trusted %v: %d", trusted, resp.StatusCode)
		}
		if !trusted {
			continue
		}
		if q := <-r.seen; q.Header.Get("X-Api-Key") != "of the gate" {
			t.Errorf("the provider got %v", q.Header)
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Origin", "https://page.test")
		resp, err = r.client(true).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("a web page: %d", resp.StatusCode)
		}
	}
}

// A provider with an invalid certificate is not reached, and the client is told why.
func TestTheProvidersCertificateIsVerified(t *testing.T) {
	r := begin(t, hello, func(_ *forward.Options, po *proxy.Options) { po.Base = &http.Transport{} })
	resp, text := r.get(r.client(true), "https://"+host+"/a")
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, "certificate") {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
	select {
	case <-r.seen:
		t.Error("the provider got the request")
	default:
	}
}

// Invalid requests get an error, and the proxy continues.
func TestBadRequests(t *testing.T) {
	r := begin(t, hello, nil)
	connect := func(to string) string { return "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n" }
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"no port":               {connect("elsewhere.test"), 400},
		"no host":               {connect(":443"), 400},
		"port 0":                {connect("elsewhere.test:0"), 400},
		"port too high":         {connect("elsewhere.test:65536"), 400},
		"port as name":          {connect("elsewhere.test:https"), 400},
		"user":                  {connect("me@elsewhere.test:443"), 400},
		"to the proxy itself":   {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
		"another scheme":        {"GET ftp://elsewhere.test/ HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n", 400},
		"two lengths":           {strings.Replace(twoLengths, "/", "http://plain.provider.test/", 1), 400},
		"huge header":           {"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n", 431},
		"host without a server": {connect("127.0.0.1:1"), 502},
	} {
		conn := r.raw("")
		go func() { _, _ = io.WriteString(conn, c.text) }() // the server may close before it has read all
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if resp.StatusCode != c.want || !resp.Close {
			t.Errorf("%s: %s, closes %v", name, resp.Status, resp.Close)
		}
	}
	if len(r.seen) > 0 {
		t.Errorf("%v arrived", <-r.seen)
	}
	if resp, _ := r.get(r.client(true), "https://"+host+"/a"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// A request inside a connection to one host cannot go to another, and huge headers are refused there too.
func TestBadRequestsInside(t *testing.T) {
	r := begin(t, hello, nil)
	inside := func(text string) int {
		conn := r.raw("CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\n\r\n")
		in := bufio.NewReader(conn)
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		c := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: r.client(false).Transport.(*http.Transport).TLSClientConfig.RootCAs})
		if err := c.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(c, text) }()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%.60q: %v", text, err)
			return 0
		}
		return resp.StatusCode
	}
	for text, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n":                                                                          421,
		"GET / HTTP/1.1\r\nHost: " + host + ":444\r\n\r\n":                                                                        421,
		"GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n":                                                                            200,
		"GET / HTTP/1.1\r\nHost: " + host + ":443\r\n\r\n":                                                                        200,
		"GET / HTTP/1.1\r\nHost: " + host + "\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n":                                 431,
		"POST / HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n":                               501,
	} {
		if got := inside(text); got != want {
			t.Errorf("%.60q: %d, want %d", text, got, want)
		}
	}
}

// A client that does not trust the certificate is logged once, with the host.
func TestAClientThatDoesNotTrust(t *testing.T) {
	r := begin(t, hello, nil)
	c := r.client(true, func(tr *http.Transport) { tr.TLSClientConfig.RootCAs = nil })
	for range 2 {
		if _, err := c.Get("https://" + host + "/"); err == nil {
			t.Fatal("it trusts an authority that it does not know")
		}
	}
	for end := time.Now().Add(patience); !strings.Contains(r.logged.String(), "--tunnel "+host); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log has %q", r.logged)
		}
	}
	if n := strings.Count(r.logged.String(), "--tunnel"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// A client on another machine reaches no address of this machine, by CONNECT or by an absolute URL.
func TestPrivateAddressesAreForNearClients(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(hello))
	defer other.Close()
	for near, want := range map[bool]int{true: http.StatusOK, false: http.StatusForbidden} {
		r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
			o.Admit = func(*http.Request) (forward.Client, bool) { return forward.Client{Near: near}, true }
		})
		if resp, _ := r.get(r.client(true), other.URL); resp.StatusCode != want {
			t.Errorf("near %v: a whole URL: %d", near, resp.StatusCode)
		}
		to := strings.TrimPrefix(other.URL, "http://")
		c := r.raw("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
		if err != nil || resp.StatusCode != want {
			t.Errorf("near %v: CONNECT: %v, %v", near, resp, err)
		}
	}
}

// A client that goes away ends its request.
func TestAClientThatDies(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
		o.Handler = http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body)
			close(arrived)
			<-q.Context().Done()
			close(ended)
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := r.client(true).Do(q); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("its request goes on")
	}
}

// A shutdown finishes running requests, ends silent tunnels, and is bounded.
func TestShutdown(t *testing.T) {
	arrived, finish := make(chan struct{}), make(chan struct{})
	r := begin(t, func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-finish
		_, _ = io.WriteString(w, "whole")
	}, nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	tunnel := r.raw(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", silent.Addr()))
	in := bufio.NewReader(tunnel)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	got := make(chan string, 1)
	go func() {
		resp, err := r.client(true).Get("https://" + host + "/")
		if err != nil {
			got <- err.Error()
			return
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		got <- string(text)
	}()
	<-arrived
	down := make(chan error, 1)
	go func() { down <- r.server.Shutdown(t.Context()) }()
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the silent tunnel: %v", err)
	}
	close(finish)
	if text := <-got; text != "whole" {
		t.Errorf("the request that was running got %q", text)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", r.at); err == nil {
		t.Error("it listens still")
	}
}

// A shutdown whose time is over cuts off what still runs.
func TestShutdownIsBounded(t *testing.T) {
	arrived := make(chan struct{})
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
		o.Handler = http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
			close(arrived)
			<-q.Context().Done()
		})
	})
	failed := make(chan error, 1)
	go func() {
		_, err := r.client(false).Get("https://" + host + "/")
		failed <- err
	}()
	<-arrived
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.server.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("a request that was cut off looks whole")
	}
}
