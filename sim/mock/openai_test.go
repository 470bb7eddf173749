package mock_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

func TestOpenAIChat(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai", Requests: perMinute(60), InputTokens: perMinute(1000), Now: newClock().Now})
	w := send(s, "POST", "/v1/chat/completions", `{"model":"gpt","max_completion_tokens":100,"messages":[{"role":"user","content":"hi"}]}`, "X-Mock: cache-read=3")
	v := decoded(t, w.Body.Bytes())
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{"object"}, "chat.completion"}, {[]any{"model"}, "gpt"}, {[]any{"choices", 0, "message", "role"}, "assistant"},
		{[]any{"usage", "prompt_tokens"}, 8.0}, {[]any{"usage", "prompt_tokens_details", "cached_tokens"}, 3.0},
	} {
		if got := at(v, c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	text := at(v, "choices", 0, "message", "content").(string)
	if out := at(v, "usage", "completion_tokens").(float64); int(out) != len(strings.Fields(text)) || at(v, "usage", "total_tokens") != out+8 {
		t.Errorf("%s", w.Body)
	}
	if u := s.Stats().Ledger["gpt"]; u.InputTokens != 5 || u.CacheReadTokens != 3 {
		t.Errorf("%+v", u)
	}
	for name, want := range map[string]string{
		"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "59", "X-Ratelimit-Reset-Requests": "1s",
		"X-Ratelimit-Limit-Tokens": "1000", "X-Ratelimit-Remaining-Tokens": "900", "X-Ratelimit-Reset-Tokens": "6s",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestOpenAIRefusal(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai", Requests: sim.Rate{N: 8, Window: perMinute(1).Window}, Now: newClock().Now})
	w := send(s, "POST", "/v1/chat/completions", plainMessage)
	for w.Code == 200 {
		w = send(s, "POST", "/v1/chat/completions", plainMessage)
	}
	v := decoded(t, w.Body.Bytes())
	if w.Code != 429 || w.Header().Get("Retry-After") != "8" || w.Header().Get("Retry-After-Ms") != "7500" || w.Header().Get("X-Ratelimit-Reset-Requests") != "1m0s" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if at(v, "error", "code") != "rate_limit_exceeded" || at(v, "error", "type") != "requests" ||
		!strings.Contains(at(v, "error", "message").(string), "requests per min (RPM): Limit 8, Used 8, Requested 1. Please try again in 7.5s.") {
		t.Errorf("%s", w.Body)
	}
}

func TestOpenAIStream(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai"})
	whole := decoded(t, send(s, "POST", "/v1/chat/completions", plainMessage).Body.Bytes())
	for _, withUsage := range []bool{false, true} {
		body := streamMessage
		if withUsage {
			body = strings.Replace(body, "{", `{"stream_options":{"include_usage":true},`, 1)
		}
		all := events(t, send(s, "POST", "/v1/chat/completions", body).Body.Bytes())
		last := len(all) - 1
		if all[last].data != "[DONE]" {
			t.Fatalf("it ends with %q", all[last].data)
		}
		text, finish := "", any(nil)
		for i, e := range all[:last] {
			v := decoded(t, []byte(e.data))
			if at(v, "object") != "chat.completion.chunk" || at(v, "id") != at(whole, "id") {
				t.Errorf("%s", e.data)
			}
			usage, there := v["usage"]
			if there != withUsage || (usage != nil) != (withUsage && i == last-1) {
				t.Errorf("usage in %s", e.data)
			}
			if usage != nil && (at(v, "usage", "completion_tokens") != at(whole, "usage", "completion_tokens") || len(at(v, "choices").([]any)) != 0) {
				t.Errorf("%s", e.data)
			}
			part, _ := at(v, "choices", 0, "delta", "content").(string)
			text += part
			if f := at(v, "choices", 0, "finish_reason"); f != nil {
				finish = f
			}
		}
		if text != at(whole, "choices", 0, "message", "content") || finish != at(whole, "choices", 0, "finish_reason") {
			t.Errorf("%q, %v", text, finish)
		}
	}
}

func TestOpenAITools(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai"})
	const tools = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"properties":{"city":{"type":"string"}}}}},{"type":"function","function":{"name":"second"}}]`
	for _, c := range []struct{ extra, say, want string }{
		{"", "use the tool", "weather"}, {"", "hi", ""}, {`,"tool_choice":"required"`, "hi", "weather"}, {`,"tool_choice":"none"`, "use the tool", ""},
		{`,"tool_choice":{"type":"function","function":{"name":"second"}}`, "hi", "second"},
	} {
		body := `{"model":"m",` + tools + c.extra + `,"messages":[{"role":"user","content":"` + c.say + `"}]}`
		v := decoded(t, send(s, "POST", "/v1/chat/completions", body).Body.Bytes())
		if c.want == "" {
			if at(v, "choices", 0, "message", "tool_calls") != nil {
				t.Errorf("%+v: %v", c, v)
			}
			continue
		}
		if at(v, "choices", 0, "finish_reason") != "tool_calls" || at(v, "choices", 0, "message", "tool_calls", 0, "function", "name") != c.want {
			t.Errorf("%+v: %v", c, v)
		}
		args := ""
		for _, e := range events(t, send(s, "POST", "/v1/chat/completions", strings.Replace(body, "{", `{"stream":true,`, 1)).Body.Bytes()) {
			if e.data != "[DONE]" {
				part, _ := at(decoded(t, []byte(e.data)), "choices", 0, "delta", "tool_calls", 0, "function", "arguments").(string)
				args += part
			}
		}
		if args != at(v, "choices", 0, "message", "tool_calls", 0, "function", "arguments") {
			t.Errorf("the stream has %s", args)
		}
	}
}

func TestOpenAIResponses(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai"})
	for _, c := range []struct{ body, item, status string }{
		{`{"model":"m","input":"hi"}`, "message", "completed"},
		{`{"model":"m","instructions":"brief","max_output_tokens":3,"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}`, "message", "incomplete"},
		{`{"model":"m","input":"use the tool","tools":[{"type":"function","name":"weather","parameters":{"properties":{"city":{"type":"string"}}}}]}`, "function_call", "completed"},
	} {
		v := decoded(t, send(s, "POST", "/v1/responses", c.body).Body.Bytes())
		if at(v, "object") != "response" || at(v, "status") != c.status || at(v, "output", 0, "type") != c.item || at(v, "usage", "total_tokens") == nil {
			t.Errorf("%v", v)
		}
		w := send(s, "POST", "/v1/responses", strings.Replace(c.body, "{", `{"stream":true,`, 1))
		all := events(t, w.Body.Bytes())
		text := ""
		for i, e := range all {
			one := decoded(t, []byte(e.data))
			if at(one, "type") != e.name || at(one, "sequence_number") != float64(i) {
				t.Errorf("%d: %+v", i, e)
			}
			part, _ := at(one, "delta").(string)
			text += part
		}
		last := decoded(t, []byte(all[len(all)-1].data))
		if !strings.HasPrefix(names(all), "response.created response.in_progress response.output_item.added") || all[len(all)-1].name != "response."+c.status ||
			at(last, "response", "usage", "output_tokens") != at(v, "usage", "output_tokens") {
			t.Errorf("%s", names(all))
		}
		said := at(v, "output", 0, "content", 0, "text")
		if c.item == "function_call" {
			said = at(v, "output", 0, "arguments")
		}
		if text != said {
			t.Errorf("the stream says %q, the response %q", text, said)
		}
	}
}

func TestOpenAIOtherPaths(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai"})
	for _, c := range []struct {
		method, path, body string
		want               int
		has                string
	}{
		{"GET", "/v1/models", "", 200, `"object":"list"`}, {"GET", "/v1/models/gpt-5.4", "", 200, `"id":"gpt-5.4"`}, {"GET", "/v1/models/x", "", 404, "does not exist"},
		{"GET", "/v1/responses", "", 405, "invalid_request_error"}, {"POST", "/v2", "", 404, "invalid_request_error"},
		{"POST", "/v1/chat/completions", "{", 400, "parse the JSON"}, {"POST", "/v1/chat/completions", "{}", 400, "model"},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":1}`, 400, "messages"}, {"POST", "/v1/chat/completions", `{"model":"m","messages":[{}],"tools":1}`, 400, "tools"},
		{"POST", "/v1/responses", `{}`, 400, "model"}, {"POST", "/v1/responses", `{"model":"m","input":5}`, 400, "input"}, {"POST", "/v1/responses", `{"model":"m","input":"x","tools":5}`, 400, "tools"},
	} {
		w := send(s, c.method, c.path, c.body)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
}
