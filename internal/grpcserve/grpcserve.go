// Package grpcserve serves gRPC on a listener until a context ends, with bounds on clients, calls and messages. KEDA's scaler and
// Envoy's rate limit service use it. Each server also answers grpc.health.v1.
package grpcserve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Bounds on a server.
const (
	MaxClients = 128 // connected at the same time; more wait

	maxMessage = 64 << 10
	maxCalls   = 512 // at the same time, for each client
	stopWithin = 5 * time.Second
)

// ErrStopping is the cause of a stream's context when the server stops.
var ErrStopping = errors.New("the server is stopping")

// Serve serves a listener until ctx ends: the services that register adds, and their health. It then closes the listener and the streams, lets running calls finish, and
// returns nil. With a nil config it speaks plain text.
func Serve(ctx context.Context, l net.Listener, config *tls.Config, register func(grpc.ServiceRegistrar)) error {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxCalls), grpc.ConnectionTimeout(10 * time.Second),
		// Pings detect clients that are gone, so that their streams end.
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 15 * time.Minute, Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.StreamInterceptor(endWith(ctx)),
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	register(server)
	alive := health.NewServer()
	for name := range server.GetServiceInfo() {
		alive.SetServingStatus(name, healthgrpc.HealthCheckResponse_SERVING)
	}
	healthgrpc.RegisterHealthServer(server, alive)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		alive.Shutdown() // balancers send new calls elsewhere
		hard := time.AfterFunc(stopWithin, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	})
	err := server.Serve(netutil.LimitListener(l, MaxClients))
	if stop() { // the server ended by itself
		server.Stop()
		return err
	}
	<-stopped
	if errors.Is(err, grpc.ErrServerStopped) {
		err = nil // ctx had ended before Serve began
	}
	return err
}

// endWith ends streams when ctx does: they have no end of their own, and a graceful stop would wait for them.
func endWith(ctx context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		own, cancel := context.WithCancelCause(stream.Context())
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(ErrStopping) })()
		return handler(srv, &endingStream{ServerStream: stream, ctx: own})
	}
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *endingStream) Context() context.Context { return s.ctx }
