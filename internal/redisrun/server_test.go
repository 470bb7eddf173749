//go:build unix

package redisrun

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/leaktest"
)

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		beParent()
	}
	leaktest.Main(m)
}

func do(tb testing.TB, s *Server, args ...string) string {
	tb.Helper()
	text, err := s.Do(context.Background(), args...)
	if err != nil {
		tb.Fatalf("%s: %v", args[0], err)
	}
	return text
}

// gone says whether a child has ended and was collected.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestServerLife(t *testing.T) {
	t.Parallel()
	s := New(t, "appendonly yes")
	addr, first := s.Addr(), s.Pid()
	if s.URL() != "redis://"+addr || first == 0 {
		t.Fatalf("URL %s, pid %d", s.URL(), first)
	}
	do(t, s, "SET", "kept", "1")

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if !gone(first) || s.Pid() != 0 {
		t.Errorf("after kill: process gone: %v, pid %d", gone(first), s.Pid())
	}
	if _, err := s.Do(t.Context(), "PING"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server: %v", err)
	}
	if err := s.Pause(); err == nil {
		t.Error("a killed server was paused")
	}
	if err := s.Resume(); err == nil {
		t.Error("a killed server was resumed")
	}
	if err := s.Kill(); err != nil {
		t.Errorf("killed again: %v", err)
	}

	for range 2 { // from the dead, then a running one
		before := s.Pid()
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if s.Pid() == before || s.Addr() != addr {
			t.Errorf("restarted as %d on %s, was %d on %s", s.Pid(), s.Addr(), before, addr)
		}
		if got := do(t, s, "GET", "kept"); got != "1" {
			t.Errorf("after a restart with appendonly: %q", got)
		}
	}

	last := s.Pid()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !gone(last) || !os.IsNotExist(err) {
		t.Errorf("after stop: process gone: %v, directory: %v", gone(last), err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stopped again: %v", err)
	}
	if err := s.Restart(); err == nil || s.Pid() != 0 {
		t.Errorf("a stopped server was restarted: %v", err)
	}
}

func TestNothingIsKeptUnlessAskedFor(t *testing.T) {
	t.Parallel()
	s := New(t)
	do(t, s, "SET", "k", "1")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "DBSIZE"); got != "0" {
		t.Errorf("%s keys after a restart", got)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := New(t)
	for range 2 { // the second does nothing
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Do(ctx, "PING"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	do(t, s, "PING")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	pid := s.Pid()
	if err := s.Stop(); err != nil || !gone(pid) {
		t.Errorf("stop while paused: %v, process gone: %v", err, gone(pid))
	}
}

func TestStopTellsOfAServerThatEndedByItself(t *testing.T) {
	t.Parallel()
	s, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := s.process
	p.kill()
	<-p.done
	if s.Pid() != 0 {
		t.Errorf("pid %d of a dead process", s.Pid())
	}
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("stop: %v", err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("its directory: %v", err)
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush"
	s := New(t, "requirepass "+secret)
	do(t, s, "PING")
	if strings.Contains(s.URL(), secret) {
		t.Errorf("%s shows the password", s.URL())
	}
	open := &Server{port: s.port}
	var refused ReplyError
	if _, err := open.Do(t.Context(), "PING"); !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "NOAUTH") {
		t.Errorf("without the password: %v", err)
	}
	wrong := &Server{port: s.port, password: "not-" + secret}
	if _, err := wrong.Do(t.Context(), "PING"); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("with another password: %v", err)
	}
}

// TestOneThatDoesNotStart cannot be parallel: it would find the files of other tests.
func TestOneThatDoesNotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, c := range map[string]struct {
		opts       Options
		says, hide string
	}{
		"bad line":     {Options{Lines: []string{"no-such-directive 1"}}, "no-such-directive", ""},
		"secret":       {Options{Lines: []string{"requirepass hush hush2"}}, "requirepass ...", "hush"},
		"line break":   {Options{Lines: []string{"requirepass hush\nport 1"}}, "line break", "hush"},
		"ours":         {Options{Lines: []string{"Port 1"}}, "Options", ""},
		"port too big": {Options{Port: 60000}, "must be", ""},
		"no files":     {Options{TLS: &Certs{CA: "none", Cert: "none", Key: "none"}}, "tls", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(c.opts)
			if err == nil {
				t.Fatal("started:", s.Stop())
			}
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says)) {
				t.Errorf("%q is not in: %v", c.says, err)
			}
			if c.hide != "" && strings.Contains(err.Error(), c.hide) {
				t.Errorf("%q is in: %v", c.hide, err)
			}
		})
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if len(ports.taken) != 0 {
		t.Errorf("ports not given back: %v", ports.taken)
	}
}

func TestATakenPort(t *testing.T) {
	t.Parallel()
	first := New(t)
	if _, err := Start(Options{Port: first.port}); !errors.Is(err, errPortTaken) {
		t.Errorf("the port of a server of this process: %v", err)
	}
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Start(Options{Port: l.Addr().(*net.TCPAddr).Port}); err == nil {
		t.Error("two listen on one port")
	}

	// Another process may take the port after this one has found it free. The server
	// that answers is then not the one that was started.
	late := &Server{binary: first.binary, port: first.port, dir: t.TempDir()}
	text, err := late.config()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(late.dir+"/"+configFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := late.launch(); !errors.Is(err, errPortTaken) {
		t.Errorf("a port taken meanwhile: %v", err)
	}
	do(t, first, "PING")
}

func TestCPU(t *testing.T) {
	t.Parallel()
	s := New(t)
	before, err := s.CPU()
	if err != nil {
		t.Fatal(err)
	}
	do(t, s, "EVAL", "for i = 1, 3e6 do end return 1", "0")
	after, err := s.CPU()
	if err != nil || after <= before {
		t.Errorf("%v of processor time after work, %v before: %v", after, before, err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certs, err := WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(t, Options{TLS: &certs})
	authority, err := os.ReadFile(certs.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client, err := tls.LoadX509KeyPair(certs.ClientCert, certs.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	ping := func(c *tls.Config) error {
		conn, err := tls.Dial("tcp", s.TLSAddr(), c)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write(appendCommand(nil, "PING")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 16))
		return err
	}
	if err := ping(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}}); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	if err := ping(&tls.Config{RootCAs: roots}); err == nil {
		t.Error("without a certificate: no error")
	}
	if plain := (&Server{}).TLSAddr(); plain != "" {
		t.Errorf("a server without TLS: %q", plain)
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("SLUICE_REDIS_SERVER", "")
	if _, err := Start(Options{}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "make test") {
		t.Errorf("no redis-server: %v", err)
	}
	t.Setenv("SLUICE_REDIS_SERVER", "no-such-server")
	if _, err := Start(Options{}); err == nil || !strings.Contains(err.Error(), "SLUICE_REDIS_SERVER") {
		t.Errorf("a name that is not there: %v", err)
	}
	if _, err := StartCluster(3, Options{}); err == nil {
		t.Error("a cluster of nothing")
	}
	if _, err := StartSentinel(Options{}); err == nil {
		t.Error("a sentinel of nothing")
	}
}
