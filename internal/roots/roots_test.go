package roots_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/roots"
	"github.com/sluicehq/sluice/proxy/forward"
)

// authority is one that no system trusts.
func authority(t *testing.T) *forward.Authority {
	t.Helper()
	a, err := forward.NewAuthority("Example Corp Root CA", []string{"api.test"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// trusts reports whether a pool trusts the certificates of an authority.
func trusts(t *testing.T, pool *x509.CertPool, a *forward.Authority) bool {
	t.Helper()
	leaf, err := a.Leaf("api.test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "api.test"})
	return err == nil
}

func write(t *testing.T, path string, parts ...[]byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, slices.Concat(parts...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// env is an environment.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// Every variable adds the certificates of its file, or of the files in its directory.
func TestEachVariableAdds(t *testing.T) {
	a, other := authority(t), authority(t)
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "one", "ca.pem"), []byte("a comment\n"), a.Certificate())
	empty := filepath.Join(dir, "empty")
	hashed := filepath.Join(dir, "hashed")
	for _, d := range []string{empty, hashed} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(hashed, "README"), []byte("what is here"))
	if hash := filepath.Join(hashed, "6b99d060.0"); runtime.GOOS == "windows" { // only administrators can make links there
		write(t, hash, a.Certificate())
	} else if err := os.Symlink(file, hash); err != nil {
		t.Fatal(err)
	}
	type setting struct{ name, value string }
	list := []setting{
		{"REQUESTS_CA_BUNDLE", hashed}, {"SSL_CERT_DIR", filepath.Dir(file)}, {"SSL_CERT_DIR", hashed},
		{"SSL_CERT_DIR", empty + string(os.PathListSeparator) + hashed},
	}
	for _, name := range []string{
		"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_CA_BUNDLE", "DENO_CERT", "GIT_SSL_CAINFO", "PIP_CERT", "npm_config_cafile",
	} {
		list = append(list, setting{name, file})
	}
	for _, s := range list {
		pool := roots.New(nil, env(s.name, s.value), func(err error) { t.Error(err) }).Pool()
		if !trusts(t, pool, a) || trusts(t, pool, other) {
			t.Errorf("%s=%s: the certificate in it is not trusted, or one that is not in it is", s.name, s.value)
		}
	}
}

// Nothing is read before it is needed, and nothing at all if nothing is named: then the system decides.
func TestReadWhenNeeded(t *testing.T) {
	asked := false
	r := roots.New(nil, func(string) string { asked = true; return "" }, nil)
	if asked {
		t.Error("the environment was read at once")
	}
	if pool := r.Pool(); pool != nil || !asked {
		t.Errorf("the pool is %v", pool)
	}
	if c := r.Config(); c.RootCAs != nil || c.MinVersion < tls.VersionTLS12 {
		t.Errorf("the configuration is %+v", c)
	}
	if (*roots.Roots)(nil).Pool() != nil {
		t.Error("no roots are not those of the system")
	}
}

// Certificates of a configuration are trusted in addition to those of the environment.
func TestOwnCertificates(t *testing.T) {
	a, b := authority(t), authority(t)
	dir := t.TempDir()
	own, err := roots.Read(write(t, filepath.Join(dir, "a.pem"), a.Certificate()))
	if err != nil {
		t.Fatal(err)
	}
	pool := roots.New(own, env("DENO_CERT", write(t, filepath.Join(dir, "b.pem"), b.Certificate())), nil).Pool()
	if !trusts(t, pool, a) || !trusts(t, pool, b) {
		t.Error("one of them is not trusted")
	}
	if alone := roots.New(own, env(), nil).Pool(); !trusts(t, alone, a) || trusts(t, alone, b) {
		t.Error("own certificates need a variable")
	}
}

// What cannot be read is named once, with its variable, and the rest is trusted.
func TestWhatCannotBeRead(t *testing.T) {
	a := authority(t)
	dir := t.TempDir()
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hello")})
	none := filepath.Join(dir, "none.pem")
	get := env(
		"SSL_CERT_FILE", none, "CURL_CA_BUNDLE", none, // named twice
		"REQUESTS_CA_BUNDLE", write(t, filepath.Join(dir, "text.pem"), []byte("no certificate\n")),
		"AWS_CA_BUNDLE", write(t, filepath.Join(dir, "broken.pem"), broken),
		"NODE_EXTRA_CA_CERTS", write(t, filepath.Join(dir, "good.pem"), broken, a.Certificate()),
		"SSL_CERT_DIR", filepath.Join(dir, "away"),
	)
	var told []string
	r := roots.New(nil, get, func(err error) { told = append(told, err.Error()) })
	for range 2 {
		if !trusts(t, r.Pool(), a) {
			t.Error("the good one is not trusted")
		}
	}
	slices.Sort(told)
	want := []string{"AWS_CA_BUNDLE: ", "REQUESTS_CA_BUNDLE: ", "SSL_CERT_DIR: ", "SSL_CERT_FILE: "}
	if !slices.EqualFunc(told, want, strings.HasPrefix) {
		t.Errorf("told %q, want one for each of %q", told, want)
	}
}

// A file of a configuration has to be right.
func TestRead(t *testing.T) {
	a := authority(t)
	dir := t.TempDir()
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("canary")})
	file := write(t, filepath.Join(dir, "both", "ca.pem"), key, a.Certificate())
	for _, path := range []string{file, filepath.Dir(file)} {
		if certs, err := roots.Read(path); err != nil || len(certs) != 1 || certs[0].Subject.CommonName != "Example Corp Root CA" {
			t.Errorf("%s: %v, %v", path, certs, err)
		}
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.pem"): "no such file",
		empty:                          "no certificate",
		write(t, filepath.Join(dir, "key.pem"), key): "no certificate",
		write(t, filepath.Join(dir, "b.pem"), a.Certificate(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}), a.Certificate()): "certificate 2 of 3",
		os.DevNull: "not a plain file",
	} {
		if runtime.GOOS == "windows" && (path == os.DevNull || want == "no such file") {
			continue // other words
		}
		if certs, err := roots.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", path, certs, err, want)
		}
	}
}
