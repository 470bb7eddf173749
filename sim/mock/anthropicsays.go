package mock

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

func (anthropic) hello(h http.Header) {
	h.Set("Request-Id", requestID("req_"))
	h.Set("Anthropic-Organization-Id", "00000000-0000-4000-8000-000000000000")
}

// headers states the limits on requests, input tokens, output tokens, and both kinds of tokens together.
func (anthropic) headers(h http.Header, _ store.Time, states []stated) {
	var both sim.State
	kinds := 0
	for _, s := range states {
		switch s.limit.Unit {
		case sim.Requests, unitCount:
			anthropicLimit(h, "requests", s.State)
		case sim.InputTokens, sim.OutputTokens:
			s.Remaining = rounded(s.Remaining, s.Size)
			anthropicLimit(h, s.limit.Name, s.State)
			both.Size += s.Size
			both.Remaining += s.Remaining
			both.Reset = max(both.Reset, s.Reset)
			kinds++
		}
	}
	if kinds > 0 {
		anthropicLimit(h, "tokens", both)
	}
}

func anthropicLimit(h http.Header, name string, s sim.State) {
	prefix := "Anthropic-Ratelimit-" + name + "-"
	h.Set(prefix+"Limit", strconv.FormatInt(s.Size, 10))
	h.Set(prefix+"Remaining", strconv.FormatInt(s.Remaining, 10))
	h.Set(prefix+"Reset", store.Time(upSeconds(s.Reset)*1_000_000).Std().Format(time.RFC3339))
}

// rounded rounds the remaining tokens to the nearest thousand, as Anthropic does. It leaves limits under 10,000 exact;
// Anthropic has none that small.
func rounded(n, size int64) int64 {
	if size < 10_000 {
		return n
	}
	return min((n+500)/1000*1000, size)
}

// upSeconds returns a time in whole seconds, rounded up.
func upSeconds(t store.Time) int64 { return (int64(t) + 999_999) / 1_000_000 }

func (p anthropic) refuse(h http.Header, d *decision) (int, any) {
	d.retryAfter(h)
	h.Set("X-Should-Retry", "true")
	what := strings.ReplaceAll(d.limit.Unit, "_", " ")
	message := fmt.Sprintf("This request would exceed your organization's rate limit of %d %s per %s. See the response headers for current usage. "+
		"Please reduce the prompt length or the maximum tokens requested, or try again later.", d.limit.Size, what, per(d.limit.Window))
	if d.limit.Unit == places {
		message = "Number of concurrent connections has exceeded your rate limit. Please try again later."
	}
	return http.StatusTooManyRequests, anthropicError(h, "rate_limit_error", message)
}

// per formats a window as a word, such as "minute".
func per(window time.Duration) string {
	switch window {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return window.String()
}

func anthropicError(h http.Header, kind, message string) obj {
	return obj{{"type", "error"}, {"error", obj{{"type", kind}, {"message", message}}}, {"request_id", h.Get("Request-Id")}}
}

func (anthropic) problem(h http.Header, status int, message string) any {
	kinds := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		405: "invalid_request_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
	}
	kind := kinds[status]
	if kind == "" {
		kind = "api_error"
	}
	if kind == "overloaded_error" {
		message = "Overloaded"
	}
	return anthropicError(h, kind, message)
}

func (anthropic) broken(x *exchange, _ bool) (string, any) {
	return "error", anthropicError(x.w.Header(), "overloaded_error", "Overloaded")
}

// anthropicModels lists the models that /v1/models shows. The mock serves any other name as well.
var anthropicModels = [...]struct{ id, name string }{
	{"claude-opus-5-5", "Claude Opus 5.5"}, {"claude-sonnet-5-5", "Claude Sonnet 5.5"}, {"claude-haiku-5-5", "Claude Haiku 5.5"},
	{"claude-haiku-4-5", "Claude Haiku 4.5"},
}

func (anthropic) models(x *exchange, id string) {
	var list []any
	for _, m := range anthropicModels {
		one := obj{{"type", "model"}, {"id", m.id}, {"display_name", m.name}, {"created_at", "2026-01-01T00:00:00Z"}}
		if m.id == id {
			x.reply(http.StatusOK, one)
			return
		}
		list = append(list, one)
	}
	if id != "" {
		x.fail(http.StatusNotFound, "model: "+id)
		return
	}
	x.reply(http.StatusOK, obj{
		{"data", list}, {"has_more", false}, {"first_id", anthropicModels[0].id}, {"last_id", anthropicModels[len(anthropicModels)-1].id},
	})
}
