package daemon_test

import (
	"strings"
	"testing"
	"testing/synctest"
)

// In observe mode the API grants tickets at once, however little is left. After a switch to gate mode they hold no
// request, and open ones can be ended.
func TestTicketsOfAnObservedResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const observe = "resources: {api: {mode: observe, limits: [{name: hour, size: 2/h}, {name: places, concurrency: 1}]}}\n"
		r := reloadable(t, observe)
		var open []string
		for range 10 {
			out := r.must("POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`)
			open = append(open, out["ticket"].(string))
		}
		end := func(id string) {
			t.Helper()
			if out := r.must("POST", "/v1/tickets/"+id+"/answer", `{"status":429,"headers":{"Retry-After":"3600"}}`); out["held"] != false {
				t.Errorf("%v", out)
			}
			r.must("POST", "/v1/tickets/"+id+"/close", `{"usage":{"requests":1}}`)
			r.must("POST", "/v1/tickets/"+id+"/close", `{}`)
		}
		for _, id := range open[:5] {
			end(id)
		}
		if s, err := r.gate.Resource(t.Context(), "api"); err != nil || s.Sent != 10 || s.InFlight != 5 || s.Throttled != 5 || s.PausedUntil != nil {
			t.Errorf("observed: %+v %v", s, err)
		}

		r.text = strings.Replace(observe, "observe", "gate", 1)
		r.must("POST", "/-/reload", "")
		mine := r.must("POST", "/v1/tickets", `{"resource":"api","agent":"b","wait_ms":0}`)["ticket"].(string)
		for _, id := range open[5:] {
			end(id)
		}
		s, err := r.gate.Resource(t.Context(), "api")
		if err != nil || s.Mode != "gate" || s.Sent != 1 || s.InFlight != 1 || s.Throttled != 0 || s.PausedUntil != nil || s.Limits[0].Used != 1 || s.Limits[1].Used != 1 {
			t.Errorf("gated: %+v %v", s, err)
		}
		if code, _ := r.call("POST", "/v1/tickets/"+open[9]+"/renew", `{}`); code < 400 {
			t.Errorf("a ticket that nobody counts is renewed: %d", code)
		}
		r.must("POST", "/v1/tickets/"+mine+"/close", `{}`)
		r.must("POST", "/v1/tickets", `{"resource":"api","agent":"b","wait_ms":0}`)
	})
}

// A response that a caller observes for a model holds the requests that name the model the same way.
func TestAnObservedModelIsTheRequestsModel(t *testing.T) {
	r := begin(t, "generic", "resources: {anthropic: {provider: anthropic}, github: {provider: github}}\n", nil)
	r.want(200, "POST", "/v1/resources/anthropic/observe", `{"status":429,"model":"claude-opus-4-5","headers":{"Retry-After":"300"}}`)
	r.want(429, "POST", "/v1/tickets", `{"resource":"anthropic","agent":"a","model":"claude-opus-4-5","wait_ms":0}`)
	r.want(200, "POST", "/v1/tickets", `{"resource":"anthropic","agent":"a","model":"claude-haiku-4-5","wait_ms":0}`)
	// Where the response names the part of the API, the caller need not.
	r.want(200, "POST", "/v1/resources/github/observe",
		`{"status":403,"headers":{"x-ratelimit-resource":"search","x-ratelimit-limit":"30","x-ratelimit-remaining":"0","x-ratelimit-reset":"50"}}`)
	r.want(429, "POST", "/v1/tickets", `{"resource":"github","agent":"a","class":"p0","model":"search","wait_ms":0}`)
	r.want(200, "POST", "/v1/tickets", `{"resource":"github","agent":"a","class":"p0","wait_ms":0}`)
}
