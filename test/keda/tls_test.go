package keda_test

import (
	"crypto/tls"
	"os"
	"testing"

	"github.com/sluicehq/sluice/internal/grpcserve"
	"github.com/sluicehq/sluice/internal/redisrun"
)

func authority(tb testing.TB) redisrun.Certs {
	tb.Helper()
	c, err := redisrun.WriteCerts(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func text(tb testing.TB, file string) string {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// secret is what cert-manager, or a person, puts into the Secret of a client.
func secret(tb testing.TB, c redisrun.Certs) map[string]string {
	tb.Helper()
	return map[string]string{"ca.crt": text(tb, c.CA), "tls.crt": text(tb, c.ClientCert), "tls.key": text(tb, c.ClientKey)}
}

// withTLS is a scaler's config; mutual asks clients for a certificate of the same authority.
func withTLS(tb testing.TB, c redisrun.Certs, mutual bool) *tls.Config {
	tb.Helper()
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		tb.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if mutual {
		if config, err = grpcserve.ClientCA(config, c.CA, nil); err != nil {
			tb.Fatal(err)
		}
	}
	return config
}

// refused expects that KEDA gets no number.
func (c *client) refused(who string) {
	c.tb.Helper()
	if specs := c.scaler.GetMetricSpecForScaling(c.tb.Context()); len(specs) != 0 {
		c.tb.Errorf("%s: metrics %v", who, specs)
	}
	if values, active, err := c.scaler.GetMetricsAndActivity(c.tb.Context(), "s2-sluice-headroom-flow"); err == nil || active || len(values) > 0 {
		c.tb.Errorf("%s: %v, %v, %v; want an error", who, values, active, err)
	}
}

// KEDA's certificates are texts in its authentication parameters.
func TestTLS(t *testing.T) {
	ours, foreign := authority(t), authority(t)
	r := start(t, withTLS(t, ours, false))
	trigger := []string{"resource", "flow", "target", "10", "enableTLS", "true"}
	r.triggerWith(map[string]string{"caCert": text(t, ours.CA)}, trigger...).want("over TLS", 8)
	r.triggerWith(map[string]string{"caCert": text(t, foreign.CA)}, trigger...).refused("who trusts somebody else")
	r.triggerWith(nil, trigger...).refused("who trusts public authorities")
	r.trigger("resource", "flow", "target", "10").refused("who speaks plain text")
	r.trigger("resource", "flow", "target", "10", "enableTLS", "true", "unsafeSsl", "true").want("without a look at the certificate", 8)
}

func TestMutualTLS(t *testing.T) {
	ours, foreign := authority(t), authority(t)
	r := start(t, withTLS(t, ours, true))
	trigger := []string{"resource", "flow", "target", "10", "enableTLS", "true"}
	of := func(c redisrun.Certs) map[string]string {
		s := secret(t, c)
		return map[string]string{"caCert": text(t, ours.CA), "tlsClientCert": s["tls.crt"], "tlsClientKey": s["tls.key"]}
	}
	c := r.triggerWith(of(ours), trigger...)
	c.want("with a certificate", 8)
	r.triggerWith(map[string]string{"caCert": text(t, ours.CA)}, trigger...).refused("who shows no certificate")
	r.triggerWith(of(foreign), trigger...).refused("who shows one of another authority")

	p := r.push(of(ours), trigger...)
	p.want("at first", true)
	r.pause("flow")
	p.want("in the pause", false)
	c.want("in the pause", 0)
	r.resume("flow")
	p.want("after the pause", true)
	c.ramp(r, "after the pause", 1, 2, 4, 8)
}
