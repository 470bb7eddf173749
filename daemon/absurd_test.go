package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// absurd are values that no provider means.
var absurd = []string{
	"99999999999999999999", "9223372036854775807", "-9223372036854775808", "1e308", "NaN", "-Inf", "-1", "Fri, 31 Dec 9999 23:59:59 GMT",
	"9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "253402300799000", "999999999h", "9223372037s", "1000000d", "8640000", "60, 9999999999",
}

// absurdFields are the headers that providers state limits and hints in.
var absurdFields = []string{
	"retry-after", "retry-after-ms", "x-ms-retry-after-ms",
	"ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset", "ratelimit-limit", "ratelimit-remaining",
	"x-ratelimit-limit", "x-ratelimit-remaining",
	"anthropic-ratelimit-requests-reset", "anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining",
	"anthropic-ratelimit-unified-5h-reset", "anthropic-ratelimit-unified-7d-reset", "anthropic-ratelimit-unified-reset", "anthropic-ratelimit-unified-5h-utilization",
	"x-ratelimit-reset-requests", "x-ratelimit-reset-tokens", "x-ratelimit-limit-requests", "x-ratelimit-limit-tokens", "x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens",
	"x-ratelimit-reset-project-tokens", "x-ratelimit-renewalperiod-requests", "x-ratelimit-renewalperiod-tokens",
	"x-ratelimit-limit-req-minute", "x-ratelimit-remaining-req-minute", "x-ratelimit-limit-tokens-minute", "x-ratelimit-tokens-query-cost",
	"x-ratelimit-interval-reset", "beta-ratelimit", "x-ratelimit-used", "stripe-rate-limited-reason",
}

// absurdForms are headers that belong together.
var absurdForms = []string{
	`{"ratelimit":"limit=100, remaining=0, reset=%s"}`, `{"ratelimit":"\"default\";r=0;t=%s","ratelimit-policy":"\"default\";q=100;w=60"}`,
	`{"ratelimit":"\"default\";r=0;t=30","ratelimit-policy":"\"default\";q=%s;w=60"}`, `{"ratelimit":"\"default\";r=%s;t=30","ratelimit-policy":"\"default\";q=100;w=60"}`,
	`{"ratelimit":"\"default\";r=0;t=30","ratelimit-policy":"\"default\";q=100;w=%s"}`, `{"ratelimit-policy":"100;w=%s","ratelimit-limit":"100","ratelimit-remaining":"0","ratelimit-reset":"30"}`,
	`{"x-ratelimit-limit":"100","x-ratelimit-remaining":"0","x-ratelimit-reset":"%s"}`, `{"x-ratelimit-limit":"100","x-ratelimit-remaining":"%s","x-ratelimit-reset":"30"}`,
	`{"x-ratelimit-limit":"%s","x-ratelimit-remaining":"0","x-ratelimit-reset":"30"}`,
	`{"anthropic-ratelimit-requests-limit":"100","anthropic-ratelimit-requests-remaining":"0","anthropic-ratelimit-requests-reset":"%s"}`,
	`{"anthropic-ratelimit-requests-limit":"%s","anthropic-ratelimit-requests-remaining":"0","anthropic-ratelimit-requests-reset":"2027-01-01T00:00:00Z"}`,
	`{"anthropic-ratelimit-unified-5h-status":"rejected","anthropic-ratelimit-unified-5h-utilization":"1.0","anthropic-ratelimit-unified-5h-reset":"%s"}`,
	`{"anthropic-ratelimit-unified-status":"rejected","anthropic-ratelimit-unified-reset":"%s"}`,
	`{"x-ratelimit-limit-requests":"100","x-ratelimit-remaining-requests":"0","x-ratelimit-reset-requests":"%s"}`,
	`{"x-ratelimit-limit-requests":"10000","x-ratelimit-remaining-requests":"9999","x-ratelimit-reset-requests":"%s"}`,
	`{"x-ratelimit-limit-requests":"%s","x-ratelimit-remaining-requests":"0","x-ratelimit-reset-requests":"6m0s"}`,
	`{"x-ratelimit-limit-tokens":"100","x-ratelimit-remaining-tokens":"0","x-ratelimit-reset-tokens":"%s"}`,
	`{"x-ratelimit-limit-req-minute":"%s","x-ratelimit-remaining-req-minute":"0"}`, `{"x-ratelimit-limit-req-minute":"100","x-ratelimit-remaining-req-minute":"%s"}`,
	`{"x-ratelimit-limit-requests":"100","x-ratelimit-remaining-requests":"0","x-ratelimit-renewalperiod-requests":"%s","x-ratelimit-reset-requests":"0"}`,
}

// Whatever absurd limits a response states, a retry is possible within backoff.cap, 15 minutes.
func TestAbsurdHeadersHoldNobodyForLong(t *testing.T) {
	forms := slices.Clone(absurdForms)
	for _, f := range absurdFields {
		forms = append(forms, `{"`+f+`":"%s"}`)
	}
	for i, form := range forms {
		for k, v := range absurd {
			// Every form and value with one status, one way in and one dialect; all of them meet.
			dialect := []string{"generic", "anthropic", "openai", "azure", "mistral"}[(i+k)%5]
			status, observe := []int{429, 200, 503}[(i*7+k)%3], (i+k/2)%2 == 0
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			headers := strings.ReplaceAll(form, "%s", string(text[1:len(text)-1]))
			synctest.Test(t, func(t *testing.T) { absurdAnswer(t, dialect, status, observe, headers) })
		}
	}
}

func absurdAnswer(t *testing.T, dialect string, status int, observe bool, headers string) {
	t.Helper()
	const asks = `{"resource":"api","agent":"a","class":"p0","model":"m","wait_ms":`
	r := beginAPI(t, "resources: {api: {provider: "+dialect+", upstream: 'http://127.0.0.1:1'}}\n")
	body, path := fmt.Sprintf(`{"status":%d,"headers":%s}`, status, headers), "/v1/resources/api/observe"
	if !observe {
		code, got := r.as("", "POST", "/v1/tickets", asks+"0}")
		if code != http.StatusOK {
			t.Fatal(code, got)
		}
		path = "/v1/tickets/" + field(t, got, "ticket") + "/answer"
	}
	if code, got := r.as("", "POST", path, body); code != http.StatusOK {
		t.Error(code, got, body)
	}
	began := time.Now()
	for {
		code, got := r.as("", "POST", "/v1/tickets", asks+"600000}")
		if code == http.StatusOK {
			return
		}
		if time.Since(began) > 16*time.Minute {
			t.Errorf("%s, %d: held for more than %v by %s: %s", dialect, status, time.Since(began), headers, got)
			return
		}
		time.Sleep(time.Minute)
	}
}
