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

// maxRetryAfter is the longest wait that a client is told, because some clients give up at a minute or more.
const maxRetryAfter = 59 * time.Second

// refusal is a response of the proxy itself.
type refusal struct {
	status  int
	message string
	hint    string
	after   time.Duration // when to retry; 0 means that a retry does not help
	fatal   bool          // a retry does not help
}

func refuse(status int, message, hint string) *refusal {
	return &refusal{status: status, message: message, hint: hint, fatal: true}
}

// refusalOf converts an error into a refusal for the client.
func refusalOf(err error) *refusal {
	var e *sluice.Error
	if errors.Is(err, sluicehttp.ErrRoute) {
		return refuse(http.StatusBadRequest, strings.TrimPrefix(err.Error(), "sluicehttp: "), "name the model, in a smaller body")
	}
	if errors.Is(err, sluicehttp.ErrModel) {
		return refuse(http.StatusBadRequest, "the model of the call cannot be read, so the gate does not know which limits apply",
			"send one JSON object that names one model, in its first 64 MiB and at most 512 levels deep")
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
	case errors.Is(err, sluice.ErrClass): // ErrClass also matches ErrInvalid
		f.status, f.fatal = http.StatusForbidden, true
	case errors.Is(err, sluice.ErrInvalid), errors.Is(err, sluice.ErrUnknownResource), errors.Is(err, sluice.ErrUnknownTask):
		f.status, f.fatal = http.StatusBadRequest, true
	default: // a budget, a cost above the capacity, a billing stop
		f.status, f.fatal = http.StatusForbidden, true
	}
	return f
}

// badGateway returns the refusal for a provider that cannot be reached. It says what went wrong, without addresses, and
// what happens next.
func badGateway(err error) *refusal {
	if upstream.OutOfFiles(err) {
		return &refusal{
			status: http.StatusServiceUnavailable, after: time.Second, message: "this gate can open no more files, so there is no connection to the provider",
			hint: "raise the limit on open files of sluice serve (ulimit -n): it needs 4 for each resource and 2 for each request in progress",
		}
	}
	f := &refusal{status: http.StatusBadGateway, message: "the provider cannot be reached: " + unreached(err)}
	f.hint = "the gate tries every new request; sluice status says failing until one succeeds"
	switch {
	case upstream.Kind(err) == upstream.Timeout:
		f.status = http.StatusGatewayTimeout
	case upstream.Untrusted(err):
		f.hint = upstream.TrustHint
	}
	return f
}

// unreached describes what kept a request from the provider.
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

// deny refuses a request before it reaches the gate.
func (p *Proxy) deny(w http.ResponseWriter, r *http.Request, d *door, f *refusal) {
	resource := ""
	if d != nil {
		resource = d.name
	}
	id := requestid.Of(r)
	p.logDenied(r, id, resource, f)
	p.answer(w, id, d, f)
}

// answer responds in place of the provider. Only such a response carries an id of the gate: responses that are passed
// back have the provider's ids.
func (p *Proxy) answer(w http.ResponseWriter, id string, d *door, f *refusal) {
	resource := ""
	if d != nil {
		resource = d.name
	}
	w.Header()[requestid.Header] = []string{id}
	p.log.Debug("not sent on", "request_id", id, "resource", resource, "status", f.status, "reason", f.message)
	// The server reads the rest of the body before it responds, and must not wait for a body that never comes.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(denyWithin)) // an error means that it is not a connection
	f.write(w, d)
}

// denyWithin is how long the server waits for the rest of a refused request's body.
const denyWithin = 30 * time.Second

// write sends the refusal, in the provider's own format if it is known.
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
	_, _ = w.Write(body) // an error means that the client is gone
}

// text returns the message of a refusal, with its hint.
func (f *refusal) text() string {
	if f.hint != "" {
		return f.message + " (" + f.hint + ")"
	}
	return f.message
}

// problemJSON is the format of refusals for providers without a format of their own.
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
