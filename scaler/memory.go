package scaler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/scaler/externalscaler"
)

const (
	// fresh is how old a shared view of a resource may be for streams. With many streams the store is still read only a
	// few times a second.
	fresh = 200 * time.Millisecond
	// patience is how long the store may take.
	patience = 5 * time.Second
)

// remembered is the state of a trigger.
type remembered struct {
	state    State
	replicas int64     // last reported
	seen     time.Time // when the store was read for that
	used     time.Time
}

// view is the last known state of a resource. Its lock is held during a read, so that concurrent callers cause one
// read. The lock is a channel, so that a caller can stop waiting for it.
type view struct {
	lock   chan struct{}
	began  time.Time // when the store was read
	status inspect.ResourceStatus
	err    error
}

// replicas returns how many replicas a trigger should have now, from a view that is at most age old.
func (s *Server) replicas(ctx context.Context, ref *externalscaler.ScaledObjectRef, age time.Duration) (n int64, err error) {
	err = s.with(ctx, func(from *source) error {
		n, err = s.replicasOf(ctx, from, ref, age)
		return err
	})
	return n, err
}

// with calls do with the source, and again if the source was replaced meanwhile: the gate may have been closed, and its
// state is out of date.
func (s *Server) with(ctx context.Context, do func(*source) error) error {
	for {
		from := s.source.Load()
		if err := do(from); ctx.Err() != nil || s.source.Load() == from {
			return err
		}
	}
}

func (s *Server) replicasOf(ctx context.Context, from *source, ref *externalscaler.ScaledObjectRef, age time.Duration) (int64, error) {
	t, err := from.parse(ref)
	if err != nil {
		return 0, err
	}
	status, seen, err := from.read(ctx, t.Resource, age)
	if err != nil {
		return 0, err
	}
	at := Situation{Status: status, Limits: from.limits[t.Resource], Highest: from.highest(), Now: s.now()}
	d, err := Decide(at, t)
	if err != nil {
		return 0, asPrecondition(err)
	}
	return s.step(ref, t, d, seen, at.Now), nil
}

// step updates a trigger's state, unless another call has done so with a later view.
func (s *Server) step(ref *externalscaler.ScaledObjectRef, t Trigger, d Demand, seen, now time.Time) int64 {
	key := keyOf(ref, t)
	s.mu.Lock()
	r := s.triggers[key]
	if r == nil {
		s.makeRoom()
		r = &remembered{}
		s.triggers[key] = r
	}
	r.used = time.Now()
	if seen.Before(r.seen) {
		defer s.mu.Unlock()
		return r.replicas
	}
	before := r.state.Off
	state, n := r.state.Next(d, t.Mode, now)
	r.state, r.replicas, r.seen = state, n, seen
	s.mu.Unlock()
	if state.Off != before {
		at := []any{"namespace", clip(ref.GetNamespace()), "name", clip(ref.GetName()), "resource", t.Resource, "mode", string(t.Mode)}
		if state.Off != "" {
			s.log.Info("keda: no replicas", append(at, "why", state.Off)...)
		} else {
			s.log.Info("keda: replicas again", append(at, "replicas", n, "after", before)...)
		}
	}
	return n
}

// makeRoom drops the least recently used trigger if there are too many.
func (s *Server) makeRoom() {
	if len(s.triggers) < MaxTriggers {
		return
	}
	delete(s.triggers, slices.MinFunc(slices.Collect(maps.Keys(s.triggers)), func(a, b string) int {
		return s.triggers[a].used.Compare(s.triggers[b].used)
	}))
}

// keyOf returns a short key for a trigger, however long its names are. Two identical triggers of a ScaledObject share
// one state.
func keyOf(ref *externalscaler.ScaledObjectRef, t Trigger) string {
	h := fnv.New128a()
	_, _ = fmt.Fprintf(h, "%q %q %q", ref.GetNamespace(), ref.GetName(), []any{t.Resource, t.Mode, t.Class, t.Unit, t.Model, fmt.Sprint(t.Target)})
	return string(h.Sum(nil))
}

// read reads a resource, or returns the view of another call that began at most age before this one. It also returns
// when the read began.
func (f *source) read(ctx context.Context, resource string, age time.Duration) (inspect.ResourceStatus, time.Time, error) {
	oldest := time.Now().Add(-age)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := f.view(resource)
	select {
	case v.lock <- struct{}{}:
		defer func() { <-v.lock }()
	case <-ctx.Done():
		return inspect.ResourceStatus{}, time.Time{}, asStatus(resource, ctx.Err())
	}
	if v.began.After(oldest) {
		return v.status, v.began, v.err
	}
	began := time.Now()
	seen, err := f.gate.Resource(ctx, resource)
	switch {
	case errors.Is(err, sluice.ErrUnknownResource):
		f.forget(resource)
		return seen, began, asStatus(resource, err)
	case errors.Is(err, context.Canceled):
		return seen, began, asStatus(resource, err) // only this caller gave up
	case err != nil:
		err = asStatus(resource, err)
	case seen.Outage != nil:
		// No number would be true, zero included: with an error KEDA keeps the current replicas, or uses its fallback.
		err = status.Errorf(codes.Unavailable, "resource %s: the store cannot be reached: %s", resource, clip(seen.Outage.Why))
	}
	v.began, v.status, v.err = began, seen, err
	return seen, began, err
}
