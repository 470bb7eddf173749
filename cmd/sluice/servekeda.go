package main

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/scaler"
)

// defaultKEDA is the address of the scaler if none is given.
const defaultKEDA = "127.0.0.1:6000"

func kedaFlags() *grpcFlags {
	return &grpcFlags{
		name: "keda", whose: "KEDA's", service: "scaler", home: defaultKEDA, danger: "ask what is left of quotas", page: "docs/keda.md",
	}
}

// scale starts KEDA's scaler if the flags ask for it. end stops it.
func (s *session) scale(ctx context.Context, f *grpcFlags) (end func(), err error) {
	if f.listen == "" {
		return func() {}, nil
	}
	log := s.notes // logs when a trigger goes to zero or comes back
	config, err := f.config(log)
	if err != nil {
		return nil, err
	}
	s.scaler = scaler.New(scaler.Options{Model: s.modelClass, Log: log})
	if err := s.rescale(s.file, s.gate); err != nil {
		return nil, err
	}
	return f.serve(ctx, log, config, s.scaler.Serve)
}

// modelClass returns the class of models that a model of a resource counts under, by the configuration in force.
func (s *session) modelClass(resource, model string) string {
	class, _ := provider.Usual(s.inForce.Load().Dialect(resource), model)
	return class
}

// rescale switches the scaler and Envoy's service, if there are any, to a configuration and its gate.
func (s *session) rescale(f *config.File, gate *sluice.Gate) error {
	s.inForce.Store(f)
	if s.envoy != nil {
		s.envoy.Follow(gate)
	}
	if s.scaler == nil {
		return nil
	}
	c, err := f.GateConfig(time.Now())
	if err != nil {
		return configFailure(err)
	}
	s.scaler.Follow(gate, classesOf(f), c.Resources, f.Named()...)
	return nil
}
