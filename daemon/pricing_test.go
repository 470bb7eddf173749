package daemon_test

import (
	"net/http"
	"testing"

	"github.com/sluicehq/sluice/provider"
)

// Usage stated when a ticket is closed is priced as the proxy prices it, and a budget then refuses.
func TestUsageOfATicketIsPriced(t *testing.T) {
	r := begin(t, "anthropic", "resources: {anthropic: {provider: anthropic}}\nbudgets: [{name: all, size: 1 usd/day}]\n", nil)
	got := r.want(http.StatusOK, "POST", "/v1/tickets", `{"resource":"anthropic","agent":"a","model":"claude-opus-4-5"}`)
	r.want(http.StatusNoContent, "POST", "/v1/tickets/"+got["ticket"].(string)+"/close", `{"usage":{"input_tokens":100000,"output_tokens":50000}}`)
	want, _ := provider.DefaultPrices().Micros("claude-opus-4-5", &provider.Usage{Input: 100_000, Output: 50_000})
	list, err := r.gate.Budgets(t.Context())
	if err != nil || len(list) != 1 || list[0].UsedUSD != float64(want)/1e6 || want < 1_000_000 {
		t.Fatalf("%+v, want %d, %v", list, want, err)
	}
	if p := r.want(http.StatusForbidden, "POST", "/v1/tickets", `{"resource":"anthropic","agent":"a","model":"claude-haiku-4-5"}`); p["limit"] != "all" {
		t.Error(p)
	}
}
