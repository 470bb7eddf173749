// Package scaler is KEDA's external scaler: it says how many replicas a quota can feed.
//
// [Decide] and [State.Next] are the decision, as pure functions; the rest brings it to KEDA over gRPC.
// docs/keda.md says what to expect.
package scaler

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/sluicehq/sluice"
)

// Bounds of a server.
const (
	MaxStreams  = 256  // that are open at the same time, of all clients
	MaxClients  = 128  // that are connected at the same time; more wait
	MaxTriggers = 1024 // that are remembered; beyond that the one not asked about for longest is forgotten

	maxMessage = 64 << 10
	maxCalls   = 512 // at the same time, of one client
	stopWithin = 5 * time.Second
)

// Options are what a server is made of.
type Options struct {
	Gate *sluice.Gate
	// Classes are the names of the priority classes, highest first. Nil means that any name will do, and
	// that none is the highest.
	Classes []string
	// Resources are those that the gate was opened with. They say how long windows are, which Headroom needs
	// to know of flows, and which limits are one caller's alone.
	Resources map[string]sluice.Resource
	// Now is the clock for resets and ramps. Nil means time.Now.
	Now func() time.Time
	// Log is told when a trigger goes to zero and comes back. Nil means nobody is.
	Log *slog.Logger
}

// Server is the scaler as a gRPC service. All methods are safe for concurrent use.
type Server struct {
	externalscaler.UnimplementedExternalScalerServer

	now func() time.Time
	log *slog.Logger

	streams chan struct{} // one place for each

	source atomic.Pointer[source]

	mu       sync.Mutex
	triggers map[string]*remembered
}

// New makes a server. It does nothing until it is called.
func New(o Options) *Server {
	s := &Server{
		now: o.Now, log: o.Log, streams: make(chan struct{}, MaxStreams), triggers: map[string]*remembered{},
	}
	s.Follow(o.Gate, o.Classes, o.Resources)
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Register adds the service to a server of somebody else's, who then bounds and stops it.
func (s *Server) Register(r grpc.ServiceRegistrar) { externalscaler.RegisterExternalScalerServer(r, s) }

// Serve answers on a listener until ctx ends; then it closes the listener and the streams, lets calls that
// have begun end, and returns nil. With a nil config it speaks plain text.
func (s *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxCalls), grpc.ConnectionTimeout(10 * time.Second),
		// Clients that are gone without a word are found by pings, so that their streams end.
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 15 * time.Minute, Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.StreamInterceptor(endWith(ctx)),
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	s.Register(server)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		hard := time.AfterFunc(stopWithin, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	})
	err := server.Serve(bounded(l, MaxClients))
	if stop() { // it ended by itself
		server.Stop()
		return err
	}
	<-stopped
	if errors.Is(err, grpc.ErrServerStopped) {
		err = nil // ctx had ended before it began
	}
	return err
}

// errStopping is why a stream ends that its client would have kept.
var errStopping = errors.New("the scaler is stopping")

// endWith ends streams when ctx does: they have no end of their own, and a graceful stop waits for them.
func endWith(ctx context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		own, cancel := context.WithCancelCause(stream.Context())
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(errStopping) })()
		return handler(srv, &endingStream{ServerStream: stream, ctx: own})
	}
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *endingStream) Context() context.Context { return s.ctx }
