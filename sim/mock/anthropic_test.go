package mock_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/sim/mock"
)

func TestAnthropicMessage(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic", Requests: perMinute(10), InputTokens: perMinute(50_000), OutputTokens: perMinute(8_000), Now: newClock().Now})
	w := send(s, "POST", "/v1/messages?beta=true", `{"model":"claude-x","max_tokens":4,"system":"be brief","messages":[{"role":"user","content":"hi"}]}`)
	v := decoded(t, w.Body.Bytes())
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{"type"}, "message"}, {[]any{"role"}, "assistant"}, {[]any{"model"}, "claude-x"}, {[]any{"content", 0, "type"}, "text"},
		{[]any{"stop_reason"}, "max_tokens"}, {[]any{"stop_sequence"}, nil},
		{[]any{"usage", "input_tokens"}, 11.0}, // 32 bytes of messages and 10 of system
		{[]any{"usage", "output_tokens"}, 4.0}, {[]any{"usage", "cache_read_input_tokens"}, 0.0}, {[]any{"usage", "cache_creation_input_tokens"}, 0.0},
	} {
		if got := at(v, c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	if text := at(v, "content", 0, "text").(string); len(strings.Fields(text)) != 4 || !strings.HasPrefix(at(v, "id").(string), "msg_") {
		t.Errorf("%s", w.Body)
	}
	for name, want := range map[string]string{
		"Anthropic-Ratelimit-Requests-Limit": "10", "Anthropic-Ratelimit-Requests-Remaining": "9", "Anthropic-Ratelimit-Requests-Reset": "2026-01-01T00:00:06Z",
		"Anthropic-Ratelimit-Input-Tokens-Limit": "50000", "Anthropic-Ratelimit-Input-Tokens-Remaining": "50000", "Anthropic-Ratelimit-Input-Tokens-Reset": "2026-01-01T00:00:01Z",
		"Anthropic-Ratelimit-Output-Tokens-Limit": "8000", "Anthropic-Ratelimit-Output-Tokens-Remaining": "8000",
		"Anthropic-Ratelimit-Tokens-Limit": "58000", "Anthropic-Ratelimit-Tokens-Remaining": "58000", "Content-Type": "application/json",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if id := w.Header().Get("Request-Id"); !strings.HasPrefix(id, "req_") {
		t.Errorf("request id %q", id)
	}
}

func TestAnthropicRefusal(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic", Requests: perMinute(1), Now: newClock().Now})
	send(s, "POST", "/v1/messages", plainMessage)
	w := send(s, "POST", "/v1/messages", plainMessage)
	v := decoded(t, w.Body.Bytes())
	if w.Code != 429 || w.Header().Get("Retry-After") != "60" || w.Header().Get("Anthropic-Ratelimit-Requests-Remaining") != "0" || w.Header().Get("X-Should-Retry") != "true" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if at(v, "type") != "error" || at(v, "error", "type") != "rate_limit_error" || at(v, "request_id") != w.Header().Get("Request-Id") ||
		!strings.Contains(at(v, "error", "message").(string), "1 requests per minute") {
		t.Errorf("%s", w.Body)
	}
}

func TestAnthropicStream(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic"})
	whole := decoded(t, send(s, "POST", "/v1/messages", plainMessage).Body.Bytes())
	w := send(s, "POST", "/v1/messages", streamMessage)
	all := events(t, w.Body.Bytes())
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || !strings.HasPrefix(names(all), "message_start content_block_start ping content_block_delta") ||
		!strings.HasSuffix(names(all), "content_block_delta content_block_stop message_delta message_stop") {
		t.Errorf("%s", names(all))
	}
	text := ""
	for _, e := range all {
		v := decoded(t, []byte(e.data))
		if at(v, "type") != e.name {
			t.Errorf("%+v", e)
		}
		if part, ok := at(v, "delta", "text").(string); ok {
			text += part
		}
		switch e.name {
		case "message_start":
			if at(v, "message", "id") != at(whole, "id") || at(v, "message", "usage", "input_tokens") != at(whole, "usage", "input_tokens") || at(v, "message", "usage", "output_tokens") != 1.0 {
				t.Errorf("%s", e.data)
			}
		case "message_delta":
			if at(v, "usage", "output_tokens") != at(whole, "usage", "output_tokens") || at(v, "delta", "stop_reason") != at(whole, "stop_reason") {
				t.Errorf("%s", e.data)
			}
		}
	}
	if text != at(whole, "content", 0, "text") {
		t.Errorf("the stream says %q, the message %q", text, at(whole, "content", 0, "text"))
	}
	if u := s.Stats().Ledger["m"]; u.Requests != 2 || float64(u.OutputTokens) != 2*at(whole, "usage", "output_tokens").(float64) {
		t.Errorf("%+v", u)
	}
}

const anthropicTools = `"tools":[{"name":"weather","input_schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["C","F"]},"ok":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"}}}},{"name":"second"}]`

func TestAnthropicTools(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic"})
	for _, c := range []struct{ extra, say, want string }{
		{"", "Please use the tool.", "weather"}, {"", "hi", ""}, {`,"tool_choice":{"type":"any"}`, "hi", "weather"},
		{`,"tool_choice":{"type":"tool","name":"second"}`, "hi", "second"}, {`,"tool_choice":{"type":"none"}`, "use the tool", ""},
	} {
		body := `{"model":"m","max_tokens":100,` + anthropicTools + c.extra + `,"messages":[{"role":"user","content":[{"type":"text","text":"` + c.say + `"}]}]}`
		v := decoded(t, send(s, "POST", "/v1/messages", body).Body.Bytes())
		if c.want == "" {
			if at(v, "stop_reason") != "end_turn" && at(v, "stop_reason") != "max_tokens" {
				t.Errorf("%+v: %v", c, v)
			}
			continue
		}
		if at(v, "stop_reason") != "tool_use" || at(v, "content", 0, "name") != c.want {
			t.Errorf("%+v: %v", c, v)
		}
		args := at(v, "content", 0, "input").(map[string]any)
		if c.want == "weather" && (args["unit"] != "C" || args["ok"] != true || args["city"] == "" || len(args) != 6) {
			t.Errorf("%v", args)
		}
		// The stream has the same content.
		json := ""
		for _, e := range events(t, send(s, "POST", "/v1/messages", strings.Replace(body, "{", `{"stream":true,`, 1)).Body.Bytes()) {
			if part, ok := at(decoded(t, []byte(e.data)), "delta", "partial_json").(string); ok {
				json += part
			}
		}
		if got := decoded(t, []byte(json)); len(got) != len(args) || got["city"] != args["city"] {
			t.Errorf("the stream has %s, the message %v", json, args)
		}
	}
	// A system turn after the user's turn changes nothing.
	behind := `{"model":"m","max_tokens":100,` + anthropicTools + `,"messages":[{"role":"user","content":"use the tool"},{"role":"system","content":"instructions"}]}`
	if v := decoded(t, send(s, "POST", "/v1/messages", behind).Body.Bytes()); at(v, "stop_reason") != "tool_use" {
		t.Errorf("with a turn of the system's: %v", v)
	}
	// After the result of a tool comes text.
	v := decoded(t, send(s, "POST", "/v1/messages", `{"model":"m","max_tokens":100,`+anthropicTools+`,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"use the tool"}]}]}`).Body.Bytes())
	if at(v, "content", 0, "type") != "text" {
		t.Errorf("%v", v)
	}
}

func TestAnthropicOtherPaths(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic", Requests: perMinute(1), Now: newClock().Now})
	for _, c := range []struct {
		method, path, body string
		want               int
		has                string
	}{
		{"HEAD", "/", "", 200, ""},
		{"GET", "/v1/models", "", 200, `"data":[{"type":"model"`},
		{"GET", "/v1/models/claude-haiku-4-5", "", 200, `"id":"claude-haiku-4-5"`},
		{"GET", "/v1/models/none", "", 404, `"type":"not_found_error"`},
		{"POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, 200, `{"input_tokens":8}`},
		{"POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, 429, "rate_limit_error"},
		{"POST", "/v1/messages", plainMessage, 200, `"type":"message"`}, // it has a separate limit
		{"GET", "/v1/messages", "", 405, "invalid_request_error"},
		{"POST", "/v1/other", "", 404, "not_found_error"},
		{"POST", "/v1/messages", `{`, 400, "not valid JSON"},
		{"POST", "/v1/messages", `{}`, 400, "model: Field required"},
		{"POST", "/v1/messages", `{"model":"m"}`, 400, "max_tokens: Field required"},
		{"POST", "/v1/messages", `{"model":"m","max_tokens":0}`, 400, "max_tokens"},
		{"POST", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[]}`, 400, "messages"},
		{"POST", "/v1/messages", `{"model":"m","max_tokens":1,"messages":[{}],"tools":7}`, 400, "tools"},
		{"POST", "/v1/messages", strings.Repeat(" ", 33<<20), 413, "request_too_large"},
	} {
		w := send(s, c.method, c.path, c.body)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s %.40s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	if st := s.Stats(); st.Accepted != 2 || st.Throttled != 1 || st.Free != 4 || st.WorstWindow != 1 {
		t.Errorf("%+v", st)
	}
}
