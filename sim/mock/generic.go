package mock

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// generic is an API that echoes the request, with the rate-limit headers of the IETF draft.
type generic struct{}

func (generic) serve(x *exchange) {
	size, err := io.Copy(io.Discard, x.r.Body) // of any length
	if err != nil {
		x.fail(http.StatusBadRequest, "The body could not be read.")
		return
	}
	if !x.admit(ask{takes: []amount{{sim.Requests, 1}}}, "", Usage{}) || !x.begin() {
		return
	}
	x.reply(http.StatusOK, obj{{"method", x.r.Method}, {"path", x.r.URL.Path}, {"size", size}})
}

func (generic) hello(h http.Header) { h.Set("X-Request-Id", requestID("")) }

// headers states every limit as a policy, with its remaining quota.
func (generic) headers(h http.Header, at store.Time, states []stated) {
	var policies, left []string
	for _, s := range states {
		if s.limit.Kind == store.Concurrency {
			policies = append(policies, fmt.Sprintf(`"%s";q=%d;qu="concurrent-requests"`, s.limit.Name, s.Size))
			left = append(left, fmt.Sprintf(`"%s";r=%d`, s.limit.Name, s.Remaining))
			continue
		}
		window := fmt.Sprintf(`;w=%d`, s.limit.Window/time.Second)
		if s.limit.Window%time.Second != 0 { // the field has only whole seconds
			window = ""
		}
		policies = append(policies, fmt.Sprintf(`"%s";q=%d%s`, s.limit.Name, s.Size, window))
		left = append(left, fmt.Sprintf(`"%s";r=%d;t=%d`, s.limit.Name, s.Remaining, upSeconds(s.Reset-at)))
	}
	if len(policies) > 0 {
		h.Set("Ratelimit-Policy", strings.Join(policies, ", "))
		h.Set("Ratelimit", strings.Join(left, ", "))
	}
}

func (generic) refuse(h http.Header, d *decision) (int, any) {
	d.retryAfter(h)
	h.Set("Content-Type", problemType)
	return http.StatusTooManyRequests, obj{
		{"type", "https://iana.org/assignments/http-problem-types#quota-exceeded"}, {"title", "Request cannot be satisfied as assigned quota has been exceeded"},
		{"status", http.StatusTooManyRequests}, {"violated-policies", []any{d.limit.Name}},
	}
}

// problemType is the content type of errors (RFC 9457).
const problemType = "application/problem+json"

func (generic) problem(h http.Header, status int, message string) any {
	h.Set("Content-Type", problemType)
	return obj{{"type", "about:blank"}, {"title", http.StatusText(status)}, {"status", status}, {"detail", message}}
}

func (generic) broken(*exchange, bool) (string, any) {
	return "error", obj{{"error", obj{{"message", "Something went wrong."}}}}
}
