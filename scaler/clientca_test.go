package scaler_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice/internal/grpcserve"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// certificates makes an authority with a certificate for a server and one for a client.
func certificates(tb testing.TB) redisrun.Certs {
	tb.Helper()
	c, err := redisrun.WriteCerts(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func pair(tb testing.TB, cert, key string) tls.Certificate {
	tb.Helper()
	p, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// trusting returns a client's config: it trusts one authority, and shows a certificate of another.
func trusting(tb testing.TB, server redisrun.Certs, client ...redisrun.Certs) grpc.DialOption {
	tb.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(read(tb, server.CA)) {
		tb.Fatal("no authority")
	}
	config := &tls.Config{RootCAs: pool}
	for _, c := range client {
		config.Certificates = append(config.Certificates, pair(tb, c.ClientCert, c.ClientKey))
	}
	return withTLS(config)
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func write(tb testing.TB, file string, text []byte) {
	tb.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// mutual returns a rig whose clients need a certificate of the authorities in a file.
func mutual(tb testing.TB, server redisrun.Certs, file string, log *slog.Logger) *rig {
	tb.Helper()
	config, err := grpcserve.ClientCA(&tls.Config{Certificates: []tls.Certificate{pair(tb, server.Cert, server.Key)}}, file, log)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, l, l.Addr().String(), config)
}

func TestClientsNeedACertificate(t *testing.T) {
	ours, foreign := certificates(t), certificates(t)
	r := mutual(t, ours, ours.CA, nil)
	for _, c := range []struct {
		name   string
		option grpc.DialOption
		ok     bool
	}{
		{"with a certificate", trusting(t, ours, ours), true},
		{"without one", trusting(t, ours), false},
		{"with one of another authority", trusting(t, ours, foreign), false},
		{"that trusts another server", trusting(t, foreign, ours), false},
		{"in plain text", grpc.WithTransportCredentials(insecure.NewCredentials()), false},
	} {
		client := r.dial(c.option)
		for name, call := range calls {
			err := call(t.Context(), client, flow)
			if c.ok && err != nil || !c.ok && status.Code(err) != codes.Unavailable {
				t.Errorf("%s %s: %v", name, c.name, err)
			}
		}
	}
}

// Authorities can change while it serves, and a wrong file changes nothing.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	first, second := certificates(t), certificates(t)
	file := filepath.Join(t.TempDir(), "clients.pem")
	write(t, file, read(t, first.CA))
	log := &bytes.Buffer{}
	r := mutual(t, first, file, slog.New(slog.NewTextHandler(log, nil)))
	asks := func(certs redisrun.Certs) error {
		_, err := r.dial(trusting(t, first, certs)).IsActive(t.Context(), flow)
		return err
	}
	check := func(when string, of redisrun.Certs, ok bool) {
		t.Helper()
		if err := asks(of); ok && err != nil || !ok && status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", when, err)
		}
	}
	open := r.dial(trusting(t, first, first))
	if _, err := open.IsActive(t.Context(), flow); err != nil {
		t.Fatal(err)
	}
	check("the second, before", second, false)
	write(t, file, append(read(t, first.CA), read(t, second.CA)...))
	check("the first, with both", first, true)
	check("the second, with both", second, true)
	write(t, file, read(t, second.CA))
	check("the first, after", first, false)
	check("the second, after", second, true)
	write(t, file, []byte("-----BEGIN"))
	for range 3 {
		check("the second, with a file that is wrong", second, true)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("the second, without a file", second, true)
	write(t, file, read(t, first.CA))
	check("the first, at the end", first, true)
	if _, err := open.IsActive(t.Context(), flow); err != nil {
		t.Errorf("a connection from before: %v", err)
	}
	r.stop()
	if l := log.String(); strings.Count(l, "read again\"") != 3 || strings.Count(l, "holds no certificate") != 1 || strings.Count(l, "cannot be read") != 1 {
		t.Errorf("the log says\n%s", l)
	}
}

func TestWrongAuthorities(t *testing.T) {
	certs, dir := certificates(t), t.TempDir()
	at := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		write(t, file, text)
		return file
	}
	der := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	for file, says := range map[string]string{
		filepath.Join(dir, "none"):  "no such file",
		dir:                         "no regular file",
		at("empty", nil):            "holds no certificate",
		at("text", []byte("hello")): "holds no certificate",
		at("key", append(read(t, certs.CA), read(t, certs.ClientKey)...)): "PRIVATE KEY: certificates alone",
		at("broken", der):                  "cannot be read: x509",
		at("large", make([]byte, 1<<20+1)): "more than 1048576 bytes",
	} {
		_, err := grpcserve.ClientCA(&tls.Config{}, file, nil)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%v, want %q and the file", err, says)
		}
	}
}
