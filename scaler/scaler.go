// Package scaler is an external scaler for KEDA: it reports how many replicas a quota can feed.
//
// [Decide] and [State.Next] make the decision, as pure functions; the rest serves it to KEDA over gRPC. docs/keda.md
// describes the behaviour.
package scaler

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/grpcserve"
	"github.com/sluicehq/sluice/scaler/externalscaler"
)

// Bounds on a server.
const (
	MaxStreams  = 256  // open at the same time, of all clients
	MaxTriggers = 1024 // remembered; beyond that the least recently used one is dropped
)

// Options configures a server.
type Options struct {
	Gate *sluice.Gate
	// Classes lists the priority classes, highest first. Nil accepts any name, and then no class is the highest.
	Classes []string
	// Resources are the resources that the gate was opened with. They give the length of windows, which Headroom needs
	// for flows, and show which limits belong to one caller alone.
	Resources map[string]sluice.Resource
	// Model returns the class of models that a model of a resource counts under, such as opus-4 for claude-opus-4-5. Nil
	// means that models count under their own names.
	Model func(resource, model string) string
	// Now is the clock for resets and ramps. Nil means time.Now.
	Now func() time.Time
	// Log records when a trigger goes to zero and comes back. Nil means no log.
	Log *slog.Logger
}

// Server implements the scaler as a gRPC service. All methods are safe for concurrent use.
type Server struct {
	externalscaler.UnimplementedExternalScalerServer

	model func(resource, model string) string
	now   func() time.Time
	log   *slog.Logger

	streams chan struct{} // one slot for each stream

	source atomic.Pointer[source]

	mu       sync.Mutex
	triggers map[string]*remembered
}

// New returns a server. It does nothing until it is called.
func New(o Options) *Server {
	s := &Server{
		model: o.Model, now: o.Now, log: o.Log, streams: make(chan struct{}, MaxStreams), triggers: map[string]*remembered{},
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

// Register adds the service to a gRPC server that the caller runs and stops.
func (s *Server) Register(r grpc.ServiceRegistrar) { externalscaler.RegisterExternalScalerServer(r, s) }

// Serve serves a listener until ctx ends. It then closes the listener and the streams, lets running calls finish, and
// returns nil. With a nil config it speaks plain text.
func (s *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	return grpcserve.Serve(ctx, l, config, s.Register)
}
