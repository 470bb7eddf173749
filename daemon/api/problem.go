package api

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/requestid"
)

// Problem is an error response (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	// For a refusal: which limit, why, and when to retry.
	Limit        string     `json:"limit,omitempty"`
	Why          string     `json:"why,omitempty"`
	RetryAt      *time.Time `json:"retry_at,omitempty"`
	RetryAfterMS *int64     `json:"retry_after_ms,omitempty"`
	Chain        []string   `json:"chain,omitempty"`
	// The agents of unanswered tickets that hold the limit, and when the last of these ends.
	HeldBy    []string   `json:"held_by,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
	// For a configuration: the position of the mistake.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	// RequestID identifies the request in the log. Write takes it from the response's header.
	RequestID string `json:"request_id,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// about maps errors to HTTP statuses. The first match counts.
var about = []struct {
	err    error
	status int
}{
	{sluice.ErrStore, http.StatusServiceUnavailable},
	{sluice.ErrClosed, http.StatusServiceUnavailable},
	{sluice.ErrUnknownResource, http.StatusNotFound},
	{sluice.ErrUnknownTicket, http.StatusNotFound},
	{sluice.ErrUnknownTask, http.StatusNotFound},
	{sluice.ErrEnded, http.StatusConflict},
	{sluice.ErrClass, http.StatusForbidden}, // ErrClass also matches ErrInvalid
	{sluice.ErrInvalid, http.StatusBadRequest},
	{sluice.ErrCapacity, http.StatusForbidden},
	{sluice.ErrBilling, http.StatusForbidden},
	{sluice.ErrBudget, http.StatusForbidden},
	{sluice.ErrNotNow, http.StatusTooManyRequests},
	{sluice.ErrDeadline, http.StatusTooManyRequests},
	{sluice.ErrCancelled, http.StatusTooManyRequests},
	{sluice.ErrFull, http.StatusTooManyRequests},
	{sluice.ErrSlots, http.StatusTooManyRequests},
	{sluice.ErrAttempts, http.StatusTooManyRequests},
}

// ProblemOf returns the problem that tells a client about an error.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	p = &Problem{Status: http.StatusInternalServerError, Detail: err.Error()}
	for _, a := range about {
		if errors.Is(err, a.err) {
			p.Status = a.status
			break
		}
	}
	if e, ok := errors.AsType[*sluice.Error](err); ok {
		p.Hint, p.Limit, p.Why = e.Hint, e.Limit, e.Reason
		if !e.RetryAt.IsZero() {
			p.RetryAt, p.RetryAfterMS = new(e.RetryAt.UTC()), new(max(time.Until(e.RetryAt).Milliseconds(), 0))
		}
		if !e.HeldUntil.IsZero() {
			p.HeldBy, p.HeldUntil = e.HeldBy, new(e.HeldUntil.UTC())
		}
	}
	return p
}

// Write sends the problem as the response.
func (p *Problem) Write(w http.ResponseWriter) {
	out := *p
	if out.Title == "" {
		out.Title = http.StatusText(out.Status)
	}
	h := w.Header()
	out.RequestID = h.Get(requestid.Header)
	body, err := json.Marshal(out)
	if err != nil {
		body = []byte(`{}`)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if p.RetryAfterMS != nil {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(float64(*p.RetryAfterMS)/1000))))
	}
	w.WriteHeader(out.Status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}
