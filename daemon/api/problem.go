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

// Problem is an error as a client gets it (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	// Of a refusal: which limit, why, and when it may help to come back.
	Limit        string     `json:"limit,omitempty"`
	Why          string     `json:"why,omitempty"`
	RetryAt      *time.Time `json:"retry_at,omitempty"`
	RetryAfterMS *int64     `json:"retry_after_ms,omitempty"`
	Chain        []string   `json:"chain,omitempty"`
	// Of a configuration: where what is wrong with it is.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	// RequestID is how the log calls the request. Write takes it from the answer's header.
	RequestID string `json:"request_id,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// about maps what errors are about to statuses. The first that matches counts.
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
	{sluice.ErrClass, http.StatusForbidden}, // which is invalid too
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

// unknownWait is when to come back where nobody knows when it helps: when a place is free, for one.
const unknownWait = time.Second

// ProblemOf says what an error means for a client.
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
	var e *sluice.Error
	if errors.As(err, &e) {
		p.Hint, p.Limit, p.Why = e.Hint, e.Limit, e.Reason
		if !e.RetryAt.IsZero() {
			at := e.RetryAt.UTC()
			after := max(time.Until(at).Milliseconds(), 0)
			p.RetryAt, p.RetryAfterMS = &at, &after
		}
	}
	if p.Status == http.StatusTooManyRequests && p.RetryAfterMS == nil {
		after := unknownWait.Milliseconds()
		p.RetryAfterMS = &after
	}
	return p
}

// Write answers with the problem.
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
	_, _ = w.Write(append(body, '\n')) // who is gone misses nothing
}
