package grpcserve_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice/internal/grpcserve"
)

// Balancers and probes ask grpc.health.v1. A server that stops says so to those that watch.
func TestHealthIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- grpcserve.Serve(ctx, l, nil, func(r grpc.ServiceRegistrar) {
			r.RegisterService(&grpc.ServiceDesc{ServiceName: "a.Service", HandlerType: (*any)(nil)}, nil)
		})
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := healthgrpc.NewHealthClient(conn)
	for _, name := range []string{"", "a.Service"} {
		if a, err := client.Check(t.Context(), &healthgrpc.HealthCheckRequest{Service: name}); err != nil || a.GetStatus() != healthgrpc.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, a, err)
		}
	}
	if _, err := client.Check(t.Context(), &healthgrpc.HealthCheckRequest{Service: "another"}); status.Code(err) != codes.NotFound {
		t.Errorf("of another service: %v", err)
	}
	watch, err := client.Watch(t.Context(), &healthgrpc.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := watch.Recv(); err != nil || a.GetStatus() != healthgrpc.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", a, err)
	}
	stop()
	for err == nil { // it ends, whether or not it tells before
		var a *healthgrpc.HealthCheckResponse
		if a, err = watch.Recv(); err == nil && a.GetStatus() != healthgrpc.HealthCheckResponse_NOT_SERVING {
			t.Errorf("a server that stops is %v", a)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
