package mock_test

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// admits is the rule of a limit, computed from everything that was accepted before.
type admits func(n int64, window time.Duration, accepted []time.Duration, now time.Duration) bool

// byRule lists the rules, each written in the plainest way.
var byRule = map[string]admits{
	"rolling": func(n int64, window time.Duration, accepted []time.Duration, now time.Duration) bool {
		return inWindow(accepted, window, now) < n
	},
	"fixed": func(n int64, window time.Duration, accepted []time.Duration, now time.Duration) bool {
		count := int64(0)
		for _, a := range accepted {
			if a/window == now/window { // time begins with a window
				count++
			}
		}
		return count < n
	},
	"bucket": func(n int64, window time.Duration, accepted []time.Duration, now time.Duration) bool {
		level, last := new(big.Rat), time.Duration(0)
		drain := func(to time.Duration) {
			level.Sub(level, new(big.Rat).Mul(big.NewRat(n, int64(window)), big.NewRat(int64(to-last), 1)))
			if level.Sign() < 0 {
				level.SetInt64(0)
			}
			last = to
		}
		for _, a := range accepted {
			drain(a)
			level.Add(level, big.NewRat(1, 1))
		}
		drain(now)
		return level.Add(level, big.NewRat(1, 1)).Cmp(big.NewRat(n, 1)) <= 0
	},
}

// inWindow counts the requests accepted in (now-window, now].
func inWindow(accepted []time.Duration, window, now time.Duration) (count int64) {
	for _, a := range accepted {
		if a > now-window && a <= now {
			count++
		}
	}
	return count
}

// A request is accepted exactly if the rule admits it, each key has its own limits, and the reported worst window is
// correct.
func TestLimitsAreExact(t *testing.T) {
	for algorithm, rule := range byRule {
		t.Run(algorithm, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.Int64Range(1, 12).Draw(t, "n")
				window := time.Duration(rapid.Int64Range(1, 60).Draw(t, "window")) * time.Second
				c := newClock()
				s, err := mock.New(mock.Options{Provider: "generic", Requests: sim.Rate{N: n, Window: window}, Algorithm: algorithm, Now: c.Now})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				accepted := map[string][]time.Duration{}
				begin, worst := c.Now(), int64(0)
				for range rapid.IntRange(1, 60).Draw(t, "requests") {
					c.advance(time.Duration(rapid.Int64Range(0, window.Microseconds()/3).Draw(t, "gap")) * time.Microsecond)
					key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
					now := c.Now().Sub(begin)
					want := rule(n, window, accepted[key], now)
					w := send(s, "GET", "/", "", "X-Api-Key: "+key)
					if (w.Code == 200) != want {
						t.Fatalf("at %v after %v: status %d, want it accepted: %v", now, accepted[key], w.Code, want)
					}
					if want {
						accepted[key] = append(accepted[key], now)
						worst = max(worst, inWindow(accepted[key], window, now))
						continue
					}
					// A client that waits as long as Retry-After says is accepted.
					wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
					if err != nil || wait < 1 || !rule(n, window, accepted[key], now+time.Duration(wait)*time.Second) {
						t.Fatalf("retry after %q", w.Header().Get("Retry-After"))
					}
				}
				st := s.Stats()
				if st.WorstWindow != worst || algorithm == "rolling" && st.WorstWindow > n {
					t.Fatalf("worst window %d, want %d of %d", st.WorstWindow, worst, n)
				}
				if st.Accepted != int64(len(accepted["a"])+len(accepted["b"])) || st.Arrived != st.Accepted+st.Throttled {
					t.Fatalf("%+v", st)
				}
			})
		})
	}
}

func TestKeysAreToldApart(t *testing.T) {
	s := server(t, mock.Options{Provider: "generic", Requests: perMinute(1), Now: newClock().Now})
	for _, c := range []struct {
		header string
		want   int
	}{
		{"X-Api-Key: one", 200}, {"X-Api-Key: one", 429}, {"Authorization: Bearer one", 429}, {"Authorization: token one", 429},
		{"Authorization: Bearer two", 200}, {"Api-Key: two", 429}, {"Api-Key: three", 200}, {"No-Key: x", 200}, {"No-Key: y", 429},
	} {
		if w := send(s, "GET", "/", "", c.header); w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.header, w.Code, c.want)
		}
	}
}

func ask(model string, bytes, most int) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"%0*d"}]}`, model, most, bytes, 0)
}

// Anthropic counts input on arrival and output as it is produced, for each class of models. The maximum that a
// request asks for does not matter.
func TestAnthropicCountsWhatIsUsed(t *testing.T) {
	c := newClock()
	s := server(t, mock.Options{Provider: "anthropic", InputTokens: perMinute(100), OutputTokens: perMinute(300), Now: c.Now})
	post := func(body string, headers ...string) (int, string) {
		w := send(s, "POST", "/v1/messages", body, headers...)
		return w.Code, w.Body.String()
	}
	big := ask("opus", 360-30, 1_000_000) // 30 bytes of JSON around the text: 90 tokens
	if code, body := post(big); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if u := s.Stats().Ledger["opus"]; u.InputTokens != 90 || u.OutputTokens < 5 || u.OutputTokens > 200 {
		t.Fatalf("%+v", u)
	}
	if code, body := post(big); code != 429 {
		t.Errorf("input is not counted: %d %s", code, body)
	}
	if code, _ := post(big, "X-Mock: cache-read=80"); code != 200 {
		t.Error("what a cache has read is counted")
	}
	if u := s.Stats().Ledger["opus"]; u.InputTokens != 100 || u.CacheReadTokens != 80 {
		t.Errorf("%+v", u)
	}
	if code, _ := post(ask("haiku", 10, 5)); code != 200 {
		t.Error("another model is held up")
	}
	for i := 0; ; i++ { // output may exceed its limit, and then delays further requests
		if i > 100 {
			t.Fatal("output is not counted")
		}
		if code, body := post(ask("sonnet", 0, 200), "X-Mock: cache-read=1000"); code == 429 {
			if at(decoded(t, []byte(body)), "error", "type") != "rate_limit_error" || s.Stats().Ledger["sonnet"].OutputTokens < 300 {
				t.Errorf("%s", body)
			}
			return
		}
	}
}

// OpenAI reserves the maximum that a request may use.
func TestOpenAIReserves(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai", InputTokens: perMinute(700), OutputTokens: perMinute(300), Now: newClock().Now})
	for i, c := range []struct {
		body string
		left string
		want int
	}{
		{ask("gpt", 0, 600), "400", 200},
		{ask("gpt", 0, 500), "400", 429},
		{ask("gpt", 1200-30, 10), "100", 200}, // 300 tokens of input are more than 10
		{ask("gpt-2026-01-01", 0, 101), "100", 429},
		{ask("other", 0, 1000), "0", 200},
		{ask("third", 0, 1001), "1000", 429},
	} {
		w := send(s, "POST", "/v1/chat/completions", c.body)
		if w.Code != c.want || w.Header().Get("X-Ratelimit-Remaining-Tokens") != c.left {
			t.Errorf("%d: %d with %s left, want %d with %s: %s", i, w.Code, w.Header().Get("X-Ratelimit-Remaining-Tokens"), c.want, c.left, w.Body)
		}
	}
}

func TestPublishedLimits(t *testing.T) {
	for provider, want := range map[string][2]string{
		"anthropic": {"Anthropic-Ratelimit-Input-Tokens-Limit", "2000000"}, "openai": {"X-Ratelimit-Limit-Requests", "1000"},
		"github": {"X-Ratelimit-Limit", "5000"}, "generic": {"Ratelimit", ""},
	} {
		s := server(t, mock.Options{Provider: provider, Published: true})
		path, body := "/user", ""
		method := "GET"
		switch provider {
		case "anthropic":
			method, path, body = "POST", "/v1/messages", ask("m", 0, 5)
		case "openai":
			method, path, body = "POST", "/v1/chat/completions", ask("m", 0, 5)
		}
		if w := send(s, method, path, body); w.Code != 200 || w.Header().Get(want[0]) != want[1] {
			t.Errorf("%s: %d %v", provider, w.Code, w.Header())
		}
	}
}

// A limit on concurrent requests counts those without a response.
func TestConcurrency(t *testing.T) {
	for _, provider := range mock.Providers {
		t.Run(provider, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { concurrency(t, provider) }) })
	}
}

func concurrency(t *testing.T, provider string) {
	s := server(t, mock.Options{Provider: provider, Concurrency: 2})
	method, path, body, refused := "GET", "/user", "", 429
	switch provider {
	case "anthropic":
		method, path, body = "POST", "/v1/messages", ask("m", 0, 5)
	case "openai":
		method, path, body = "POST", "/v1/responses", `{"model":"m","input":"x"}`
	case "gemini":
		method, path, body = "POST", "/v1beta/models/m:generateContent", `{"contents":[]}`
	case "github":
		refused = 403
	}
	release := hanging(t, s, 2, method, path, body)
	if n := s.Stats().InFlight; n != 2 {
		t.Errorf("%d in flight, want 2", n)
	}
	w := send(s, method, path, body)
	if w.Code != refused || w.Header().Get("Retry-After") == "" && !strings.Contains(w.Body.String(), "retryDelay") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	release()
	if w := send(s, method, path, body); w.Code != 200 {
		t.Errorf("%d when the others are gone", w.Code)
	}
	if st := s.Stats(); st.InFlight != 0 || st.Aborted != 2 {
		t.Errorf("%+v", st)
	}
}
