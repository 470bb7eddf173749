//go:build linux || darwin

package sdk_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestGateWaitsOutRefusals: what somebody else has used up of the limit nobody told the gate. The provider refuses, the gate waits
// and sends again, and the client sees nothing of it.
func TestGateWaitsOutRefusals(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, setup{mock: []string{"--requests", "2/4s", "--algorithm", "bucket"}})
		all := r.gated("exhausted")
		if all["exhausted"].Error != nil {
			t.Errorf("the client saw %s", all["exhausted"].line)
		}
		if n := r.stats().Throttled; n < 2 {
			t.Errorf("the provider refused %d, and should have refused the other one and the gate", n)
		}
		got := r.caller()
		if got.FirstSends != 1 || got.Retries < 1 || got.Throttled < 1 || got.Throttled != got.Retries {
			t.Errorf("the gate counted %+v", got)
		}
	})
}

// TestGateRefuses: a request whose turn does not come in time is refused by the gate, in the provider's own words.
func TestGateRefuses(t *testing.T) {
	class := map[client]string{anthropic: "RateLimitError", openai: "RateLimitError", octokit: "RequestError"}
	kind := map[client]string{anthropic: "rate_limit_error", openai: "rate_limit_exceeded"}
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, setup{resource: "client_deadline: 1s\nlimits:\n  - {name: own, size: 1/min}"})
		all := r.gated(plain[c.script][0], "refused")
		if e := all[plain[c.script][0]].Error; e != nil {
			t.Fatalf("the first was refused: %+v", e)
		}
		e := value[seenError](t, all, "refused")
		if e.Class != class[c] || e.Status != 429 || e.Type != kind[c] || e.Refused != "1" {
			t.Errorf("the client threw %+v", e)
		}
		// A moment of the second may have passed before it asked.
		if said := regexp.MustCompile("sluice: " + c.provider + `: would not be granted within (1s|9\d0ms) \(limit `); !said.MatchString(e.Message) {
			t.Errorf("the message does not say what happened: %q", e.Message)
		}
		if n, err := strconv.Atoi(e.RetryAfter); err != nil || n < 1 || n > 59 {
			t.Errorf("Retry-After is %q", e.RetryAfter)
		}
		if n := r.stats().Arrived; n != 1 {
			t.Errorf("%d requests arrived, not 1", n)
		}
	})
}

// TestClientComesBack: a client that is refused by the gate waits as long as it is told, and is let through then.
func TestClientComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []client{anthropic, openai} { // Octokit does not try again by itself
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			r := begin(t, c, setup{resource: "client_deadline: 1s\nlimits:\n  - {name: own, size: 1/3s}"})
			all := r.gated("create", "patient")
			if e := all["patient"].Error; e != nil {
				t.Fatalf("the client did not come back in time: %+v", e)
			}
			if ms := value[struct{ Ms float64 }](t, all, "patient").Ms; ms < 1000 { // the least that it can have been told
				t.Errorf("the client came back after %v ms", ms)
			}
			if got := r.caller(); got.FirstSends != 1 || got.Retries != 1 || got.Throttled != 0 {
				t.Errorf("the gate counted %+v", got)
			}
			if s := r.stats(); s.Accepted != 2 || s.Throttled != 0 {
				t.Errorf("the provider saw %+v", s)
			}
		})
	}
}

// TestBudgetDenies: a request that a budget has no room for is refused for good, and the client does not come back.
func TestBudgetDenies(t *testing.T) {
	t.Parallel()
	kind := map[client]string{anthropic: "permission_error", openai: "permission_denied"}
	for _, c := range []client{anthropic, openai} {
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			r := begin(t, c, setup{file: `budgets: [{name: pocket, per: fleet, size: 0.01 usd/day, over: deny}]
prices:
  claude-sonnet-5-5: {input: 1000, output: 1000}
  gpt-6.1-terra: {input: 1000, output: 1000}`})
			all := r.gated("denied")
			e := value[seenError](t, all, "denied")
			if e.Class != "PermissionDeniedError" || e.Status != 403 || e.Type != kind[c] || e.Refused != "1" {
				t.Errorf("the client threw %+v", e)
			}
			if !strings.Contains(e.Message, "sluice: ") || !strings.Contains(e.Message, "pocket") {
				t.Errorf("the message does not name the budget: %q", e.Message)
			}
			if n := r.stats().Arrived; n != 0 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}
