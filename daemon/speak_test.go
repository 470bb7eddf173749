package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

const userTokens = "tokens:\n- {name: top, hash: %s}\n- {name: low, hash: %s, class: p2}\n- {name: ann, hash: %s, class: p2, user: ann}\n"

// Regression: a token below the highest class spent the budgets of users, and took their slots, by stating their names.
func TestALowerTokenDoesNotSpeakForUsersOfTheHighestClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := fmt.Sprintf("resources: {api: {limits: [{name: minute, size: 1000/min}]}}\n"+userTokens, tokenHash("top"), tokenHash("low"), tokenHash("ann"))
		r := beginAPI(t, text)
		ask := func(token, user string, want int) {
			t.Helper()
			code, body := r.as(token, "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"user":"`+user+`"}`)
			if code != want {
				t.Errorf("%s asks for %q: %d, want %d: %s", token, user, code, want, body)
			}
		}
		ask("low", "bea", http.StatusOK) // nobody else has named her
		ask("top", "bea", http.StatusOK)
		ask("low", "bea", http.StatusForbidden)
		ask("ann", "bea", http.StatusForbidden)
		ask("ann", "ann", http.StatusOK)
		ask("ann", "", http.StatusOK)
		ask("top", "ann", http.StatusOK)
		ask("ann", "", http.StatusOK) // bound to her
		if code, body := r.as("low", "PUT", "/v1/agents/a", `{"user":"bea"}`); code != http.StatusForbidden {
			t.Errorf("a heartbeat takes her slot: %d %s", code, body)
		}
		time.Sleep(25 * time.Hour)
		ask("low", "bea", http.StatusOK)
	})
}

// field reads one text of a JSON object.
func field(t *testing.T, body, name string) string {
	t.Helper()
	all := map[string]any{}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	text, _ := all[name].(string)
	return text
}

// leftOf returns what is left of a limit.
func (r *rig) leftOf(name string) int64 {
	r.Helper()
	s, err := r.gate.Resource(r.Context(), "api")
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range s.Limits {
		if l.Name == name {
			return l.Remaining
		}
	}
	r.Fatalf("there is no limit %s", name)
	return 0
}

// Regression: one false ticket used up a daily limit, so that all requests were held until midnight.
func TestFalseUsageLeavesMostOfADailyLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: day, size: 1000000/day, unit: input_tokens, kind: fixed}]}}\n"+fourTokens)
		lie := func(units string) {
			t.Helper()
			code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"units":{"input_tokens":`+units+`}}`)
			if code != http.StatusOK {
				t.Fatal(code, body)
			}
			id := field(t, body, "ticket")
			if code, body := r.as("low", "POST", "/v1/tickets/"+id+"/close", `{"usage":{"input_tokens":1000000}}`); code != http.StatusNoContent {
				t.Fatal(code, body)
			}
		}
		for range 10 {
			lie("1000")
		}
		if left := r.leftOf("day"); left < 700_000 {
			t.Errorf("%d of a million are left at once, want three quarters, less what was reserved", left)
		}
		for range 10 {
			time.Sleep(time.Hour)
			lie("10")
		}
		if left := r.leftOf("day"); left < 100_000 {
			t.Errorf("%d of a million are left after ten hours, want an eighth", left)
		}
		// What was reserved counts, and so does an honest excess.
		r = beginAPI(t, "resources: {api: {limits: [{name: day, size: 1000000/day, unit: input_tokens, kind: fixed}]}}\n"+fourTokens)
		code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"units":{"input_tokens":400000}}`)
		if code != http.StatusOK {
			t.Fatal(code, body)
		}
		r.as("low", "POST", "/v1/tickets/"+field(t, body, "ticket")+"/close", `{"usage":{"input_tokens":500000}}`)
		if left := r.leftOf("day"); left != 500_000 {
			t.Errorf("%d are left, want 500000", left)
		}
	})
}

// Regression: an unclosed ticket of a lower token that stated 100 USD emptied a shared budget.
func TestFalseMoneyLeavesMostOfASharedBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\nbudgets: [{name: all, size: 80 usd/day}]\n"+fourTokens)
		spent := func() float64 {
			list, err := r.gate.Budgets(t.Context())
			if err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			return list[0].UsedUSD
		}
		for range 20 {
			code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"units":{"requests":1,"usd":90}}`)
			if code != http.StatusOK {
				t.Fatal(code, body)
			}
			r.as("low", "POST", "/v1/tickets/"+field(t, body, "ticket")+"/close", `{"usage":{"usd":100}}`)
		}
		if got := spent(); got > 21 {
			t.Errorf("%v USD of 80 are gone", got)
		}
		// Tokens count at the gate's price, whoever states them.
		before := spent()
		code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"model":"m","units":{"input_tokens":100000}}`)
		if code != http.StatusOK {
			t.Fatal(code, body)
		}
		r.as("low", "POST", "/v1/tickets/"+field(t, body, "ticket")+"/close", `{"usage":{"input_tokens":500000,"usd":5}}`)
		if got := spent() - before; got < 4.9 || got > 5.1 {
			t.Errorf("half a million tokens cost %v USD, want 5", got)
		}
	})
}
