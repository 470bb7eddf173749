// Package scaler is KEDA's external scaler: it says how many replicas a quota can feed.
//
// [Decide] and [State.Next] are the decision, as pure functions; the rest brings it to KEDA over gRPC.
// docs/keda.md says what to expect.
package scaler

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/grpcserve"
)

// Bounds of a server.
const (
	MaxStreams  = 256  // that are open at the same time, of all clients
	MaxTriggers = 1024 // that are remembered; beyond that the one not asked about for longest is forgotten
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
	return grpcserve.Serve(ctx, l, config, s.Register)
}
