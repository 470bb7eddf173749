package scaler_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/scaler"
	"github.com/sluicehq/sluice/scaler/externalscaler"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// resources are an API whose hour has to last, one that is a flow, and one whose breaker opens.
var resources = map[string]sluice.Resource{
	"stock": {Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 6000, Window: time.Hour}}, Breaker: sluice.Breaker{Off: true}},
	"flow":  {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute}}},
	"quick": {
		Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 6000, Window: time.Hour}}, Light: sluice.Light{Off: true},
		Breaker: sluice.Breaker{Open: true, Samples: 4},
	},
	"narrow": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}},
}

// rig is a scaler with a gate of its own, and a client.
type rig struct {
	tb      testing.TB
	gate    *sluice.Gate
	server  *scaler.Server
	address string
	log     *bytes.Buffer // to be read when the server has stopped
	client  externalscaler.ExternalScalerClient
	dial    func(options ...grpc.DialOption) externalscaler.ExternalScalerClient
	stop    func() // the server; it returns when Serve has
}

// start serves on a listener until the test ends. The address is what clients dial.
func start(tb testing.TB, l net.Listener, address string, config *tls.Config, options ...grpc.DialOption) *rig {
	tb.Helper()
	gate, err := sluice.Open(context.Background(), sluice.Config{Store: "mem:", Resources: resources})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = gate.Close() })
	log := &bytes.Buffer{}
	s := scaler.New(scaler.Options{
		Gate: gate, Classes: []string{"p0", "p1", "p2"}, Resources: resources, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, config) }()
	ended := false
	r := &rig{tb: tb, gate: gate, server: s, address: address, log: log}
	r.stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-served; err != nil {
			tb.Errorf("it ended with %v", err)
		}
	}
	tb.Cleanup(r.stop)
	r.dial = func(more ...grpc.DialOption) externalscaler.ExternalScalerClient {
		conn, err := grpc.NewClient(address, append(options, more...)...)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = conn.Close() })
		return externalscaler.NewExternalScalerClient(conn)
	}
	return r
}

// overLoopback returns a rig on a real listener.
func overLoopback(tb testing.TB) *rig {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r := start(tb, l, l.Addr().String(), nil)
	r.client = r.dial(grpc.WithTransportCredentials(insecure.NewCredentials()))
	return r
}

// inBubble returns a rig in virtual time, with connections in memory.
func inBubble(tb testing.TB) *rig {
	tb.Helper()
	l := bufconn.Listen(64 << 10)
	r := start(tb, l, "passthrough:scaler", nil, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	r.client = r.dial(grpc.WithTransportCredentials(insecure.NewCredentials()))
	return r
}

func withTLS(c *tls.Config) grpc.DialOption {
	return grpc.WithTransportCredentials(credentials.NewTLS(c))
}

// object returns a ScaledObject; pairs are its metadata.
func object(pairs ...string) *externalscaler.ScaledObjectRef {
	m := map[string]string{"scalerAddress": "sluice:6000"}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return &externalscaler.ScaledObjectRef{Name: "workers", Namespace: "default", ScalerMetadata: m}
}

// replicas asks as KEDA does: for the metric, then whether it is active.
func (r *rig) replicas(o *externalscaler.ScaledObjectRef) int64 {
	r.tb.Helper()
	ctx := context.Background()
	spec, err := r.client.GetMetricSpec(ctx, o)
	if err != nil || len(spec.MetricSpecs) != 1 {
		r.tb.Fatalf("spec: %v, %v", spec, err)
	}
	values, err := r.client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: o, MetricName: spec.MetricSpecs[0].MetricName})
	if err != nil || len(values.MetricValues) != 1 {
		r.tb.Fatalf("metrics: %v, %v", values, err)
	}
	active, err := r.client.IsActive(ctx, o)
	if err != nil {
		r.tb.Fatal(err)
	}
	v, s := values.MetricValues[0], spec.MetricSpecs[0]
	if float64(v.MetricValue) != v.MetricValueFloat || s.TargetSize != 1 || s.TargetSizeFloat != 1 || v.MetricName != s.MetricName {
		r.tb.Errorf("%v of %v: want the same number twice, and a target of 1", v, s)
	}
	if active.Result != (v.MetricValue > 0) {
		r.tb.Errorf("active is %v with %d replicas", active.Result, v.MetricValue)
	}
	return v.MetricValue
}

func (r *rig) want(o *externalscaler.ScaledObjectRef, n int64, when string) {
	r.tb.Helper()
	if got := r.replicas(o); got != n {
		r.tb.Errorf("%s: %d replicas, want %d", when, got, n)
	}
}

// states reports a provider's statement about an hour's quota to the gate.
func (r *rig) states(resource string, remaining int64, reset time.Duration) {
	r.tb.Helper()
	err := r.gate.Observe(context.Background(), sluice.Request{Resource: resource, Agent: "somebody"}, sluice.Answer{
		Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "hour", Size: 6000, Remaining: remaining, ResetIn: reset}},
	})
	if err != nil {
		r.tb.Fatal(err)
	}
}

func (r *rig) pause(resource string, d time.Duration) {
	r.tb.Helper()
	if err := r.gate.Pause(context.Background(), resource, d, "maintenance"); err != nil {
		r.tb.Fatal(err)
	}
}

// told is one message of a stream.
type told struct {
	active bool
	at     time.Time
}

// follow reads a stream into a channel, which is closed with it. The error is set by then.
func (r *rig) follow(ctx context.Context, o *externalscaler.ScaledObjectRef) (<-chan told, func() error) {
	r.tb.Helper()
	stream, err := r.client.StreamIsActive(ctx, o)
	if err != nil {
		r.tb.Fatal(err)
	}
	messages := make(chan told, 100)
	var end error
	go func() {
		defer close(messages)
		for {
			m, err := stream.Recv()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					end = err
				}
				return
			}
			messages <- told{m.Result, time.Now()}
		}
	}()
	return messages, func() error {
		for range messages {
		}
		return end
	}
}
