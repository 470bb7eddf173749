package scaler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/grpcserve"
	"github.com/sluicehq/sluice/scaler/externalscaler"
)

// tick is how often a stream checks. Together with fresh and the time to read, a change is reported well within a
// second.
const tick = 400 * time.Millisecond

// IsActive reports whether there should be any replica.
func (s *Server) IsActive(ctx context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	n, err := s.replicas(ctx, ref, 0)
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: n > 0}, nil
}

// StreamIsActive reports at once whether there should be any replica, and again whenever that changes. While the store
// is unreachable it reports no change.
func (s *Server) StreamIsActive(ref *externalscaler.ScaledObjectRef, stream grpc.ServerStreamingServer[externalscaler.IsActiveResponse]) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d streams are open, as many as there may be: use the trigger type external, which polls", MaxStreams)
	}
	ctx := stream.Context()
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for told, last := false, false; ; {
		n, err := s.replicas(ctx, ref, fresh)
		switch {
		case ctx.Err() != nil:
			if errors.Is(context.Cause(ctx), grpcserve.ErrStopping) {
				return nil // a clean end: the client reconnects soon
			}
			return status.FromContextError(ctx.Err()).Err()
		case err != nil && status.Code(err) != codes.Unavailable:
			return err
		case err == nil && (!told || last != (n > 0)):
			told, last = true, n > 0
			if err := stream.Send(&externalscaler.IsActiveResponse{Result: last}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// GetMetricSpec returns the name of the metric. Its value is a number of replicas, so its target is 1. With a larger
// target the cluster would round up, to more replicas than the quota can feed.
func (s *Server) GetMetricSpec(ctx context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	var t Trigger
	err := s.with(ctx, func(from *source) (err error) {
		t, err = from.trigger(ctx, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{
		{MetricName: t.metricName(), TargetSize: 1, TargetSizeFloat: 1},
	}}, nil
}

// GetMetrics returns how many replicas there should be.
func (s *Server) GetMetrics(ctx context.Context, req *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	var t Trigger
	err := s.with(ctx, func(from *source) (err error) {
		t, err = from.parse(req.GetScaledObjectRef())
		return err
	})
	if err != nil {
		return nil, err
	}
	if name := req.GetMetricName(); name != "" && name != t.metricName() {
		return nil, status.Errorf(codes.InvalidArgument, "metric %q is not this trigger's, which is %s", clip(name), t.metricName())
	}
	n, err := s.replicas(ctx, req.GetScaledObjectRef(), 0)
	if err != nil {
		return nil, err
	}
	// KEDA uses the float if it is above 0, and otherwise the whole number: 0 is right both ways.
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
		{MetricName: t.metricName(), MetricValue: n, MetricValueFloat: float64(n)},
	}}, nil
}

func (f *source) parse(ref *externalscaler.ScaledObjectRef) (Trigger, error) {
	t, err := Parse(ref.GetScalerMetadata(), f.classes)
	if err == nil && t.Resource == "" {
		t.Resource, err = f.only()
	}
	if err != nil {
		return t, status.Error(codes.InvalidArgument, err.Error())
	}
	if f.model != nil && t.Model != "" {
		t.Model = f.model(t.Resource, t.Model)
	}
	return t, nil
}

// only returns the resource of a trigger that names none.
func (f *source) only() (string, error) {
	names := f.named
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", wrong("resource", "is missing, and this gate has no resource: configure one")
	}
	more := ""
	if n := len(names) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "", wrong("resource", "is missing, and this gate has %d resources: name one of %s%s", len(names), strings.Join(names[:min(len(names), maxNamed)], ", "), more)
}

// maxNamed is how many resources a message lists.
const maxNamed = 8

// trigger reads metadata and checks that the resource exists, so that a mistake shows when the ScaledObject is created
// and not when it should scale.
func (f *source) trigger(ctx context.Context, ref *externalscaler.ScaledObjectRef) (Trigger, error) {
	t, err := f.parse(ref)
	if err != nil {
		return t, err
	}
	if _, _, err := f.read(ctx, t.Resource, fresh); err != nil && status.Code(err) != codes.Unavailable {
		return t, err
	}
	return t, nil
}

// asPrecondition returns the gRPC error for a trigger that asks for something this gate does not know.
func asPrecondition(err error) error { return status.Error(codes.FailedPrecondition, err.Error()) }

// asStatus returns the gRPC error for a resource that could not be read.
func asStatus(resource string, err error) error {
	switch {
	case errors.Is(err, sluice.ErrUnknownResource):
		return status.Errorf(codes.NotFound, "metadata resource: %q is not a resource of this gate: see sluice status", clip(resource))
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "cancelled")
	}
	return status.Errorf(codes.Unavailable, "resource %s: %v", resource, err)
}
