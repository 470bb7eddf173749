package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/sluicehq/sluice/inspect"
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

// The same call costs the same through the proxy and with a ticket whose usage is stated when it is closed. A model
// without a price is flagged both ways.
func TestProxyAndTicketsCostTheSame(t *testing.T) {
	r := begin(t, "anthropic", `
resources: {anthropic: {provider: anthropic, upstream: "${UPSTREAM}"}}
budgets: [{name: each, per: agent, size: 10 usd/day}]
`, nil)
	for _, model := range []string{"claude-opus-4-5", "claude-nobody-knows"} {
		w, text := r.post("/@proxied-"+model+"/anthropic/v1/messages", messages(model), "X-Api-Key", "k")
		var said struct {
			Usage struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(text), &said); w.Code != http.StatusOK || err != nil || said.Usage.Output == 0 {
			t.Fatal(w.Code, text, err)
		}
		got := r.want(http.StatusOK, "POST", "/v1/tickets", fmt.Sprintf(`{"resource":"anthropic","agent":"asked-%s","model":%q}`, model, model))
		r.want(http.StatusNoContent, "POST", "/v1/tickets/"+got["ticket"].(string)+"/close",
			fmt.Sprintf(`{"usage":{"input_tokens":%d,"output_tokens":%d}}`, said.Usage.Input, said.Usage.Output))
		spent := map[string]inspect.BudgetStatus{}
		list, err := r.gate.Budgets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			spent[b.Who] = b
		}
		proxied, asked := spent["proxied-"+model], spent["asked-"+model]
		_, known := provider.DefaultPrices().Micros(model, &provider.Usage{Input: 1})
		if proxied.UsedUSD == 0 || proxied.UsedUSD != asked.UsedUSD || proxied.UnpricedUSD != asked.UnpricedUSD || known != (asked.UnpricedUSD == 0) {
			t.Errorf("%s: %+v by the proxy, %+v with a ticket", model, proxied, asked)
		}
	}
}

// A ticket of a resource without a provider that states its usage only when it is closed is charged, and the budget
// binds. A unit that counts nowhere is named in a header.
func TestUsageStatedOnlyWhenATicketIsClosedBinds(t *testing.T) {
	for _, usage := range []string{`{"input_tokens":500,"output_tokens":500}`, `{"usd":0.1}`} {
		r := begin(t, "anthropic", "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\nprices: {my-model: {input: 100, output: 100}}\nbudgets: [{name: all, size: 0.30 usd/day}]\n", nil)
		for range 3 {
			got := r.want(http.StatusOK, "POST", "/v1/tickets", `{"resource":"api","agent":"a","model":"my-model"}`)
			r.want(http.StatusNoContent, "POST", "/v1/tickets/"+got["ticket"].(string)+"/close", `{"usage":`+usage+`}`)
		}
		if p := r.want(http.StatusForbidden, "POST", "/v1/tickets", `{"resource":"api","agent":"a","model":"my-model"}`); p["limit"] != "all" {
			t.Error(p)
		}
	}
	r := begin(t, "anthropic", "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\n", nil)
	w := r.storeCall("POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":1,"tokns":5}}`, "Content-Type", "application/json")
	if got := w.Header().Get("Sluice-Not-Counted"); w.Code != http.StatusOK || got != "tokns" {
		t.Errorf("%d, %q", w.Code, got)
	}
}
