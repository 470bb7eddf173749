package forward_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience bounds what a busy machine may take.
const patience = time.Minute

// host is what clients call the provider.
const host = "api.provider.test"

// rig is a provider, a gate before it, and the forward proxy.
type rig struct {
	*testing.T
	gate      *sluice.Gate
	server    *forward.Server
	authority *forward.Authority
	origins   *forward.Origins
	at        string
	seen      chan *http.Request // what the provider gets
	logged    *safeBuffer
	worldly   *x509.CertPool // trusts the provider alone
}

// trusting makes a transport trust the provider.
func trusting(provider *httptest.Server) *http.Transport {
	pool := x509.NewCertPool()
	pool.AddCert(provider.Certificate())
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableCompression: true}
}

// begin starts all of it. answer is the provider.
func begin(t *testing.T, answer http.HandlerFunc, change func(*forward.Options, *proxy.Options)) *rig {
	t.Helper()
	r := &rig{T: t, seen: make(chan *http.Request, 1000), logged: &safeBuffer{}}
	provider := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case r.seen <- q:
		default:
		}
		answer(w, q)
	}))
	t.Cleanup(provider.Close)
	up, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	limits := []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Unit: "requests", Size: 1000, Window: time.Minute}}
	if r.gate, err = sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: limits}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.gate.Close() })
	base := trusting(provider)
	r.worldly = base.TLSClientConfig.RootCAs
	t.Cleanup(base.CloseIdleConnections)
	po := proxy.Options{
		Gate: r.gate, Classes: []string{"p0", "p1", "p2"}, Base: base,
		Resources: map[string]proxy.Resource{"api": {Upstream: up, Limits: limits, Deadline: time.Minute}},
	}
	r.origins = forward.NewOrigins([]forward.Origin{
		{Resource: "api", Address: &url.URL{Scheme: "https", Host: host}, Upstream: up},
		{Resource: "api", Address: &url.URL{Scheme: "http", Host: "plain.provider.test"}, Upstream: up},
		{Resource: "api", Address: up, Upstream: up},
	})
	if r.authority, err = forward.NewAuthority("test", r.origins.Hosts(), time.Hour); err != nil {
		t.Fatal(err)
	}
	o := forward.Options{
		Origins:   func() *forward.Origins { return r.origins },
		Authority: func() *forward.Authority { return r.authority },
		Log:       slog.New(slog.NewTextHandler(r.logged, nil)),
	}
	if change != nil {
		change(&o, &po)
	}
	p, err := proxy.New(po)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Settle)
	if o.Handler == nil {
		o.Handler = p
	}
	r.server = forward.New(o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.at = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(l) }()
	t.Cleanup(func() {
		_ = r.server.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// client trusts the authority and goes through the proxy.
func (r *rig) client(http2 bool, change ...func(*http.Transport)) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.authority.Certificate())
	t := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: r.at, User: url.UserPassword("indexer", "secret")}),
		TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2, DisableCompression: true,
	}
	for _, c := range change {
		c(t)
	}
	r.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: patience}
}

func (r *rig) get(c *http.Client, address string) (*http.Response, string) {
	r.Helper()
	resp, err := c.Get(address)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp, string(text)
}

// raw sends text to the proxy and returns the connection.
func (r *rig) raw(text string) net.Conn {
	r.Helper()
	c, err := net.Dial("tcp", r.at)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		r.Fatal(err)
	}
	return c
}

func hello(w http.ResponseWriter, q *http.Request) { _, _ = io.WriteString(w, "hello "+q.URL.Path) }

// safeBuffer is a log that may be written and read at once.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
