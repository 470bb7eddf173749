// Package scaler is KEDA's external scaler: it says how many replicas a quota can feed.
package scaler

import (
	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
)

// Server is the scaler as a gRPC service.
type Server struct {
	externalscaler.UnimplementedExternalScalerServer
}

// Register adds the service to a server.
func (s *Server) Register(r grpc.ServiceRegistrar) { externalscaler.RegisterExternalScalerServer(r, s) }
