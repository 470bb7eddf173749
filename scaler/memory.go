package scaler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

const (
	// fresh is how old the view of a resource may be that streams share: with many of them the store is still
	// asked only a few times a second.
	fresh = 200 * time.Millisecond
	// patience is how long the store may take.
	patience = 5 * time.Second
)

// remembered is a trigger that was asked about.
type remembered struct {
	state    State
	replicas int64     // as it was last told
	seen     time.Time // when the store was asked for what that rests on
	used     time.Time
}

// view is a resource as it was last seen. Its lock is held while the store is asked, so that many who want to
// know ask once; it is a channel, so that nobody has to wait for it.
type view struct {
	lock   chan struct{}
	began  time.Time // when the store was asked
	status inspect.ResourceStatus
	err    error
}

// replicas is how many replicas a trigger should have now, by what was seen within age.
func (s *Server) replicas(ctx context.Context, ref *externalscaler.ScaledObjectRef, age time.Duration) (n int64, err error) {
	err = s.with(ctx, func(from *source) error {
		n, err = s.replicasOf(ctx, from, ref, age)
		return err
	})
	return n, err
}

// with does something with the source, and again if there is another by the time it is done: the gate may have
// been closed meanwhile, and what it said is of the past.
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

// step brings a trigger's state up to date, unless another call has done so with what it saw later.
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

// makeRoom forgets the trigger that was not asked about for longest, if there are too many.
func (s *Server) makeRoom() {
	if len(s.triggers) < MaxTriggers {
		return
	}
	delete(s.triggers, slices.MinFunc(slices.Collect(maps.Keys(s.triggers)), func(a, b string) int {
		return s.triggers[a].used.Compare(s.triggers[b].used)
	}))
}

// keyOf tells triggers apart, in a few bytes whatever their names are. A ScaledObject with two triggers that
// say the same has one state for both.
func keyOf(ref *externalscaler.ScaledObjectRef, t Trigger) string {
	h := fnv.New128a()
	_, _ = fmt.Fprintf(h, "%q %q %q", ref.GetNamespace(), ref.GetName(), []any{t.Resource, t.Mode, t.Class, t.Unit, t.Model, fmt.Sprint(t.Target)})
	return string(h.Sum(nil))
}

// read looks at a resource, or takes what another call saw that began to look at most age before this one. It
// returns when that was, too.
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
		return seen, began, asStatus(resource, err) // that is this caller's alone
	case err != nil:
		err = asStatus(resource, err)
	case seen.Outage != nil:
		// Neither zero nor any other number would be true: KEDA keeps what there is, or takes its fallback.
		err = status.Errorf(codes.Unavailable, "resource %s: the store cannot be reached: %s", resource, clip(seen.Outage.Why))
	}
	v.began, v.status, v.err = began, seen, err
	return seen, began, err
}
