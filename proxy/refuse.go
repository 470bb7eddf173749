package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/sluicehttp"
)

// maxRetryAfter is the longest that a client is told to wait: some give up at a minute and more.
const maxRetryAfter = 59 * time.Second

// refusal is an answer of the proxy's own.
type refusal struct {
	status  int
	message string
	hint    string
	after   time.Duration // when to come back; 0: it does not help
	fatal   bool          // trying again does not help
}

func refuse(status int, message, hint string) *refusal {
	return &refusal{status: status, message: message, hint: hint, fatal: true}
}

// refusalOf says what an error means for a client.
func refusalOf(err error) *refusal {
	var e *sluice.Error
	if errors.Is(err, sluicehttp.ErrRoute) {
		return refuse(http.StatusBadRequest, strings.TrimPrefix(err.Error(), "sluicehttp: "), "name the model, in a smaller body")
	}
	if errors.Is(err, sluicehttp.ErrSwitched) {
		return refuse(http.StatusBadGateway, strings.TrimPrefix(err.Error(), "sluicehttp: "), "look whether the upstream is an HTTP API")
	}
	if !errors.As(err, &e) {
		return badGateway(err)
	}
	f := &refusal{message: e.Error(), hint: e.Hint}
	switch {
	case errors.Is(err, sluice.ErrStore), errors.Is(err, sluice.ErrClosed):
		f.status, f.after = http.StatusServiceUnavailable, time.Second
	case errors.Is(err, sluice.ErrDeadline), errors.Is(err, sluice.ErrNotNow), errors.Is(err, sluice.ErrFull), errors.Is(err, sluice.ErrAttempts),
		errors.Is(err, sluice.ErrCancelled):
		f.status, f.after = http.StatusTooManyRequests, maxRetryAfter
		if !e.RetryAt.IsZero() {
			f.after = min(max(time.Until(e.RetryAt), time.Second), maxRetryAfter)
		}
	case errors.Is(err, sluice.ErrClass): // which is invalid too
		f.status, f.fatal = http.StatusForbidden, true
	case errors.Is(err, sluice.ErrInvalid), errors.Is(err, sluice.ErrUnknownResource), errors.Is(err, sluice.ErrUnknownTask):
		f.status, f.fatal = http.StatusBadRequest, true
	default: // a budget, a cost above the capacity, a billing stop
		f.status, f.fatal = http.StatusForbidden, true
	}
	return f
}

// badGateway is for a provider that cannot be reached. What went wrong is told without addresses, and what happens next.
func badGateway(err error) *refusal {
	f := &refusal{status: http.StatusBadGateway, message: "the provider cannot be reached: " + unreached(err)}
	f.hint = "the gate tries every new request; sluice status says failing until one succeeds"
	if upstream.Kind(err) == upstream.Timeout {
		f.status = http.StatusGatewayTimeout
	}
	return f
}

// unreached is what kept a request from the provider.
func unreached(err error) string {
	var op *net.OpError
	switch upstream.Kind(err) {
	case upstream.DNS:
		return "its name does not resolve"
	case upstream.Refused:
		return "connection refused"
	case upstream.Reset:
		return "the connection broke before an answer came"
	case upstream.Timeout:
		return "it did not answer in time"
	case upstream.Connect:
		if errors.As(err, &op) {
			return op.Op + ": " + op.Err.Error()
		}
	}
	return upstream.Words(err)
}

// deny answers in the provider's place, before the gate has looked at a request.
func (p *Proxy) deny(w http.ResponseWriter, r *http.Request, d *door, f *refusal) {
	resource := ""
	if d != nil {
		resource = d.name
	}
	id := requestid.Of(r)
	p.logDenied(r, id, resource, f)
	p.answer(w, id, d, f)
}

// answer answers in the provider's place. Only then a client sees an id of the gate's: what is passed
// back has those of the provider's.
func (p *Proxy) answer(w http.ResponseWriter, id string, d *door, f *refusal) {
	resource := ""
	if d != nil {
		resource = d.name
	}
	w.Header()[requestid.Header] = []string{id}
	p.log.Debug("not sent on", "request_id", id, "resource", resource, "status", f.status, "reason", f.message)
	// The server reads the rest of the body before it answers: one that does not come must not be waited for.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(denyWithin)) // else it is no connection
	f.write(w, d)
}

// denyWithin is how long the rest of a body is waited for that is not sent on.
const denyWithin = 30 * time.Second

// write answers, in the provider's own words where they are known.
func (f *refusal) write(w http.ResponseWriter, d *door) {
	text := f.text()
	h := w.Header()
	kind, body := problemJSON, f.problem(h.Get(requestid.Header))
	if d != nil && d.speaker != nil {
		if k, b := d.speaker.Refuse(f.status, "sluice: "+text); len(b) > 0 && k != problemJSON {
			kind, body = k, b
		}
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Sluice-Refused", "1")
	if f.after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.after.Seconds()))))
	}
	if f.fatal {
		h.Set("X-Should-Retry", "false")
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(body) // who is gone misses nothing
}

// text is what a refusal says, with what to do about it.
func (f *refusal) text() string {
	if f.hint != "" {
		return f.message + " (" + f.hint + ")"
	}
	return f.message
}

// problemJSON is the form of refusals that no provider has one of its own for.
const problemJSON = "application/problem+json"

func (f *refusal) problem(id string) []byte {
	b, err := json.Marshal(struct {
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Hint      string `json:"hint,omitempty"`
		RequestID string `json:"request_id,omitempty"`
	}{http.StatusText(f.status), f.status, f.message, f.hint, id})
	if err != nil {
		return []byte("{}")
	}
	return append(b, '\n')
}

func quoted(s string) string { return fmt.Sprintf("%.80q", s) }

func sortNames(names []string) { slices.Sort(names) }
