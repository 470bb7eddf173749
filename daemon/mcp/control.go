package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

type pauseIn struct {
	Resource string  `json:"resource" jsonschema:"the API to pause"`
	Minutes  float64 `json:"minutes" jsonschema:"how long, up to 1440 minutes"`
	Reason   string  `json:"reason,omitempty" jsonschema:"why, for people to read"`
}

type resumeIn struct {
	Resource string `json:"resource" jsonschema:"the API to resume"`
}

type pausedOut struct {
	Resource string `json:"resource"`
	Paused   bool   `json:"paused" jsonschema:"whether all requests are held now"`
	EndsInS  *int64 `json:"ends_in_s" jsonschema:"seconds until the pause ends; null: there is none"`
	Reason   string `json:"reason"`
}

const (
	maxPause  = 24 * time.Hour // as in the API
	maxReason = 500            // bytes
)

// errControl is the error for callers that may not pause or resume.
var errControl = errors.New("pause and resume need a token of the highest class")

// pause answers pause_resource.
func (s *server) pause(ctx context.Context, q pauseIn) (pausedOut, string, error) {
	d := time.Duration(q.Minutes * float64(time.Minute))
	switch {
	case !s.Caller.Control:
		return pausedOut{}, "", errControl
	case q.Resource == "":
		return pausedOut{}, "", errNoResource
	case math.IsNaN(q.Minutes) || q.Minutes <= 0 || q.Minutes > maxPause.Minutes() || d <= 0:
		return pausedOut{}, "", fmt.Errorf("minutes: %g is not allowed; use more than 0 and at most %.0f", q.Minutes, maxPause.Minutes())
	case len(q.Reason) > maxReason:
		return pausedOut{}, "", fmt.Errorf("reason: it has %d bytes, more than %d", len(q.Reason), maxReason)
	}
	if err := s.Gate.Pause(ctx, q.Resource, d, cmp.Or(q.Reason, s.Caller.Pauses)); err != nil {
		return pausedOut{}, "", err
	}
	return s.paused(ctx, q.Resource)
}

// resume answers resume_resource.
func (s *server) resume(ctx context.Context, q resumeIn) (pausedOut, string, error) {
	switch {
	case !s.Caller.Control:
		return pausedOut{}, "", errControl
	case q.Resource == "":
		return pausedOut{}, "", errNoResource
	}
	if err := s.Gate.Resume(ctx, q.Resource); err != nil {
		return pausedOut{}, "", err
	}
	return s.paused(ctx, q.Resource)
}

// paused returns the state of a resource after a pause or resume.
func (s *server) paused(ctx context.Context, resource string) (pausedOut, string, error) {
	out := pausedOut{Resource: resource}
	st, err := s.Gate.Status(ctx)
	if err != nil {
		return out, "", err
	}
	var r *inspect.ResourceStatus
	if r, err = pick(st.Resources, resource); err != nil {
		return out, "", err
	}
	now := time.Now()
	switch {
	case r.PausedUntil != nil:
	case r.BillingStop:
		return out, "No pause holds " + word(resource) + ". Its billing stop ends with the first request that the provider serves.", nil
	default:
		return out, word(resource) + " is not paused.", nil
	}
	out.Paused, out.EndsInS, out.Reason = true, in(r.PausedUntil, now), words(r.PauseReason)
	return out, fmt.Sprintf("%s is paused for %s: %s.", word(resource), show.For(r.PausedUntil, now), out.Reason), nil
}
