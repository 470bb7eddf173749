package forward_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
)

// passages records connections past the gate.
type passages struct {
	mu   sync.Mutex
	list []string
}

func (p *passages) add(c forward.Client, resource, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := resource + " " + host
	if c.Gate {
		text += " of a gate"
	}
	p.list = append(p.list, text)
}

func (p *passages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.list, ", ")
}

// Connections to watched hosts are tunnelled unchanged and told, requests with a whole URL too. Others are not told.
func TestWatchedHostsAreTold(t *testing.T) {
	var seen passages
	watched, other := httptest.NewTLSServer(http.HandlerFunc(hello)), httptest.NewTLSServer(http.HandlerFunc(hello))
	defer watched.Close()
	defer other.Close()
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	var list []forward.Origin
	for _, address := range []string{watched.URL + "/base", plain.URL} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, forward.Origin{Resource: "watched", Address: u})
	}
	origins := forward.NewOrigins(list)
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
		o.Watched, o.Past = func() *forward.Origins { return origins }, seen.add
		o.Admit = func(q *http.Request) (forward.Client, bool) {
			c, _ := forward.CredentialsOf(q)
			return forward.Client{Near: true, Gate: c.User == "gate"}, true
		}
	})
	for _, server := range []*httptest.Server{watched, other, plain} {
		c := r.client(true, func(tr *http.Transport) {
			if server != plain {
				tr.TLSClientConfig.RootCAs = trusting(server).TLSClientConfig.RootCAs
			}
		})
		if resp, text := r.get(c, server.URL+"/x"); text != "hello /x" || resp.TLS != nil && !resp.TLS.PeerCertificates[0].Equal(server.Certificate()) {
			t.Errorf("%s: %q", server.URL, text)
		}
	}
	c := r.client(true, func(tr *http.Transport) {
		tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: r.at, User: url.UserPassword("gate", "secret")})
		tr.TLSClientConfig.RootCAs = trusting(watched).TLSClientConfig.RootCAs
	})
	r.get(c, watched.URL)
	if got := seen.String(); got != "watched 127.0.0.1, watched 127.0.0.1, watched 127.0.0.1 of a gate" {
		t.Errorf("told: %s", got)
	}
	dead := httptest.NewTLSServer(nil)
	u, _ := url.Parse(dead.URL)
	origins = forward.NewOrigins([]forward.Origin{{Resource: "dead", Address: u}})
	dead.Close()
	if _, err := c.Get(dead.URL); err == nil || strings.Contains(seen.String(), "dead") {
		t.Errorf("a connection that failed is told: %v", err)
	}
}

// yielding starts a gate that yields, before a provider at its own address.
func yielding(t *testing.T, seen *passages) *rig {
	return begin(t, hello, func(o *forward.Options, _ *proxy.Options) { o.Yield, o.Past = true, seen.add })
}

// provider is the provider's own address.
func (r *rig) provider() string {
	for _, address := range r.origins.Addresses() {
		if strings.HasPrefix(address, "127.0.0.1:") {
			return address
		}
	}
	r.Fatal("no provider")
	return ""
}

// distrusting is a client that trusts the provider alone, and names itself when it connects.
func (r *rig) distrusting(agent string) *http.Client {
	return r.client(true, func(tr *http.Transport) {
		tr.TLSClientConfig.RootCAs = r.worldly
		tr.ProxyConnectHeader = http.Header{"User-Agent": {agent}}
		tr.DisableKeepAlives = true
	})
}

// yields waits until the gate knows of a refusal.
func (r *rig) yields() {
	r.Helper()
	for end := time.Now().Add(patience); !strings.Contains(r.logged.String(), "go past the gate"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("the log has %s", r.logged.String())
		}
	}
}

// A client that refuses the certificate reaches the host by itself from then on. Other clients are still gated.
func TestYieldsToAClientThatRefuses(t *testing.T) {
	var seen passages
	r := yielding(t, &seen)
	at := "https://" + r.provider() + "/x"
	c := r.distrusting("pinned/1.0")
	if _, err := c.Get(at); err == nil {
		t.Fatal("it trusts the gate")
	}
	r.yields()
	if _, text := r.get(c, at); text != "hello /x" || seen.String() != "api 127.0.0.1" {
		t.Errorf("%q, told: %s", text, seen.String())
	}
	if _, text := r.get(r.client(false), at); text != "hello /x" || seen.String() != "api 127.0.0.1" {
		t.Errorf("another client: %q, told: %s", text, seen.String())
	}
	if log := r.logged.String(); strings.Count(log, "go past the gate") != 1 || strings.Contains(log, "--tunnel") {
		t.Errorf("the log has %s", log)
	}
	rep, err := r.gate.Report(t.Context(), time.Time{})
	if err != nil || rep.Resources[0].Total.FirstSends != 1 {
		t.Errorf("the gate counted %+v, %v", rep.Resources, err)
	}
}

// silently connects as Node does with a certificate that it does not trust: it completes the handshake and hangs up.
func (r *rig) silently(agent string) {
	r.Helper()
	c := r.raw("CONNECT " + r.provider() + " HTTP/1.1\r\nHost: " + r.provider() + "\r\nUser-Agent: " + agent + "\r\n\r\n")
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("CONNECT: %v, %v", resp, err)
	}
	conn := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	if err := conn.HandshakeContext(r.Context()); err != nil {
		r.Fatal(err)
	}
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, conn) // until the gate has seen it
	_ = conn.Close()
}

// A client may hang up without a word when it does not trust the certificate. One that sends requests is trusted, even if it
// hangs up at times.
func TestYieldsToAClientThatHangsUp(t *testing.T) {
	var seen passages
	r := yielding(t, &seen)
	at := "https://" + r.provider() + "/x"
	r.silently("silent/1.0")
	r.silently("silent/1.0")
	r.yields()
	if _, text := r.get(r.distrusting("silent/1.0"), at); text != "hello /x" || seen.String() != "api 127.0.0.1" {
		t.Errorf("%q, told: %s", text, seen.String())
	}
	named := r.client(true, func(tr *http.Transport) { tr.ProxyConnectHeader = http.Header{"User-Agent": {"calls/1.0"}} })
	r.get(named, at)
	for range 3 {
		r.silently("calls/1.0")
	}
	named.CloseIdleConnections()
	if r.get(named, at); seen.String() != "api 127.0.0.1" {
		t.Errorf("told: %s", seen.String())
	}
}

// Browsers take a proxy's address from the environment, and not its password: they get tunnels, without the credentials of a
// further proxy. Programs that send theirs only when asked are asked for gated hosts.
func TestClientsWithoutCredentials(t *testing.T) {
	var seen passages
	other := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer other.Close()
	asked := make(chan string, 10)
	further := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked <- q.Host + " " + q.Header.Get("Proxy-Authorization")
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer further.Close()
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
		o.Anonymous, o.Past = true, seen.add
		o.Admit = func(q *http.Request) (forward.Client, bool) {
			c, _ := forward.CredentialsOf(q)
			return forward.Client{Near: true, Trusted: true}, c.Password == "secret"
		}
		o.Proxy = func(u *url.URL) (*url.URL, error) {
			if !strings.HasSuffix(u.Hostname(), "far.test") {
				return nil, nil
			}
			p, err := url.Parse(further.URL)
			p.User = url.UserPassword("me", "password")
			return p, err
		}
	})
	status := func(at, agent, credentials string) int {
		t.Helper()
		c := r.raw("CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\nUser-Agent: " + agent + "\r\n" + credentials + "\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	elsewhere := strings.TrimPrefix(other.URL, "https://")
	for _, try := range []struct {
		at, agent, credentials string
		want                   int
	}{
		{elsewhere, "browser", "", 200},
		{elsewhere, "browser", "Proxy-Authorization: Basic c2x1aWNlOndyb25n\r\n", 407},
		{r.provider(), "browser", "", 407},
		{r.provider(), "browser", "", 407},
		{r.provider(), "browser", "", 200},
		{"far.test:443", "browser", "", 502},
	} {
		if got := status(try.at, try.agent, try.credentials); got != try.want {
			t.Errorf("%+v: %d", try, got)
		}
	}
	if got := seen.String(); got != "api 127.0.0.1" {
		t.Errorf("told: %s", got)
	}
	if got := <-asked; got != "far.test:443 " {
		t.Errorf("the further proxy got %q", got)
	}
	r.raw("GET http://plain.far.test/ HTTP/1.1\r\nHost: plain.far.test\r\n\r\n")
	if got := <-asked; got != "plain.far.test " {
		t.Errorf("the further proxy got %q", got)
	}
	asks := r.client(false, func(tr *http.Transport) { tr.ProxyConnectHeader = http.Header{"User-Agent": {"asks"}} })
	for range 4 { // as git does
		if got := status(r.provider(), "asks", ""); got != 407 {
			t.Errorf("a program that is asked: %d", got)
		}
		r.get(asks, "https://"+r.provider()+"/x")
	}
}
