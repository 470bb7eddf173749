//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/scaler/externalscaler"
)

// scaling starts a gate with a scaler, and returns the announced port and protocol.
func scaling(t *testing.T, args ...string) (p *process, port, speaks string) {
	t.Helper()
	p = start(t, nil, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	line, err := p.stderr.ReadString('\n')
	m := regexp.MustCompile(` msg="KEDA's scaler is on (?:127\.0\.0\.1|\[::\]|0\.0\.0\.0):([0-9]+)(.*)"\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("it said %q, %v", line, err)
	}
	if line, err := p.stdout.ReadString('\n'); !strings.HasPrefix(line, "sluice: listening on ") { // from now on it takes signals
		t.Fatalf("it said %q, %v", line, err)
	}
	return p, m[1], m[2]
}

func authority(t *testing.T) redisrun.Certs {
	t.Helper()
	c, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ours returns the TLS config of a client that trusts an authority and may have a certificate of it.
func ours(t *testing.T, c redisrun.Certs, shows bool) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AppendCertsFromPEM(text)
	if shows {
		pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// wanted asks a scaler for the number of replicas, as KEDA does; a nil config means plain text.
func wanted(t *testing.T, port string, config *tls.Config, resource string) (int64, error) {
	t.Helper()
	creds := insecure.NewCredentials()
	if config != nil {
		creds = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(net.JoinHostPort("127.0.0.1", port), grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := externalscaler.NewExternalScalerClient(conn).GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: &externalscaler.ScaledObjectRef{
		Name: "workers", Namespace: "default", ScalerMetadata: map[string]string{"resource": resource, "target": "10"},
	}})
	if err != nil {
		return 0, err
	}
	return m.MetricValues[0].MetricValue, nil
}

// active asks a scaler whether GitHub's unused quota can feed a replica.
func active(t *testing.T, port string, config *tls.Config) (bool, error) {
	t.Helper()
	n, err := wanted(t, port, config, "github")
	return n > 0, err
}

// soon waits for something that a daemon does by itself.
func soon(t *testing.T, what string, is func() error) {
	t.Helper()
	tick, late := time.NewTicker(100*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s, within a minute: %v", what, err)
		}
	}
}

func TestScalerOfServe(t *testing.T) {
	t.Parallel()
	p, port, speaks := scaling(t, "--keda-listen=127.0.0.1:0")
	if is, err := active(t, port, nil); err != nil || !is || speaks != "" {
		t.Errorf("%v, %v; it speaks %q", is, err, speaks)
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
	if rest, err := io.ReadAll(p.stderr); err != nil || len(rest) > 0 {
		t.Errorf("on stderr %q, %v", rest, err)
	}
}

// With client certificates the scaler may listen for other machines, and clients without one are refused.
func TestScalerForOtherMachines(t *testing.T) {
	t.Parallel()
	known, foreign := authority(t), authority(t)
	p, port, speaks := scaling(t, "--keda-listen=0.0.0.0:0", "--keda-tls-cert", known.Cert, "--keda-tls-key", known.Key, "--keda-tls-ca", known.CA)
	if !strings.Contains(speaks, "for clients with a certificate") {
		t.Errorf("it speaks %q", speaks)
	}
	if is, err := active(t, port, ours(t, known, true)); err != nil || !is {
		t.Errorf("with a certificate: %v, %v", is, err)
	}
	stranger := ours(t, foreign, true)
	stranger.RootCAs = ours(t, known, false).RootCAs
	for name, config := range map[string]*tls.Config{"without a certificate": ours(t, known, false), "with one of somebody else": stranger, "in plain text": nil} {
		if _, err := active(t, port, config); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// A renewed certificate is used without a restart.
func TestScalerRenewsItsCertificate(t *testing.T) {
	t.Parallel()
	first, second := authority(t), authority(t)
	p, port, speaks := scaling(t, "--keda-listen=127.0.0.1:0", "--keda-tls-cert", first.Cert, "--keda-tls-key", first.Key)
	if speaks != ", with TLS" {
		t.Errorf("it speaks %q", speaks)
	}
	if is, err := active(t, port, ours(t, first, false)); err != nil || !is {
		t.Fatalf("before: %v, %v", is, err)
	}
	if _, err := active(t, port, ours(t, second, false)); err == nil {
		t.Fatal("the second is trusted before it is there")
	}
	for from, to := range map[string]string{second.Cert: first.Cert, second.Key: first.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	soon(t, "the certificate that was renewed is shown", func() error {
		_, err := active(t, port, ours(t, second, false))
		return err
	})
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// The scaler follows a reload.
func TestScalerFollowsAReload(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/sluice.yaml"
	configure := func(size string) {
		if err := os.WriteFile(file, []byte("resources:\n  api: {limits: [{name: minute, size: "+size+"}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("80/min")
	p, port, _ := scaling(t, "--config", file, "--keda-listen=127.0.0.1:0")
	if n, err := wanted(t, port, nil, "api"); err != nil || n != 8 {
		t.Fatalf("before: %d, %v; want 8", n, err)
	}
	configure("40/min")
	p.signal(syscall.SIGHUP)
	soon(t, "it has 4 replicas for half of the quota", func() error {
		if n, err := wanted(t, port, nil, "api"); err != nil || n != 4 {
			return fmt.Errorf("%d, %v", n, err)
		}
		return nil
	})
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}

// An invalid client authority is a configuration error, and no client gets access.
func TestScalerWithoutAuthority(t *testing.T) {
	t.Parallel()
	c := authority(t)
	for file, says := range map[string]string{
		c.ClientKey:              "--keda-tls: the authority of clients " + c.ClientKey + " holds a ",
		t.TempDir() + "/nothing": "--keda-tls: the authority of clients cannot be read",
	} {
		p := start(t, nil, "serve", "--listen", "127.0.0.1:0", "--keda-listen=0.0.0.0:0", "--keda-tls-cert", c.Cert, "--keda-tls-key", c.Key, "--keda-tls-ca", file)
		p.warns("error: " + says)
		p.warns("hint: --keda-tls-ca names a file in PEM")
		p.ends(exitConfig)
	}
}

// With --keda-insecure other machines can ask without certificates, and a warning is logged. Without it the gate does
// not start.
func TestScalerForOtherMachinesWithoutCertificates(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "serve", "--listen", "127.0.0.1:0", "--keda-listen=0.0.0.0:0")
	p.warns("error: --keda-listen: \"0.0.0.0:0\" can be reached from other machines, and --keda-tls-cert, --keda-tls-key and --keda-tls-ca are missing")
	p.ends(exitUsage)
	p, port, speaks := scaling(t, "--keda-listen=0.0.0.0:0", "--keda-insecure")
	if is, err := active(t, port, nil); err != nil || !is || speaks != "" {
		t.Errorf("in plain text: %v, %v; it speaks %q", is, err, speaks)
	}
	p.warns("every client that reaches the scaler can ask what is left of quotas (--keda-insecure)")
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)

	known := authority(t)
	p, port, speaks = scaling(t, "--keda-listen=0.0.0.0:0", "--keda-insecure", "--keda-tls-cert", known.Cert, "--keda-tls-key", known.Key)
	if is, err := active(t, port, ours(t, known, false)); err != nil || !is || speaks != ", with TLS" {
		t.Errorf("with TLS, without a certificate of the client: %v, %v; it speaks %q", is, err, speaks)
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
}
