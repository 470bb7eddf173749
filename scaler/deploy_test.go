package scaler_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/scaler"
	"github.com/sluicehq/sluice/scaler/externalscaler"
)

// manifest is what matters here of what a cluster is given.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Ports []struct {
			Port       int
			TargetPort int `yaml:"targetPort"`
		}
		ScaleTargetRef struct{ Name string } `yaml:"scaleTargetRef"`
		Triggers       []struct {
			Type              string
			Metadata          map[string]string
			AuthenticationRef struct{ Name string } `yaml:"authenticationRef"`
		}
		SecretTargetRef []struct{ Parameter, Name, Key string } `yaml:"secretTargetRef"`
		SecretName      string                                  `yaml:"secretName"`
		DNSNames        []string                                `yaml:"dnsNames"`
	}
}

// manifests returns the documents of a file, by kind and name.
func manifests(tb testing.TB, file string) map[string]manifest {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	parts := map[string]manifest{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return parts
		} else if err != nil {
			tb.Fatal(err)
		}
		parts[m.Kind+" "+m.Metadata.Name] = m
	}
}

// The ScaledObject in the repository works unchanged: its address is that of the Service next to it, and its trigger
// gets the replicas that docs/keda.md states for an unused quota.
func TestDeployedScaledObject(t *testing.T) {
	parts := manifests(t, "../deploy/keda/scaledobject.yaml")
	service, object := parts["Service sluice-keda"], parts["ScaledObject workers"]
	if len(object.Spec.Triggers) != 1 || len(service.Spec.Ports) != 1 || object.Spec.ScaleTargetRef.Name == "" {
		t.Fatalf("%+v", parts)
	}
	trigger := object.Spec.Triggers[0]
	host, port, err := net.SplitHostPort(trigger.Metadata["scalerAddress"])
	if err != nil || port != "6000" || !strings.HasPrefix(host, service.Metadata.Name+".") || service.Spec.Ports[0].Port != 6000 || service.Spec.Ports[0].TargetPort != 6000 {
		t.Errorf("the trigger's address is %s:%s (%v), the service %+v", host, port, err, service)
	}
	if !slices.Contains([]string{"external", "external-push"}, trigger.Type) {
		t.Errorf("a trigger of type %s", trigger.Type)
	}
	github, _ := provider.Preset("github")
	config := sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"github": github}}
	gate, err := sluice.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	s := scaler.New(scaler.Options{Gate: gate, Classes: []string{"p0", "p1", "p2"}, Resources: config.Resources})
	ref := &externalscaler.ScaledObjectRef{Name: object.Metadata.Name, Namespace: "default", ScalerMetadata: trigger.Metadata}
	got, err := s.GetMetrics(context.Background(), &externalscaler.GetMetricsRequest{ScaledObjectRef: ref})
	if err != nil || got.MetricValues[0].MetricValue != 8 { // 5000 an hour are 83 a minute
		t.Errorf("%v, %v; want 8 replicas", got, err)
	}
}

// The certificates are for the name that KEDA calls, and in the Secrets that KEDA and the scaler read.
func TestDeployedCertificates(t *testing.T) {
	parts, certs := manifests(t, "../deploy/keda/scaledobject.yaml"), manifests(t, "../deploy/keda/certificates.yaml")
	trigger := parts["ScaledObject workers"].Spec.Triggers[0]
	host, _, err := net.SplitHostPort(trigger.Metadata["scalerAddress"])
	if server := certs["Certificate sluice-keda"].Spec; err != nil || server.SecretName != "sluice-keda" || !slices.Contains(server.DNSNames, host) {
		t.Errorf("the server's certificate is %+v, KEDA calls %s", server, host)
	}
	if trigger.Metadata["enableTLS"] != "true" {
		t.Error("KEDA does not use TLS")
	}
	params := map[string]string{}
	for _, ref := range parts["TriggerAuthentication "+trigger.AuthenticationRef.Name].Spec.SecretTargetRef {
		if ref.Name != certs["Certificate sluice-keda-client"].Spec.SecretName {
			t.Errorf("%+v is from another Secret", ref)
		}
		params[ref.Parameter] = ref.Key
	}
	if !maps.Equal(params, map[string]string{"caCert": "ca.crt", "tlsClientCert": "tls.crt", "tlsClientKey": "tls.key"}) {
		t.Errorf("KEDA is given %v", params)
	}
	for _, all := range []map[string]manifest{parts, certs} {
		for name, m := range all {
			if m.Metadata.Namespace != "default" || !strings.Contains(host, ".default.") {
				t.Errorf("%s is in the namespace %q", name, m.Metadata.Namespace)
			}
		}
	}
}
