package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// signed is a certificate with its key.
type signed struct {
	*x509.Certificate
	key *ecdsa.PrivateKey
}

// sign makes a certificate. Without a parent it is self-signed.
func sign(t *testing.T, name pkix.Name, authority bool, parent *signed, until time.Time) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: name, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, IsCA: authority, BasicConstraintsValid: true,
		DNSNames: []string{"api.test", "evil\x1b[2J.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	above, by := template, key
	if parent != nil {
		above, by = parent.Certificate, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, above, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signed{cert, key}
}

// The words about a certificate name its issuer and the host. What the other side wrote into it is bounded and harmless.
func TestWordsOfCertificates(t *testing.T) {
	long := strings.Repeat("long ", 100)
	later := time.Now().Add(time.Hour)
	named := func(name string) pkix.Name { return pkix.Name{CommonName: name, Organization: []string{"Example"}} }
	root := sign(t, named("Example Corp Root CA"), true, nil, later)
	middle := sign(t, named("Example Corp inspection"), true, root, later)
	leaf := sign(t, named("api.test"), false, middle, later)
	namesake := sign(t, named("Example Corp Root CA"), true, nil, later)
	const distrusted = ", which this machine does not trust"
	for name, c := range map[string]struct {
		shown  []*signed
		trusts *signed
		words  string
	}{
		"the root is not shown":  {[]*signed{leaf, middle}, nil, `the certificate was issued by "Example Corp Root CA"` + distrusted},
		"all are shown":          {[]*signed{leaf, middle, root}, nil, `the certificate was issued by "Example Corp Root CA"` + distrusted},
		"in another order":       {[]*signed{leaf, root, middle}, nil, `the certificate was issued by "Example Corp Root CA"` + distrusted},
		"one alone":              {[]*signed{leaf}, nil, `the certificate was issued by "Example Corp inspection"` + distrusted},
		"of the same name":       {[]*signed{leaf, middle}, namesake, `the certificate was issued by "Example Corp Root CA"` + distrusted + "; another one of that name does not fit"},
		"self-signed":            {[]*signed{sign(t, named("box"), false, nil, later)}, nil, `the certificate of "box" is self-signed, and this machine does not trust it`},
		"an organization":        {[]*signed{sign(t, pkix.Name{CommonName: "x"}, false, sign(t, pkix.Name{Organization: []string{"Acme"}}, true, nil, later), later)}, nil, `the certificate was issued by "Acme"` + distrusted},
		"no name":                {[]*signed{sign(t, pkix.Name{CommonName: "x"}, false, sign(t, pkix.Name{Country: []string{"XX"}}, true, nil, later), later)}, nil, `the certificate was issued by an authority without a name` + distrusted},
		"a long name":            {[]*signed{sign(t, named("x"), false, sign(t, named(long), true, nil, later), later)}, nil, `the certificate was issued by "` + long[:53] + `..."` + distrusted},
		"characters of terminal": {[]*signed{sign(t, named("x"), false, sign(t, named("a\x1b[2J\u202e\"b\nc"), true, nil, later), later)}, nil, `the certificate was issued by "a[2J'bc"` + distrusted},
		"expired":                {[]*signed{sign(t, named("x"), false, root, time.Now().Add(-time.Hour))}, root, "x509: certificate has expired or is not yet valid: "},
	} {
		t.Run(name, func(t *testing.T) {
			pair := tls.Certificate{PrivateKey: c.shown[0].key}
			for _, s := range c.shown {
				pair.Certificate = append(pair.Certificate, s.Raw)
			}
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			server.StartTLS()
			defer server.Close()
			pool := x509.NewCertPool()
			if c.trusts != nil {
				pool.AddCert(c.trusts.Certificate)
			}
			err := get(t, server.URL, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}})
			if got := Words(err); !strings.HasPrefix(got, "TLS failed: "+c.words) {
				t.Errorf("without a host: %q, want %q", got, c.words)
			}
			at := At(At(err, "api.test:443"), "another")
			if got := Words(at); Kind(at) != TLS || !strings.HasPrefix(got, "TLS to api.test:443: "+c.words) || len(got) > 256 {
				t.Errorf("%q of %d bytes, want %q", got, len(got), c.words)
			}
			if Untrusted(at) != (name != "expired") || at.Error() != err.Error() {
				t.Errorf("%v: untrusted is %v", at, Untrusted(at))
			}
		})
	}
}

func get(t *testing.T, address string, way *http.Transport) error {
	t.Helper()
	defer way.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := way.RoundTrip(q)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("it answers")
	}
	return err
}

// The names in a certificate of another host are harmless too.
func TestWordsOfAnotherHost(t *testing.T) {
	root := sign(t, pkix.Name{CommonName: "root"}, true, nil, time.Now().Add(time.Hour))
	_, err := root.Verify(x509.VerifyOptions{DNSName: "other.test", Roots: pool(root)})
	if got := Words(At(fmt.Errorf("wrapped: %w", err), "other.test")); !strings.HasPrefix(got, "TLS to other.test: x509: certificate is valid for api.test, evil[2J.test, not other.test") {
		t.Errorf("%q", got)
	}
}

func pool(certs ...*signed) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certs {
		p.AddCert(c.Certificate)
	}
	return p
}

// An error of TLS to the proxy on the way says that it is about the proxy.
func TestWordsOfAProxy(t *testing.T) {
	proxy := httptest.NewTLSServer(http.NotFoundHandler())
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = get(t, "https://api.test", &http.Transport{Proxy: http.ProxyURL(at)})
	const words = `the certificate of "Acme Co" is self-signed, and this machine does not trust it`
	if got := Words(err); got != "TLS to the proxy failed: "+words {
		t.Errorf("%q", got)
	}
	if got := Words(At(err, "api.test")); got != "TLS to the proxy on the way to api.test: "+words {
		t.Errorf("%q", got)
	}
	if err := At(net.ErrClosed, "api.test"); err != net.ErrClosed {
		t.Errorf("%#v", err)
	}
	if At(nil, "api.test") != nil {
		t.Error("no error became one")
	}
}
