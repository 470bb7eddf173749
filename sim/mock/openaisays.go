package mock

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

func (openai) hello(h http.Header) {
	h.Set("X-Request-Id", requestID("req_"))
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Organization", "org-mock")
}

// headers states the limits on requests and on tokens.
func (openai) headers(h http.Header, at store.Time, states []stated) {
	for _, s := range states {
		name := s.limit.Unit
		h.Set("X-Ratelimit-Limit-"+name, strconv.FormatInt(s.Size, 10))
		h.Set("X-Ratelimit-Remaining-"+name, strconv.FormatInt(s.Remaining, 10))
		h.Set("X-Ratelimit-Reset-"+name, inMillis(s.Reset.Sub(at)).String())
	}
}

// inMillis returns a duration in whole milliseconds, rounded up.
func inMillis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func (openai) refuse(h http.Header, d *decision) (int, any) {
	back := inMillis(d.back)
	if d.limit.Unit == places {
		back = time.Second
	}
	again := ""
	if back > 0 {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(back), 10))
		h.Set("Retry-After-Ms", strconv.FormatInt(back.Milliseconds(), 10))
		again = fmt.Sprintf(" Please try again in %v.", back)
	}
	kind, words := "requests", "requests per "+per(d.limit.Window)
	switch d.limit.Unit {
	case sim.Tokens:
		kind, words = "tokens", "tokens per "+per(d.limit.Window)
	case places:
		words = "concurrent requests"
	}
	if d.limit.Window == time.Minute {
		words = map[string]string{"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}[kind]
	}
	return http.StatusTooManyRequests, openaiError(kind, "rate_limit_exceeded", fmt.Sprintf(
		"Rate limit reached for this model in organization org-mock on %s: Limit %d, Used %d, Requested %d.%s", words, d.limit.Size, d.used, d.need, again))
}

func openaiError(kind string, code any, message string) obj {
	return obj{{"error", obj{{"message", message}, {"type", kind}, {"param", nil}, {"code", code}}}}
}

func (openai) problem(_ http.Header, status int, message string) any {
	switch {
	case status == http.StatusUnauthorized:
		return openaiError("invalid_request_error", "invalid_api_key", message)
	case status == http.StatusTooManyRequests:
		return openaiError("requests", "rate_limit_exceeded", message)
	case status == http.StatusServiceUnavailable:
		return openaiError("server_error", "server_is_overloaded", "The engine is currently overloaded, please try again later")
	case status >= 500:
		return openaiError("server_error", nil, sorry)
	}
	return openaiError("invalid_request_error", nil, message)
}

func (openai) broken(x *exchange, stream bool) (string, any) {
	if stream && x.r.URL.Path == pathResponses {
		return "error", obj{{"type", "error"}, {"code", "server_error"}, {"message", sorry}, {"param", nil}}
	}
	return "error", openaiError("server_error", nil, sorry)
}

const sorry = "The server had an error while processing your request. Sorry about that!"

// openaiModels lists the models that /v1/models shows. The mock serves any other name as well.
var openaiModels = [...]string{"gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna", "gpt-5.4", "gpt-5.4-mini"}

func (openai) models(x *exchange, id string) {
	var list []any
	for _, m := range openaiModels {
		one := obj{{"id", m}, {"object", "model"}, {"created", created}, {"owned_by", "mock"}}
		if m == id {
			x.reply(http.StatusOK, one)
			return
		}
		list = append(list, one)
	}
	if id != "" {
		x.fail(http.StatusNotFound, "The model '"+id+"' does not exist")
		return
	}
	x.reply(http.StatusOK, obj{{"object", "list"}, {"data", list}})
}
