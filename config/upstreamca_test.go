package config

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The certificates are read when they are asked for. An error names file, line and field, and no value of a variable.
func TestUpstreamCerts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	for name, text := range map[string][]byte{"ca.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), "text.pem": []byte("hello")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(value string) (int, error) {
		t.Helper()
		f, err := Parse("f.yaml", []byte("store: 'mem:'\nupstream_ca: "+value+"\n"), func(string) (string, bool) { return dir, true })
		if err != nil {
			t.Fatal(err)
		}
		certs, err := f.UpstreamCerts()
		return len(certs), err
	}
	for _, value := range []string{filepath.Join(dir, "ca.pem"), dir, "'${DIR}/ca.pem'"} {
		if n, err := read("'" + strings.Trim(value, "'") + "'"); n != 1 || err != nil {
			t.Errorf("%s: %d certificates, %v", value, n, err)
		}
	}
	for value, want := range map[string]string{
		"'${DIR}/none.pem'": `f.yaml:2:14: upstream_ca: "${DIR}/none.pem" cannot be read: `,
		"'${DIR}/text.pem'": `f.yaml:2:14: upstream_ca: "${DIR}/text.pem" cannot be read: it holds no certificate in PEM; `,
		"/nowhere/ca.pem":   `f.yaml:2:14: upstream_ca: "/nowhere/ca.pem" cannot be read: `,
	} {
		_, err := read(value)
		var at *ParseError
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error()+at.Excerpt, dir) || !strings.Contains(at.Excerpt, ">  2 | upstream_ca") {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
	if certs, err := Default().UpstreamCerts(); len(certs) != 0 || err != nil {
		t.Errorf("without the field: %d, %v", len(certs), err)
	}
	if _, err := (&File{UpstreamCA: "/nowhere/ca.pem"}).UpstreamCerts(); err == nil || !strings.HasPrefix(err.Error(), "configuration: upstream_ca: ") {
		t.Errorf("of no file: %v", err)
	}
}
