package forward_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
)

// An authority issues certificates for its hosts, and no client would accept one for another host.
func TestAuthorityIsConstrained(t *testing.T) {
	a, err := forward.NewAuthority("test", []string{"api.provider.test", "192.0.2.7", "2001:db8::1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.Certificate())
	for _, host := range []string{"api.provider.test", "API.provider.test", "192.0.2.7", "2001:db8::1"} {
		c, err := a.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: strings.ToLower(host)}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if again, _ := a.Leaf(host); again != c {
			t.Errorf("%s: another certificate the second time", host)
		}
	}
	for _, host := range []string{"provider.test", "elsewhere.test", "xapi.provider.test", "192.0.2.8", "::1"} {
		if _, err := a.Leaf(host); !errors.Is(err, forward.ErrNotCovered) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if got := a.Hosts(); !slices.Equal(got, []string{"192.0.2.7", "2001:db8::1", "api.provider.test"}) {
		t.Errorf("it covers %v", got)
	}
	// Constraints bind clients even if the key is used for something else. A kind of name that is not used is closed.
	for _, hosts := range [][]string{{"api.provider.test"}, {"192.0.2.7"}, nil} {
		a, err := forward.NewAuthority("test", hosts, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"elsewhere.test", "198.51.100.1"} {
			if err := forward.Forge(a, name); err == nil || !strings.Contains(err.Error(), "constraint") && !strings.Contains(err.Error(), "not permitted") && !strings.Contains(err.Error(), "excluded") {
				t.Errorf("authority of %v, certificate for %s: %v", hosts, name, err)
			}
		}
	}
}

// An authority in a file is readable only for its user, shared by all processes, and reloaded after a rotation.
func TestAuthorityInAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := forward.LoadFile(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before there is one: %v", err)
	}
	f, err := forward.OpenFile(dir, "test", []string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	again, err := forward.OpenFile(dir, "test", []string{"b.test"})
	if err != nil || again.Authority().Fingerprint() != f.Authority().Fingerprint() {
		t.Errorf("the second process has another one: %v", err)
	}
	if _, err := forward.Rotate(dir, "test", []string{"b.test"}); err != nil {
		t.Fatal(err)
	}
	forward.LookNow(f)
	if a := f.Authority(); a.Covers("a.test") || !a.Covers("b.test") {
		t.Errorf("after a rotation it covers %v", a.Hosts())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files that are left: %v, %v", entries, err)
	}
	if err := os.Chmod(f.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := forward.LoadFile(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := os.WriteFile(f.Path(), []byte("nonsense"), 0o600); err != nil || os.Chmod(f.Path(), 0o600) != nil {
		t.Fatal(err)
	}
	if _, err := forward.OpenFile(dir, "test", nil); err == nil {
		t.Error("nonsense is an authority")
	}
}

// The bundle holds the authority, the certificates that the environment names, and the system's. It copies nothing else
// from the files.
func TestBundle(t *testing.T) {
	a, err := forward.NewAuthority("test", []string{"a.test"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("canary")})
	dir := t.TempDir()
	file := filepath.Join(dir, "own.pem")
	if err := os.WriteFile(file, slices.Concat(secret, own), 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, path := range map[string]string{"REQUESTS_CA_BUNDLE": file, "CURL_CA_BUNDLE": dir, "SSL_CERT_DIR": dir} {
		text, missing := forward.Bundle(a, func(name string) string {
			return map[string]string{variable: path, "SSL_CERT_FILE": filepath.Join(dir, "none.pem")}[name]
		})
		if len(missing) != 1 || !strings.HasPrefix(missing[0].Error(), "SSL_CERT_FILE: ") {
			t.Errorf("missing are %v", missing)
		}
		if !bytes.Contains(text, own) || !bytes.HasPrefix(text, a.Certificate()) || bytes.Contains(text, []byte("PRIVATE")) {
			t.Errorf("the bundle of %s=%s is not right", variable, path)
		}
		if n := bytes.Count(text, []byte("BEGIN CERTIFICATE")); n < 20 {
			t.Errorf("it has %d certificates: those of the system are missing", n)
		}
	}
}

// Programs that read other variables trust the authority too, if these are set.
func TestBundleVariables(t *testing.T) {
	usual := forward.BundleVariables(func(string) string { return "" })
	if len(usual) != 8 || !slices.Contains(usual, "SSL_CERT_FILE") || slices.Contains(usual, "PIP_CERT") {
		t.Errorf("usual are %v", usual)
	}
	if set := forward.BundleVariables(func(name string) string { return map[string]string{"PIP_CERT": "x"}[name] }); !slices.Equal(set, append(usual, "PIP_CERT")) {
		t.Errorf("with PIP_CERT they are %v", set)
	}
}

// NO_PROXY keeps the entries that are not gated.
func TestNoProxy(t *testing.T) {
	gated := []string{"api.provider.test:443", "127.0.0.1:8443"}
	for list, want := range map[string]string{
		"":                                     "",
		"*":                                    "",
		"corp.test, .local":                    "corp.test,.local",
		"provider.test,corp.test":              "corp.test",
		".provider.test,*.provider.test":       "",
		"api.provider.test:8080":               "api.provider.test:8080",
		"api.provider.test:443":                "",
		"127.0.0.0/8,10.0.0.0/8,localhost,::1": "10.0.0.0/8,localhost,::1",
		"xapi.provider.test":                   "xapi.provider.test",
	} {
		if got := forward.NoProxy(list, gated); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A request finds its resource by host, port and path, and keeps its path.
func TestOriginsFindTheResource(t *testing.T) {
	o := forward.NewOrigins([]forward.Origin{
		{Resource: "first", Address: parse(t, "https://a.test/v1")},
		{Resource: "second", Address: parse(t, "https://a.test/v1")},
		{Resource: "beta", Address: parse(t, "https://a.test/v1/beta/")},
		{Resource: "moved", Address: parse(t, "https://b.test/api"), Upstream: parse(t, "http://127.0.0.1:9/base")},
		{Resource: "port", Address: parse(t, "https://a.test:8443")},
	})
	for at, want := range map[string]proxy.Intercepted{
		"a.test:443/v1/things":    {Resource: "first", Path: "/v1/things"},
		"A.test.:443/v1":          {Resource: "first", Path: "/v1"},
		"a.test:443/v1/beta/x%2F": {Resource: "beta", Path: "/v1/beta/x%2F"},
		"a.test:443/v1/betamax":   {Resource: "first", Path: "/v1/betamax"},
		"a.test:443/other":        {Resource: "first", Path: "/other"},
		"a.test:8443/v1":          {Resource: "port", Path: "/v1"},
		"b.test:443/api/x":        {Resource: "moved", Path: "/base/x", Address: "https://b.test/api"},
		"b.test:443/x":            {Resource: "moved", Path: "/x", Address: "https://b.test/api"},
		"a.test:80/v1":            {},
		"c.test:443/v1":           {},
	} {
		if got := forward.Find(o, at); got != want {
			t.Errorf("%s: %+v, want %+v", at, got, want)
		}
	}
	left, unknown := o.Without([]string{"A.test", "c.test"})
	if !slices.Equal(left.Hosts(), []string{"b.test"}) || !slices.Equal(unknown, []string{"c.test"}) || !slices.Equal(o.Hosts(), []string{"a.test", "b.test"}) {
		t.Errorf("left are %v, not known %v", left.Hosts(), unknown)
	}
}

// isPublic recognizes addresses of this machine and of private networks.
func TestPublicAddresses(t *testing.T) {
	for host, want := range map[string]bool{
		"example.com": true, "1.1.1.1": true, "2606:4700::1111": true,
		"127.0.0.1": false, "127.1": false, "0x7f000001": false, "2130706433": false, "::1": false, "::ffff:127.0.0.1": false, "localhost": false, "x.localhost": false, "localhost.": false,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fd00::1": false, "100.64.0.1": false,
		"0.0.0.0": false, "::": false, "224.0.0.1": false, "255.255.255.255": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "metadata.google.internal": false, "printer.local": false,
	} {
		if got := forward.Allowed(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}
