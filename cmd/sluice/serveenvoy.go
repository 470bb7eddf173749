package main

import (
	"context"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/envoy"
)

// defaultEnvoy is the address of the rate limit service if none is given.
const defaultEnvoy = "127.0.0.1:8081"

func envoyFlags() *grpcFlags {
	return &grpcFlags{
		name: "envoy", whose: "Envoy's", service: "rate limit service", home: defaultEnvoy, danger: "use up quotas in any agent's name", page: "docs/envoy.md",
	}
}

// limit starts Envoy's rate limit service, with external processing beside it, if the flags ask for it. end stops it.
func (s *session) limit(ctx context.Context, f *grpcFlags, d *daemon.Daemon) (end func(), err error) {
	if f.listen == "" {
		return func() {}, nil
	}
	config, err := f.config(s.notes)
	if err != nil {
		return nil, err
	}
	s.inForce.Store(s.file)
	s.envoy = envoy.New(envoy.Options{Gate: s.gate, Model: s.modelClass, Sends: d, Log: s.notes})
	return f.serve(ctx, s.notes, config, s.envoy.Serve)
}
