package ping

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/upstream"
)

// states returns the results of the steps, such as "dns skipped, connect ok".
func states(steps []Step) string {
	var list []string
	for _, s := range steps {
		list = append(list, s.Name+" "+s.State)
	}
	return strings.Join(list, ", ")
}

func target(t *testing.T, address, call string) *Target {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	to := &Target{URL: u, Without: "nothing to ask"}
	if call != "" {
		if to.Call, err = http.NewRequest(http.MethodGet, address+call, nil); err != nil { //nolint:noctx // Check gives it one
			t.Fatal(err)
		}
		to.Call.Header.Set("Authorization", "Bearer THEKEY")
	}
	return to
}

func TestThroughAProxy(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.String() }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL) // net/http reads it once in a process: this test has to be the first
	steps := target(t, "http://provider.invalid", "/v1/models").Check(t.Context())
	if states(steps) != "dns skipped, connect ok, tls skipped, call ok" || asked != "http://provider.invalid/v1/models" {
		t.Errorf("%s; the proxy was asked for %q", states(steps), asked)
	}
}

func TestSteps(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer THEKEY":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		}
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(secure.Certificate())
	mute, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed below
	if err != nil {
		t.Fatal(err)
	}
	closed := mute.Addr().String()
	_ = mute.Close()
	for _, c := range []struct {
		name, address, call string
		trusts              bool
		want                string
		status              int
	}{
		{"all of it", secure.URL, "/v1/models", true, "dns skipped, connect ok, tls ok, call ok", 200},
		{"without TLS", plain.URL, "/v1/models", false, "dns skipped, connect ok, tls skipped, call ok", 200},
		{"a redirect is not followed", plain.URL, "/away", false, "dns skipped, connect ok, tls skipped, call ok", 302},
		{"no call", secure.URL, "", true, "dns skipped, connect ok, tls ok, call skipped", 0},
		{"nor TLS", plain.URL, "", false, "dns skipped, connect ok, tls skipped, call skipped", 0},
		{"a certificate nobody knows", secure.URL, "/v1/models", false, "dns skipped, connect ok, tls failed", 0},
		{"a certificate nobody knows, without a call", secure.URL, "", false, "dns skipped, connect ok, tls failed", 0},
		{"no TLS there", strings.Replace(plain.URL, "http:", "https:", 1), "/v1/models", false, "dns skipped, connect ok, tls failed", 0},
		{"nobody listens", "http://" + closed, "/v1/models", false, "dns skipped, connect failed", 0},
		{"no such name", "https://sluice.invalid", "/v1/models", false, "dns failed", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := target(t, c.address, c.call)
			if c.trusts {
				to.Config = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
			}
			steps := to.Check(t.Context())
			if got := states(steps); got != c.want {
				t.Fatalf("%s, want %s", got, c.want)
			}
			last := steps[len(steps)-1]
			if strings.Contains(c.name, "nobody knows") && (!upstream.Untrusted(last.Err) || last.Err.Error() != "TLS to "+to.URL.Host+`: the certificate of "Acme Co" is self-signed, and this machine does not trust it`) {
				t.Errorf("it failed with %v", last.Err)
			}
			if last.Status != c.status || last.State == Failed && last.Err == nil {
				t.Errorf("%+v", last)
			}
			for _, s := range steps {
				if s.State == OK && s.Took <= 0 || s.Err != nil && strings.Contains(s.Err.Error(), "THEKEY") {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}
