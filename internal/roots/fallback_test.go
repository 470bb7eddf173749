package roots

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// The certificates built in are left out only if Go is sure to find others.
func TestFallbackIsLeftOutWhereTheSystemHasCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const begin = "-----BEGIN CERTIFICATE-----\n"
	good, key, none := file("good", "# Some Root\n"+begin), file("key", "-----BEGIN PRIVATE KEY-----\n"), filepath.Join(dir, "none")
	for _, c := range []struct {
		name  string
		env   map[string]string
		files []string
		want  bool
	}{
		{"a bundle", nil, []string{none, good}, true},
		{"no file", nil, []string{none}, false},
		{"Go reads only the first that is there", nil, []string{key, good}, false},
		{"a directory", nil, []string{dir, good}, false},
		{"another file by the environment", map[string]string{"SSL_CERT_FILE": good}, []string{none}, true},
		{"no file by the environment", map[string]string{"SSL_CERT_FILE": none}, []string{good}, false},
		{"asked for by GODEBUG", map[string]string{"GODEBUG": "x509usefallbackroots=1"}, []string{good}, false},
	} {
		if got := hasBundle(func(name string) string { return c.env[name] }, c.files); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestBuiltinCertificates(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	addBuiltin(pool)
	if pool.Equal(x509.NewCertPool()) {
		t.Error("there are none")
	}
}
