package scaler_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/grpcserve"
	"github.com/sluicehq/sluice/scaler"
	"github.com/sluicehq/sluice/scaler/externalscaler"
)

// calls are all that KEDA makes.
var calls = map[string]func(context.Context, externalscaler.ExternalScalerClient, *externalscaler.ScaledObjectRef) error{
	"IsActive": func(ctx context.Context, c externalscaler.ExternalScalerClient, o *externalscaler.ScaledObjectRef) error {
		_, err := c.IsActive(ctx, o)
		return err
	},
	"GetMetricSpec": func(ctx context.Context, c externalscaler.ExternalScalerClient, o *externalscaler.ScaledObjectRef) error {
		_, err := c.GetMetricSpec(ctx, o)
		return err
	},
	"GetMetrics": func(ctx context.Context, c externalscaler.ExternalScalerClient, o *externalscaler.ScaledObjectRef) error {
		_, err := c.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: o})
		return err
	},
	"StreamIsActive": func(ctx context.Context, c externalscaler.ExternalScalerClient, o *externalscaler.ScaledObjectRef) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s, err := c.StreamIsActive(ctx, o)
		if err == nil {
			_, err = s.Recv()
		}
		return err
	},
}

func TestWrongMetadata(t *testing.T) {
	r := overLoopback(t)
	for _, c := range []struct {
		object *externalscaler.ScaledObjectRef
		code   codes.Code
		says   []string
	}{
		{object("target", "1"), codes.InvalidArgument, []string{"resource", "missing", "flow", "stock"}},
		{object("resource", "", "target", "1"), codes.InvalidArgument, []string{"resource", "empty"}},
		{object("resource", "flow", "tarket", "1"), codes.InvalidArgument, []string{"tarket", "not known", "target"}},
		{object("resource", "flow", "resourceFromEnv", "flow"), codes.InvalidArgument, []string{"resource", "twice"}},
		{object("resource", "flow"), codes.InvalidArgument, []string{"target", "missing", "minute"}},
		{object("resource", "flow", "mode", "queue"), codes.InvalidArgument, []string{"target", "missing", "waiting"}},
		{object("resource", "flow", "mode", "fast", "target", "1"), codes.InvalidArgument, []string{"mode", "fast", "headroom", "queue", "light"}},
		{object("resource", "flow", "target", "many"), codes.InvalidArgument, []string{"target", "many", "not a number"}},
		{object("resource", "flow", "target", "NaN"), codes.InvalidArgument, []string{"target", "NaN"}},
		{object("resource", "flow", "target", "Inf"), codes.InvalidArgument, []string{"target", "Inf"}},
		{object("resource", "flow", "target", "0"), codes.InvalidArgument, []string{"target", "0", "range"}},
		{object("resource", "flow", "target", "-3"), codes.InvalidArgument, []string{"target", "-3", "range"}},
		{object("resource", "flow", "target", "1e10"), codes.InvalidArgument, []string{"target", "1e10", "range"}},
		{object("resource", "flow", "mode", "light", "target", "1.5"), codes.InvalidArgument, []string{"target", "1.5", "whole"}},
		{object("resource", "flow", "target", "1", "class", "p7"), codes.InvalidArgument, []string{"class", "p7", "p0, p1, p2"}},
		{object("resource", "flow", "target", "1", "model", strings.Repeat("x", 300)), codes.InvalidArgument, []string{"model", "300"}},
		{object("resource", "flow", "target", "1", strings.Repeat("y", 5000), "1"), codes.InvalidArgument, []string{"yyy...: is not known"}},
		{object("resource", "flaw", "target", "1"), codes.NotFound, []string{"resource", "flaw"}},
		{nil, codes.InvalidArgument, []string{"target", "missing"}},
		{object("resource", "flow", "target", strings.Repeat("1", 100_000)), codes.ResourceExhausted, nil},
	} {
		for name, call := range calls {
			err := call(t.Context(), r.client, c.object)
			if status.Code(err) != c.code {
				t.Errorf("%s: %v, want %v", name, err, c.code)
				continue
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: %v, want %q in it", name, err, word)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("%s: %d bytes of error", name, len(err.Error()))
			}
		}
	}
}

func TestGoodMetadata(t *testing.T) {
	r := overLoopback(t)
	for _, o := range []*externalscaler.ScaledObjectRef{
		flow, headroom,
		object("resource", "flow", "mode", "light"),
		object("resourceFromEnv", "flow", "targetFromEnv", " 10 ", "scalerAddressFromEnv", "x"),
		object("resource", "flow", "target", "2.5", "class", "p2", "unit", "requests", "model", "opus", "enableTLS", "true", "unsafeSsl", "true"),
	} {
		for name, call := range calls {
			if err := call(t.Context(), r.client, o); err != nil {
				t.Errorf("%s of %v: %v", name, o.ScalerMetadata, err)
			}
		}
	}
	_, err := r.client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: flow, MetricName: "cpu"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "cpu") || !strings.Contains(err.Error(), "sluice-headroom-flow") {
		t.Errorf("another metric: %v", err)
	}
	if stream, err := r.client.StreamMetricSpec(t.Context(), flow); err == nil {
		if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented { // KEDA then polls
			t.Errorf("a stream of specs: %v", err)
		}
	}
}

func TestMetricNames(t *testing.T) {
	for _, c := range []struct{ resource, class, want string }{
		{"github", "", "sluice-queue-github"},
		{"Search_API", "P1", "sluice-queue-search-api-p1"},
		{"söke", "", "sluice-queue-s-ke"},
		{strings.Repeat("long-", 20), "", "sluice-queue-" + strings.Repeat("long-", 9) + "long"},
	} {
		m := map[string]string{"resource": c.resource, "mode": "queue", "target": "1"}
		if c.class != "" {
			m["class"] = c.class
		}
		got, err := scaler.Parse(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if name := scaler.MetricName(got); name != c.want || len(name) > 63 {
			t.Errorf("%s, want %s", name, c.want)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	r := overLoopback(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 40 {
				o := object("resource", []string{"flow", "stock"}[j%2], "target", "10")
				o.Name = fmt.Sprint("workers-", i%3)
				for name, call := range calls {
					if err := call(t.Context(), r.client, o); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if i == 0 && j%10 == 0 {
					r.pause("flow", time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

// Memory is bounded, however many ScaledObjects and names of resources there are.
func TestMemoryIsBounded(t *testing.T) {
	r := overLoopback(t)
	for i := range scaler.MaxTriggers + 50 {
		o := object("resource", "flow", "target", "10")
		o.Name = fmt.Sprint("workers-", i)
		if _, err := r.client.IsActive(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := r.client.IsActive(t.Context(), object("resource", o.Name, "target", "10")); status.Code(err) != codes.NotFound {
			t.Fatal(err)
		}
	}
	if triggers, views := scaler.Remembered(r.server); triggers != scaler.MaxTriggers || views != 1 {
		t.Errorf("%d triggers and %d resources are remembered, want %d and 1", triggers, views, scaler.MaxTriggers)
	}
}

// A client beyond the bound waits until another one is gone.
func TestClientsAreBounded(t *testing.T) {
	r := overLoopback(t)
	var conns []*grpc.ClientConn
	for range grpcserve.MaxClients {
		conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
		if _, err := externalscaler.NewExternalScalerClient(conn).IsActive(t.Context(), flow); err != nil {
			t.Fatal(err)
		}
	}
	answered := make(chan error, 1)
	go func() {
		_, err := r.client.IsActive(t.Context(), flow, grpc.WaitForReady(true))
		answered <- err
	}()
	for _, conn := range conns { // all others are served meanwhile
		if _, err := externalscaler.NewExternalScalerClient(conn).IsActive(t.Context(), flow); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-answered:
		t.Fatalf("one too many was answered, with %v", err)
	default:
	}
	_ = conns[0].Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestServeEnds(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s := scaler.New(scaler.Options{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	l := listen()
	if err := s.Serve(over, l, nil); err != nil {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
	l = listen()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), l, nil); err == nil {
		t.Error("no error with a listener that is closed")
	}
}

// A ScaledObject that names no resource means the only one.
func TestTheOnlyResourceNeedNotBeNamed(t *testing.T) {
	r := overLoopback(t)
	one, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{
		"only": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 60, Window: time.Minute}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	c := map[string]sluice.Resource{"only": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 60, Window: time.Minute}}}}
	r.server.Follow(one, []string{"p0", "p1", "p2"}, c)
	spec, err := r.client.GetMetricSpec(t.Context(), object("target", "20"))
	if err != nil || spec.MetricSpecs[0].MetricName != "sluice-headroom-only" {
		t.Errorf("%v, %v", spec, err)
	}
	if got := r.replicas(object("target", "20")); got != 3 {
		t.Errorf("%d replicas, want 3", got)
	}
	r.server.Follow(one, nil, nil)
	if _, err := r.client.GetMetricSpec(t.Context(), object("target", "20")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without any resource: %v", err)
	}
}
