package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/provider"
)

// live is a reader for a connection.
func live(t *testing.T, dialect, path, query string) provider.Live {
	t.Helper()
	d, _ := provider.Lookup(dialect)
	l := d.(interface {
		Live(*provider.Call) provider.Live
	}).Live(&provider.Call{Method: "GET", Path: path, Query: query})
	return l
}

const bidi = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"

func TestLiveConnectionsThatAreKnown(t *testing.T) {
	for _, c := range []struct {
		dialect, path string
		known         bool
	}{
		{"openai", "/v1/realtime", true}, {"openai", "/v1/responses", true}, {"openai", "/v1/responses/", true}, {"xai", "/v1/responses", true},
		{"azure", "/openai/v1/realtime", true}, {"gemini", bidi, true},
		{"openai", "/v1/chat/completions", false}, {"openai", "/v1/realtime/sessions", false}, {"slack", "/realtime", false}, {"gemini", "/v1beta/models/x:generateContent", false},
	} {
		if got := live(t, c.dialect, c.path, "") != nil; got != c.known {
			t.Errorf("%s %s: %v", c.dialect, c.path, got)
		}
	}
}

func TestLiveModel(t *testing.T) {
	l := live(t, "openai", "/v1/realtime", "model=gpt-realtime-2026-01-02")
	if a := l.Asked(); a.Model != "gpt-realtime-2026-01-02" || a.Part != "gpt-realtime" || !a.Tokens || a.Reserved {
		t.Errorf("%+v", a)
	}
	l.Told([]byte(`{"type":"session.created","session":{"model":"other"}}`))
	if a := l.Asked(); a.Model != "gpt-realtime-2026-01-02" {
		t.Errorf("%+v", a) // the address says which
	}
	for query, want := range map[string]string{"x=1&model=a%2Fb": "a/b", "model=a+b": "a b", "model=%": "", "xmodel=a": "", "deployment=d": "d", "": ""} {
		if a := live(t, "openai", "/v1/realtime", query).Asked(); a.Model != want {
			t.Errorf("%q: %q", query, a.Model)
		}
	}
	l = live(t, "openai", "/v1/realtime", "intent=x")
	l.Told([]byte(`{"type":"session.created","session":{"type":"realtime","model":"gpt-realtime"}}`))
	l.Said([]byte(`{"type":"session.update","session":{"max_output_tokens":77}}`))
	if c := l.Said([]byte(`{"type":"response.create"}`)); !c.Starts || c.Asked.Model != "gpt-realtime" || c.Asked.MaxOutput != 77 {
		t.Errorf("%+v %+v", c, c.Asked)
	}
	if c := l.Said([]byte(`{"type":"response.create","response":{"max_output_tokens":5}}`)); c.Asked.MaxOutput != 5 {
		t.Errorf("%+v", c.Asked)
	}
	l = live(t, "gemini", bidi, "key=secret")
	l.Said([]byte(`{"setup":{"model":"models/gemini-live","generationConfig":{"maxOutputTokens":9}}}`))
	if a := l.Asked(); a.Model != "models/gemini-live" || a.Part != "gemini-live" || a.MaxOutput != 9 {
		t.Errorf("%+v", a)
	}
}

// The text of a conversation grows with its messages, but hardly with its audio.
func TestLiveText(t *testing.T) {
	l := live(t, "openai", "/v1/realtime", "model=m")
	l.Said([]byte(`{"type":"conversation.item.create","item":{"text":"` + strings.Repeat("word ", 1000) + `"}}`))
	before := l.Asked().Text
	l.Said([]byte(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 16000) + `"}`)) // one second
	if after := l.Asked().Text; before < 5000 || after <= before || after > before+200 {
		t.Errorf("%d, then %d", before, after)
	}
}

// deepLive asks for a response after more levels than are read.
var deepLive = `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,"type":"response.create"}`

func TestLiveClientMessages(t *testing.T) {
	for text, want := range map[string]provider.LiveCall{
		`{"type":"response.create","event_id":"e","stream_id":"s","model":"m"}`: {Starts: true, ID: "e", Stream: "s"},
		`{"type":"response.cancel","response_id":"r"}`:                          {Cancels: true, Response: "r"},
		`{"event_id":"e","type":"session.update","session":{}}`:                 {ID: "e"},
		`{"type":"response.createx"}`:                                           {},
		`not JSON {"type":"response.create"}`:                                   {Unread: true},
		`{"x":{"type":"response.create"}}`:                                      {},
		``:                                                                      {},
		"\x00\xff":                                                              {Unread: true},
		`{"Type":"response.create"}`:                                            {Starts: true},
		`{"type":"response.create","type":"response.cancel"}`:                   {Unread: true},
		`{"type":"response.create"} {"type":"response.cancel"}`:                 {Unread: true},
		`{"type":"response.create"`:                                             {Unread: true},
		deepLive:                                                                {Unread: true},
	} {
		if got := live(t, "openai", "/v1/responses", "").Said([]byte(text)); got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for text, want := range map[string]bool{
		`{"setup":{"model":"m"}}`:                                              false,
		`{"clientContent":{"turns":[]}}`:                                       false,
		`{"clientContent":{"turnComplete":false}}`:                             false,
		`{"clientContent":{"turnComplete":true}}`:                              true,
		`{"client_content":{"turn_complete":true}}`:                            true,
		`{"clientContent":{"turnComplete":true,"turnComplete":false}}`:         true,
		`{"realtimeInput":{"audio":{"data":"AAAA"}}}`:                          false,
		`{"realtimeInput":{"text":"hello"}}`:                                   true,
		`{"realtimeInput":{"activityStart":{}}}`:                               false,
		`{"realtimeInput":{"activityEnd":{}}}`:                                 true,
		`{"toolResponse":{"functionResponses":[{}]}}`:                          true,
		`{"toolResponse":{}}`:                                                  true,
		`{"x":{"clientContent":{"turnComplete":true}}}`:                        false,
		`{"realtimeInput":{"audio":{}},"clientContent":{"turnComplete":true}}`: true,
		`{"setup":{"model":"m"},"toolResponse":{}}`:                            true,
	} {
		if got := live(t, "gemini", bidi, "").Said([]byte(text)); got.Starts != want || want && got.Asked == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestLiveProviderMessages(t *testing.T) {
	l := live(t, "openai", "/v1/realtime", "model=m")
	for text, want := range map[string]provider.LiveEvent{
		`{"type":"response.created","response":{"id":"r"}}`:                                   {About: true, Begins: true, Response: "r"},
		`{"type":"response.output_text.delta","response_id":"r","delta":"x"}`:                 {About: true, Response: "r"},
		`{"type":"response.done","response":{"id":"r","status":"completed","usage":{"x":1}}}`: {About: true, Ends: true, Response: "r", Usage: true},
		`{"type":"response.done","response":{"status":"failed","id":"r","status_details":{"error":{"code":"rate_limit_exceeded"}}}}`: {
			About: true, Ends: true, Response: "r", Failed: true, Status: 429},
		`{"type":"conversation.item.input_audio_transcription.completed","usage":{"total_tokens":9}}`: {},
	} {
		if got := l.Told([]byte(text)); got.About != want.About || got.Begins != want.Begins || got.Ends != want.Ends || got.Response != want.Response ||
			got.Failed != want.Failed || got.Status != want.Status || got.Usage != want.Usage {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if e := l.Told([]byte(`{"type":"error","error":{"type":"invalid_request_error","code":"x","event_id":"mine"}}`)); !e.Failed || e.For != "mine" || e.Status != 400 || e.Ends {
		t.Errorf("%+v", e)
	}
	e := live(t, "openai", "/v1/responses", "").Told([]byte(`{"type":"error","status":429,"error":{"type":"usage_limit_reached"},"headers":{"retry-after":7,"X-Codex-Primary-Used-Percent":"100.0"}}`))
	if !e.Failed || !e.Ends || e.Status != 429 || e.Header["retry-after"][0] != "7" || e.Header["X-Codex-Primary-Used-Percent"][0] != "100.0" {
		t.Errorf("%+v", e)
	}
	e = l.Told([]byte(`{"type":"rate_limits.updated","rate_limits":[{"name":"requests","limit":1000,"remaining":999,"reset_seconds":0.06},{"name":"tokens","limit":50000,"remaining":49950,"reset_seconds":1e99},{"name":"x","limit":1}]}`))
	if h := e.Header; len(h) != 5 || h["x-ratelimit-limit-requests"][0] != "1000" || h["x-ratelimit-reset-requests"][0] != "60ms" || h["x-ratelimit-remaining-tokens"][0] != "49950" {
		t.Errorf("%+v", h)
	}
	e = l.Told([]byte(`{"type":"codex.rate_limits","rate_limits":{"allowed":true,"primary":{"used_percent":42.5,"window_minutes":300,"reset_at":1790256000},"secondary":null}}`))
	if h := e.Header; len(h) != 3 || h["x-codex-primary-used-percent"][0] != "42.5" {
		t.Errorf("%+v", h)
	}
	g := live(t, "gemini", bidi, "")
	if e := g.Told([]byte(`{"usageMetadata":{"promptTokenCount":1},"serverContent":{"turnComplete":true}}`)); !e.About || !e.Ends || !e.Usage {
		t.Errorf("%+v", e)
	}
	if e := g.Told([]byte(`{"setupComplete":{}}`)); e.About {
		t.Errorf("%+v", e)
	}
	if e := g.Told([]byte(`{"toolCall":{"functionCalls":[]}}`)); !e.About || e.Ends {
		t.Errorf("%+v", e)
	}
	if status, body := g.Closed("You exceeded your current quota, please check your plan"); status != 429 || len(body) == 0 {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := g.Closed("deadline expired"); status != 0 {
		t.Errorf("%d", status)
	}
}

// The usage of a response is read in every format.
func TestLiveUsage(t *testing.T) {
	for _, c := range []struct {
		dialect, text string
		want          provider.Usage
	}{
		{"openai", `{"type":"response.done","response":{"id":"r","status":"completed","usage":{"total_tokens":253,"input_tokens":132,"output_tokens":121,"input_token_details":{"text_tokens":119,"audio_tokens":13,"cached_tokens":64,"cached_tokens_details":{"text_tokens":64,"audio_tokens":0}},"output_token_details":{"text_tokens":30,"audio_tokens":91}}}}`,
			provider.Usage{Input: 68, CacheRead: 64, Output: 121, Known: true, Final: true}},
		{"gemini", `{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":522,"responseTokenCount":42,"totalTokenCount":564,"thoughtsTokenCount":136,"responseTokensDetails":[{"modality":"AUDIO","tokenCount":42}]}}`,
			provider.Usage{Input: 522, Output: 178, Known: true, Final: true}},
	} {
		d, _ := provider.Lookup(c.dialect)
		u := d.(provider.Speaker).Usage(&provider.ParsedRequest{Tokens: true}, "application/x-ndjson")
		u.Write([]byte(c.text + "\n"))
		if got := u.Usage(); got != c.want {
			t.Errorf("%s: %+v", c.dialect, got)
		}
	}
	d, _ := provider.Lookup("openai")
	u := d.(provider.Speaker).Usage(&provider.ParsedRequest{Tokens: true}, "application/x-ndjson")
	u.Write([]byte(`{"type":"response.done","response":{"status":"failed","status_details":{"type":"failed","error":{"type":"tokens","code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 7.5s."}},"usage":null}}` + "\n"))
	if f := u.Failed(); f.Verdict.String() != "throttled" || f.RetryAfter != 7500*time.Millisecond {
		t.Errorf("%+v", f)
	}
}

// A refusal is an event that clients of the API understand.
func TestLiveRefuse(t *testing.T) {
	l := live(t, "openai", "/v1/responses", "")
	text := string(l.Refuse(&provider.LiveCall{ID: "mine", Stream: "s"}, 429, `sluice: "no"`, 90*time.Second))
	for _, part := range []string{`"type":"error"`, `"status":429`, `"code":"rate_limit_exceeded"`, `"event_id":"mine"`, `"stream_id":"s"`, `"retry-after":"90"`, `sluice: \"no\"`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}
