package proxy_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sim/mock"
)

// subscribed returns a rig whose provider is a mock with a subscription.
func subscribed(t *testing.T, name string, o mock.Options, change func(*proxy.Resource)) (*rig, *mock.Server) {
	t.Helper()
	o.Provider, o.Pace = name, -1
	m, err := mock.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	preset, _ := provider.Preset(name)
	return begin(t, preset.Limits, func(w http.ResponseWriter, q *http.Request) {
		q.URL.Path = strings.TrimPrefix(q.URL.Path, "/base")
		m.ServeHTTP(w, q)
	}, func(p *proxy.Options) {
		r := p.Resources["api"]
		r.Deadline = time.Second
		r.Dialect, _ = provider.Lookup(name)
		if change != nil {
			change(&r)
		}
		p.Resources["api"] = r
	}), m
}

// ask sends one call to a model, and returns the status, the Retry-After, and the text.
func (r *rig) ask(who, path string) (status int, after int, text string) {
	r.Helper()
	body := `{"model":"claude-sonnet-5","max_tokens":400,"messages":[{"role":"user","content":"Hello there."}]}`
	if path != "/v1/messages" {
		body = `{"model":"gpt-5.4","max_output_tokens":400,"input":"Hello there."}`
	}
	resp, text := r.send(http.MethodPost, "/@"+who+"/api"+path, strings.NewReader(body), "Authorization", "Bearer subscription", "Content-Type", "application/json")
	after, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
	return resp.StatusCode, after, text
}

func (r *rig) window(name string) (l inspect.LimitStatus) {
	r.Helper()
	for _, l = range r.status().Limits {
		if l.Name == name {
			return l
		}
	}
	r.Fatalf("there is no limit %s", name)
	return l
}

// A person's requests pass as long as the subscription has anything left, and then get the provider's refusal.
// Background agents wait, and their requests do not reach the provider.
func TestAPersonAndBackgroundAgentsOnASubscription(t *testing.T) {
	for name, path := range map[string]string{"anthropic": "/v1/messages", "openai": "/v1/responses"} {
		t.Run(name, func(t *testing.T) {
			r, m := subscribed(t, name, mock.Options{Plan: []mock.Window{{Length: 5 * time.Hour, Tokens: 30_000}, {Length: 7 * 24 * time.Hour, Tokens: 3_000_000}}}, nil)
			if status, _, text := r.ask("agent:p2", path); status != http.StatusOK {
				t.Fatalf("%d: %s", status, text)
			}
			if l := r.window("plan-5h"); l.Limit != provider.PlanSize || l.ResetAt == nil || time.Until(*l.ResetAt) < 4*time.Hour {
				t.Errorf("after the first answer: %+v", l)
			}
			held := false
			for n := 0; ; n++ {
				status, _, text := r.ask("person:p0", path)
				if status == http.StatusTooManyRequests {
					if !strings.Contains(text, "account's rate limit") && !strings.Contains(text, "usage_limit_reached") {
						t.Errorf("the person was refused by the gate: %s", text)
					}
					break
				}
				if status != http.StatusOK || n > 1000 {
					t.Fatalf("%d after %d calls: %s", status, n, text)
				}
				if n%5 == 0 && !held { // one waits for its deadline, so only until one has been
					before := m.Stats().Arrived
					status, after, _ := r.ask("agent:p2", path)
					if held = status == http.StatusTooManyRequests; held && (m.Stats().Arrived != before || after < 1 || after > 59) {
						t.Errorf("a held agent is told to come back in %d s, and the provider saw %d requests", after, m.Stats().Arrived-before)
					}
				}
			}
			if !held {
				t.Error("no background agent was ever held")
			}
			l := r.window("plan-5h")
			if l.Remaining != 0 || r.status().PausedUntil != nil || r.status().Throttled != 1 {
				t.Errorf("used up: %+v, paused until %v, %d throttled", l, r.status().PausedUntil, r.status().Throttled)
			}
			before := m.Stats().Arrived
			if status, _, text := r.ask("agent:p2", path); status != http.StatusTooManyRequests || m.Stats().Arrived != before {
				t.Errorf("a background agent got %d, and the provider saw %d requests: %s", status, m.Stats().Arrived-before, text)
			}
			began := time.Now()
			if status, _, _ := r.ask("person:p0", path); status != http.StatusTooManyRequests || m.Stats().Arrived != before+1 || time.Since(began) > 30*time.Second {
				t.Errorf("the person got %d after %v, and the provider saw %d requests", status, time.Since(began), m.Stats().Arrived-before)
			}
			if text, err := json.Marshal(r.status()); err != nil || strings.Contains(string(text), "subscription") {
				t.Errorf("the status has the token, or cannot be written: %v", err)
			}
		})
	}
}

// Use beyond the subscription costs money: background agents use it only if configured.
func TestOverageIsOptIn(t *testing.T) {
	for _, on := range []bool{false, true} {
		r, m := subscribed(t, "anthropic", mock.Options{Plan: []mock.Window{{Length: 5 * time.Hour, Tokens: 500}}, Overage: true}, func(p *proxy.Resource) { p.Overage = on })
		for range 10 { // the person uses all of it, and goes on
			if status, _, text := r.ask("person:p0", "/v1/messages"); status != http.StatusOK {
				t.Fatalf("%d: %s", status, text)
			}
		}
		before := m.Stats().Arrived
		status, _, text := r.ask("agent:p2", "/v1/messages")
		if passed := status == http.StatusOK && m.Stats().Arrived == before+1; passed != on {
			t.Errorf("with overage %v a background agent got %d: %s", on, status, text)
		}
	}
}
