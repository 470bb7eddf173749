package provider

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	"pgregory.net/rapid"
)

func call(method, path, body string) *Call {
	return &Call{Method: method, Path: path, Body: []byte(body), Whole: true, Size: int64(len(body))}
}

// deepCall names its model after more levels than are read.
var deepCall = `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,"model":"m"}`

func TestAsk(t *testing.T) {
	const chat = `{"model":"gpt-5.4-2026-03-05","messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct {
		provider, method, path, body string
		want                         ParsedRequest // Text is that of the body, if it costs tokens
	}{
		{"anthropic", "POST", "/v1/messages", `{"max_tokens":64000,"model":"claude-opus-4-6-20260205","stream":true,"messages":[]}`,
			ParsedRequest{Model: "claude-opus-4-6-20260205", Part: "opus-4", Tokens: true, MaxOutput: 64000, Stream: true}},
		{"anthropic", "POST", "/v1/messages", `{"model":"claude-sonnet-5-5","max_tokens":10,"messages":[{"role":"user","content":"{\"model\":\"x\",\"stream\":true}"}],"metadata":{"model":"y"}}`,
			ParsedRequest{Model: "claude-sonnet-5-5", Part: "sonnet-5-5", Tokens: true, MaxOutput: 10}},
		{"anthropic", "POST", "/v1/messages", `{"mod\u0065l":"claude-haiku-4-5","stream":false}`, ParsedRequest{Model: "claude-haiku-4-5", Part: "haiku-4-5", Tokens: true}},
		{"anthropic", "POST", "/v1/messages", "\xef\xbb\xbf{\"model\":\"claude-haiku-4-5\"}", ParsedRequest{Model: "claude-haiku-4-5", Part: "haiku-4-5", Tokens: true}},
		{"anthropic", "POST", "/v1/messages", `not json`, ParsedRequest{Tokens: true, Unread: true}},
		{"anthropic", "POST", "/v1/messages", `{"max_tokens":5}`, ParsedRequest{Tokens: true, MaxOutput: 5}},
		{"anthropic", "POST", "/v1/messages", ``, ParsedRequest{Tokens: true}},
		{"anthropic", "POST", "/v1/messages", `{"model":"a","model":"b"}`, ParsedRequest{Model: "b", Part: "b", Tokens: true, Unread: true}},
		{"anthropic", "POST", "/v1/messages", `{"Model":"a"}`, ParsedRequest{Model: "a", Part: "a", Tokens: true}},
		{"mistral", "POST", "/v1/chat/completions", `{"model":"a","x":NaN,"y":-Infinity,"generationConfig":{"model":"b"}}`, ParsedRequest{Model: "a", Part: "a", Tokens: true}},
		{"mistral", "POST", "/v1/chat/completions", deepCall, ParsedRequest{Tokens: true, Unread: true}},
		{"mistral", "POST", "/v1/audio/transcriptions", "--boundary\r\n", ParsedRequest{}},
		{"anthropic", "POST", "/v1/messages/batches", `not json`, ParsedRequest{Part: "batches"}},
		{"anthropic", "POST", "/v1/messages/count_tokens", `{"model":"claude-opus-5"}`, ParsedRequest{Model: "claude-opus-5", Part: "count_tokens"}},
		{"anthropic", "POST", "/v1/messages/batches", `{"requests":[]}`, ParsedRequest{Part: "batches"}},
		{"anthropic", "GET", "/v1/messages/batches/msgbatch_1/results", "", ParsedRequest{Part: "batches"}},
		{"anthropic", "GET", "/v1/models", "", ParsedRequest{Free: true, Keyed: true}},
		{"anthropic", "OPTIONS", "/v1/messages", "", ParsedRequest{Free: true, Keyed: true}},
		{"anthropic", "POST", "/api/event_logging/batch", `{"model":"claude-opus-5","events":[]}`, ParsedRequest{Free: true}},
		{"anthropic", "POST", "/api/claude_code/metrics", `not json`, ParsedRequest{Free: true}},
		{"anthropic", "POST", "/v1/oauth/token", `{"grant_type":"refresh_token"}`, ParsedRequest{Free: true}},
		{"anthropic", "GET", "/v1/organizations/usage_report/messages", "", ParsedRequest{Free: true}},
		{"anthropic", "POST", "/v1/rgstr", `{"events":[{"model":"x"}]}`, ParsedRequest{Free: true}},
		{"anthropic", "POST", "/v1/complete", `{"model":"a"}`, ParsedRequest{Model: "a", Part: "a"}},
		{"anthropic", "POST", "/v1/messages/batches/b/cancel", "", ParsedRequest{Part: "batches"}},
		{"anthropic", "DELETE", "/v1/messages/batches/b", "", ParsedRequest{Part: "batches"}},
		{"anthropic", "POST", "/apis", `{"model":"a"}`, ParsedRequest{Model: "a", Part: "a"}},
		{"openai", "POST", "/v1/audio/transcriptions", "--boundary\r\n", ParsedRequest{}},
		{"openai", "POST", "/v1/realtime/calls", "v=0", ParsedRequest{}},
		{"openai", "POST", "/v1/threads/t/runs", `{"assistant_id":"a"}`, ParsedRequest{}},
		{"openai", "POST", "/v1/traces/ingest", `{"data":[]}`, ParsedRequest{Free: true}},
		{"openai", "POST", "/v1/files", "--boundary\r\n", ParsedRequest{Free: true, Keyed: true}},
		{"openai", "DELETE", "/v1/models/ft:a", "", ParsedRequest{Free: true, Keyed: true}},
		{"gemini", "GET", "/v1beta/models", "", ParsedRequest{Free: true, Keyed: true}},
		{"gemini", "POST", "/v1beta/models/veo:predictLongRunning", `{}`, ParsedRequest{Model: "veo", Part: "veo"}},
		{"openrouter", "GET", "/api/v1/key", "", ParsedRequest{Free: true, Keyed: true}},
		{"deepseek", "GET", "/user/balance", "", ParsedRequest{Free: true}},
		{"cohere", "POST", "/v1/chat", `{"message":"hi","stream":true}`, ParsedRequest{Tokens: true, Stream: true}},
		{"cohere", "POST", "/v1/embed", `{"model":"embed-v4.0","texts":["a"]}`, ParsedRequest{Model: "embed-v4.0", Part: "embed-v4.0", Tokens: true}},
		{"cohere", "POST", "/v2/rerank", `{"model":"rerank-v4.0","query":"a","documents":[]}`, ParsedRequest{Model: "rerank-v4.0", Part: "rerank-v4.0", Tokens: true}},
		{"stripe", "GET", "/v1/charges", "", ParsedRequest{Part: "charges"}},
		{"anthropic", "HEAD", "/", "", ParsedRequest{Free: true}},
		{"openai", "POST", "/v1/chat/completions", chat + `,"max_completion_tokens":500,"n":3}`,
			ParsedRequest{Model: "gpt-5.4-2026-03-05", Part: "gpt-5.4", Tokens: true, MaxOutput: 1500, Reserved: true, Larger: true}},
		{"openai", "POST", "/v1/chat/completions", chat + `,"stream":true}`, ParsedRequest{Model: "gpt-5.4-2026-03-05", Part: "gpt-5.4", Tokens: true, Stream: true, Hidden: true, Reserved: true, Larger: true}},
		{"openai", "POST", "/v1/chat/completions", chat + `,"stream":true,"stream_options":{"include_usage":true}}`, ParsedRequest{Model: "gpt-5.4-2026-03-05", Part: "gpt-5.4", Tokens: true, Stream: true, Reserved: true, Larger: true}},
		{"openai", "POST", "/v1/chat/completions", chat + `,"stream":true,"stream_options":{"include_usage":false}}`, ParsedRequest{Model: "gpt-5.4-2026-03-05", Part: "gpt-5.4", Tokens: true, Stream: true, Hidden: true, Reserved: true, Larger: true}},
		{"openai", "POST", "/v1/responses", `{"model":"gpt-6.1-sol","input":"hi","stream":true,"max_output_tokens":9}`, ParsedRequest{Model: "gpt-6.1-sol", Part: "gpt-6.1-sol", Tokens: true, MaxOutput: 9, Stream: true, Reserved: true, Larger: true}},
		{"openai", "POST", "/v1/embeddings", `{"model":"text-embedding-3-small","input":["a"]}`, ParsedRequest{Model: "text-embedding-3-small", Part: "text-embedding-3-small", Tokens: true, Reserved: true, Larger: true}},
		{"openai", "POST", "/v1/threads/t/messages", `{"role":"user","content":"hi"}`, ParsedRequest{Free: true, Keyed: true}},
		{"openai", "GET", "/v1/responses/resp_1", "", ParsedRequest{Free: true, Keyed: true}},
		{"azure", "POST", "/openai/deployments/my-gpt/chat/completions", `{"messages":[],"max_tokens":7}`, ParsedRequest{Model: "my-gpt", Part: "my-gpt", Tokens: true, MaxOutput: 7, Reserved: true}},
		{"groq", "POST", "/openai/v1/chat/completions", `{"model":"llama-3.3-70b-versatile","stream":true}`, ParsedRequest{Model: "llama-3.3-70b-versatile", Part: "llama-3.3-70b-versatile", Tokens: true, Stream: true}},
		{"gemini", "POST", "/v1beta/models/gemini-3.8-flash:generateContent", `{"contents":[],"generationConfig":{"maxOutputTokens":100,"candidateCount":2}}`, ParsedRequest{Model: "gemini-3.8-flash", Part: "gemini-3.8-flash", Tokens: true, MaxOutput: 200}},
		{"gemini", "POST", "/v1beta/models/gemini-3.8-flash:streamGenerateContent", `{}`, ParsedRequest{Model: "gemini-3.8-flash", Part: "gemini-3.8-flash", Tokens: true, Stream: true}},
		{"gemini", "POST", "/v1beta/models/gemini-3.8-flash:countTokens", `{}`, ParsedRequest{Model: "gemini-3.8-flash", Part: "count_tokens"}},
		{"gemini", "POST", "/v1beta/openai/chat/completions", `{"model":"models/gemini-3.8-flash"}`, ParsedRequest{Model: "models/gemini-3.8-flash", Part: "gemini-3.8-flash", Tokens: true}},
		{"openrouter", "POST", "/api/v1/chat/completions", `{"model":"z-ai/glm:free"}`, ParsedRequest{Model: "z-ai/glm:free", Part: "z-ai/glm:free", Tokens: true, Cost: []sluice.Amount{{Unit: "free", N: 1}}}},
		{"deepseek", "POST", "/anthropic/v1/messages", `{"model":"deepseek-v4-pro","max_tokens":5}`, ParsedRequest{Model: "deepseek-v4-pro", Part: "deepseek-v4-pro", Tokens: true, MaxOutput: 5}},
		{"bedrock", "POST", "/model/us.anthropic.claude-opus-5-5-v1%3A0/converse-stream", `{"inferenceConfig":{"maxTokens":512}}`,
			ParsedRequest{Model: "us.anthropic.claude-opus-5-5-v1:0", Part: "us.anthropic.claude-opus-5-5-v1:0", Tokens: true, MaxOutput: 512, Stream: true, Reserved: true}},
		{"generic", "POST", "/v1/chat/completions", chat + "}", ParsedRequest{}},
		{"slack", "POST", "/api/chat.postMessage", `{"channel":"C1"}`, ParsedRequest{Part: "chat.postMessage"}},
		{"stripe", "HEAD", "/v1/charges", "", ParsedRequest{Part: "charges"}},
		{"stripe", "POST", "/v1/charges/ch_1", "", ParsedRequest{Part: "charges"}},
		{"github", "POST", "/graphql", `{"query":"# mutation\n query A { mutation }"}`, ParsedRequest{Part: "graphql", Cost: []sluice.Amount{{Unit: "graphql", N: 1}, {Unit: "graphql_points", N: 1}}}},
		{"github", "POST", "/graphql", `{"variables":{"query":"query"},"query":"fragment F on X { a(b: \"}\") }\nmutation($i:I!) { close(i:$i) { id } }"}`, ParsedRequest{Part: "graphql", Cost: []sluice.Amount{{Unit: "graphql", N: 1}, {Unit: "graphql_points", N: 5}}}},
		{"github", "GET", "/rate_limit", "", ParsedRequest{Part: "core", Cost: []sluice.Amount{{Unit: "points", N: 1}}}},
	} {
		got := speaker(t, tt.provider).Ask(call(tt.method, tt.path, tt.body))
		if tt.want.Tokens {
			tt.want.Text = int64(len(tt.body))
		}
		got.Hold = nil // TestHold
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s %s %s\n%+v, want\n%+v", tt.provider, tt.path, tt.body, got, tt.want)
		}
	}
}

func TestPicturesAreNoText(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo+/=", 10000)
	for _, image := range []string{picture, "data:image/png;base64," + picture} {
		body := `{"model":"m","messages":[{"content":[{"data":"` + image + `"},{"text":"what is it?"}]}]}`
		if got := speaker(t, "anthropic").Ask(call("POST", "/v1/messages", body)).Text; got < blobText || got > blobText+200 {
			t.Errorf("a picture counts as %d", got)
		}
	}
	for _, text := range []string{strings.Repeat("so it goes ", 1000), strings.Repeat("これはペンです", 500), strings.Repeat(`a\nb`, 500)} {
		body := `{"model":"m","messages":"` + text + `"}`
		if got := speaker(t, "anthropic").Ask(call("POST", "/v1/messages", body)).Text; got != int64(len(body)) {
			t.Errorf("%.20s counts as %d of %d", text, got, len(body))
		}
	}
}

func TestAskOfThePartThatIsThere(t *testing.T) {
	body := `{"model":"claude-opus-5","max_tokens":5,"messages":[{"content":"` + strings.Repeat("so it goes ", 1000)
	c := &Call{Method: "POST", Path: "/v1/messages", Body: []byte(body), Size: 10 * int64(len(body))}
	if got := speaker(t, "anthropic").Ask(c); got.Model != "claude-opus-5" || got.MaxOutput != 5 || got.Text != 10*int64(len(body)) {
		t.Errorf("%+v", got)
	}
	c.Size = -1
	if got := speaker(t, "anthropic").Ask(c).Text; got != int64(len(body)) {
		t.Errorf("of a body of unknown length %d bytes are text", got)
	}
}

func TestAskOfMuchIsCheap(t *testing.T) {
	c := call("POST", "/v1/messages", `{"model":"m","messages":[`+strings.Repeat(`{"role":"user","content":"so it goes"},`, 1<<15)+`{}]}`)
	s := speaker(t, "anthropic")
	if allocs := testing.AllocsPerRun(3, func() { s.Ask(c) }); allocs > 20 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestAnthropicClasses(t *testing.T) {
	for model, want := range map[string]string{
		"claude-opus-4-1-20250805": "opus-4", "claude-opus-4-8": "opus-4", "claude-sonnet-4-5": "sonnet-4", "claude-sonnet-4-20250514": "sonnet-4", "claude-opus-5": "opus-5",
		"claude-opus-5-5-20261001": "opus-5-5", "claude-fable-5-1": "fable-5-1", "claude-haiku-4-5-20251001": "haiku-4-5", "claude-3-5-haiku-20241022": "haiku-3-5",
		"claude-3-7-sonnet-latest": "sonnet-3-7", "anthropic/claude-opus-4.6": "opus-4", "us.anthropic.claude-sonnet-4-5-20250929-v1:0": "sonnet-4", "claude-sonnet-4-5[1m]": "sonnet-4",
		"claude-opus-4-6@20260205": "opus-4", "something": "something", "": "",
	} {
		if got := anthropicClass("", model); got != want {
			t.Errorf("%s is limited as %q, want %q", model, got, want)
		}
	}
}

func TestRename(t *testing.T) {
	for _, tt := range []struct {
		provider, path, body, model string
		wantPath, wantBody          string // empty: it cannot
	}{
		{"anthropic", "/v1/messages", `{"model": "claude-opus-5", "messages":[{"model":"x"}]}`, "claude-haiku-4-5", "/v1/messages", `{"model": "claude-haiku-4-5", "messages":[{"model":"x"}]}`},
		{"openai", "/v1/responses", `{"input":"a","model":"a","model":"b"}`, `c"d`, "/v1/responses", `{"input":"a","model":"c\"d","model":"c\"d"}`},
		{"openai", "/v1/responses", `{"m\u006fdel":"a","input":"unfinished`, "b", "/v1/responses", `{"m\u006fdel":"b","input":"unfinished`},
		{"openai", "/v1/responses", `{"input":"a"}`, "b", "", ""},
		{"openai", "/v1/responses", `{"model":7}`, "b", "", ""},
		{"openai", "/v1/responses", `nonsense`, "b", "", ""},
		{"openai", "/v1/responses", `{"model":"a"}`, "new\nline", "", ""},
		{"gemini", "/v1beta/models/gemini-3.1-pro:streamGenerateContent", `{"contents":[]}`, "gemini-3.8-flash", "/v1beta/models/gemini-3.8-flash:streamGenerateContent", `{"contents":[]}`},
		{"gemini", "/v1beta/models/a:embedContent", `{"model":"models/a"}`, "b", "/v1beta/models/b:embedContent", `{"model":"models/b"}`},
		{"gemini", "/v1beta/models/a:batchEmbedContents", `{"requests":[{"model":"models/a"}]}`, "b", "", ""},
		{"azure", "/openai/deployments/a/chat/completions", `{}`, "b", "/openai/deployments/b/chat/completions", `{}`},
		{"generic", "/v1/messages", `{"model":"a"}`, "b", "", ""},
		{"github", "/graphql", `{"model":"a"}`, "b", "", ""},
	} {
		c := call("POST", tt.path, tt.body)
		path, body, ok := speaker(t, tt.provider).Rename(c, tt.model)
		if ok != (tt.wantPath != "") || ok && (path != tt.wantPath || string(body) != tt.wantBody) {
			t.Errorf("%s %s: %v, %s, %s", tt.path, tt.body, ok, path, body)
		}
		if string(c.Body) != tt.body || c.Path != tt.path {
			t.Errorf("%s: the call was changed", tt.body)
		}
	}
	signed := call("POST", "/model/a/converse", `{}`)
	signed.Header = map[string][]string{"authorization": {"AWS4-HMAC-SHA256 Credential=AKIA/1"}}
	if _, _, ok := speaker(t, "bedrock").Rename(signed, "b"); ok {
		t.Error("a call that is signed was changed")
	}
}

func TestAskUsage(t *testing.T) {
	o := speaker(t, "openai")
	for body, want := range map[string]string{
		`{"stream":true}`: `{"stream_options":{"include_usage":true},"stream":true}`,
		` { }`:            ` {"stream_options":{"include_usage":true} }`,
		`{"stream_options":{"include_usage":false,"a":1},"stream":true}`: `{"stream_options":{"a":1,"include_usage":true},"stream":true}`,
		`{"a":1,"stream_options":null}`:                                  `{"a":1,"stream_options":{"include_usage":true}}`,
		`{"stream":true,"messages":[`:                                    `{"stream":true,"messages":[`,
		`[]`:                                                             `[]`,
		``:                                                               ``,
	} {
		in := []byte(body)
		if got := o.AskUsage(in); string(got) != want || string(in) != body {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// For any body, AskUsage asks for usage and changes nothing else.
func TestAskUsageChangesNothingElse(t *testing.T) {
	o := speaker(t, "openai")
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOf(rapid.StringMatching(`[a-z"\\ é]{1,8}|stream_options`), rapid.SampledFrom([]any{"x", 1.5, nil, true, []any{"{"}, map[string]any{"include_usage": false, "b": "}"}})).Draw(t, "fields")
		body, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(o.AskUsage(body), &got); err != nil {
			t.Fatal(err)
		}
		options, _ := got["stream_options"].(map[string]any)
		if options["include_usage"] != true {
			t.Fatalf("%s asks for nothing", body)
		}
		delete(got, "stream_options")
		delete(fields, "stream_options")
		if !reflect.DeepEqual(got, fields) {
			t.Fatalf("%v, want %v", got, fields)
		}
	})
}

func TestOnlyUsage(t *testing.T) {
	o := speaker(t, "openai")
	for data, want := range map[string]bool{
		`{"id":"a","choices":[],"usage":{"prompt_tokens":1}}`:    true,
		` {"choices" : [ ] , "usage": {}}`:                       true,
		`{"choices":[],"usage":null}`:                            false,
		`{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}`: false,
		`{"choices":[]}`:              false,
		`[DONE]`:                      false,
		``:                            false,
		`{"choices":[],`:              false,
		`{"choices":"[]","usage":{}}`: false,
	} {
		if got := o.OnlyUsage([]byte(data)); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
	var only int
	for line := range bytes.Lines(sample(t, "openai-chat.sse")) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && o.OnlyUsage(data) {
			only++
		}
	}
	if only != 1 {
		t.Errorf("%d pieces of a stream say nothing but what was used", only)
	}
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct{ provider, field, value, want string }{
		{"anthropic", "X-Api-Key", "sk-1", "sk-1"}, {"anthropic", "authorization", "Bearer oat-1", "oat-1"}, {"openai", "Authorization", "Bearer sk-2", "sk-2"},
		{"azure", "Api-Key", "k", "k"}, {"gemini", "x-goog-api-key", "g", "g"}, {"github", "Authorization", "token ghp", "ghp"}, {"stripe", "Authorization", "Basic c2tfdGVzdDo=", "sk_test"},
		{"jira", "Authorization", "Basic bWU6dG9rZW4=", "me:token"}, {"bedrock", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIA1/20261115/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=5f", "AKIA1"},
		{"generic", "X-API-KEY", "x", "x"}, {"generic", "Authorization", "", ""}, {"openai", "X-Api-Key", "x", ""},
	} {
		if got := speaker(t, tt.provider).Key(map[string][]string{tt.field: {tt.value}}); got != tt.want {
			t.Errorf("%s: %s: %s is %q", tt.provider, tt.field, tt.value, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	const message = "held by \"the gate\"\n</script>"
	for _, name := range Names() {
		s := speaker(t, name)
		for _, status := range []int{400, 402, 403, 429, 503, 529, 599} {
			kind, body := s.Refuse(status, message)
			if !json.Valid(body) || !strings.Contains(kind, "json") {
				t.Errorf("%s: %s %s", name, kind, body)
			}
		}
		_, body := s.Refuse(429, message)
		if o := s.Observe(&Response{Status: 429, Body: body}, made); o.Verdict != store.VerdictThrottled {
			t.Errorf("%s does not understand its own refusal: %+v", name, o)
		}
	}
	if _, body := speaker(t, "anthropic").Refuse(429, "x"); string(body) != `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}` {
		t.Errorf("%s", body)
	}
}

// A body may name a second model anywhere behind the first, in pieces of any length.
func TestModelGuardFindsASecondModel(t *testing.T) {
	for body, want := range map[string]bool{
		`{"model":"m","a":{"model":"n"},"b":"\"model\":\"n\""}`: false,
		`{"model":"m","model":"m"}`:                             false,
		`{"model":"m","a":1,"MODEL":"n"}`:                       true,
		`{"model":"m"}{"model":"n"}`:                            true,
		`{"model":"m",]`:                                        true,
		`{"model":"m"`:                                          false,
	} {
		for size := 1; size <= len(body); size++ {
			g := NewModelGuard()
			for rest := body; rest != ""; rest = rest[min(size, len(rest)):] {
				g.Write([]byte(rest[:min(size, len(rest))]))
			}
			if got := g.Unread(); got != want {
				t.Errorf("%s in pieces of %d: %v", body, size, got)
			}
		}
	}
	for length, want := range map[int]bool{30: false, 20: true} {
		c := call("POST", "/v1/chat/completions", `{"model":"m","user":"someone"}`[:length])
		c.Whole = length == 30
		if got := speaker(t, "openai").Ask(c); got.Beyond != want || got.Unread {
			t.Errorf("%d bytes: %+v", length, got)
		}
	}
}

// The model of a long body was not looked for beyond 4 MiB, although SDKs write it after the messages. Files are not
// searched.
func TestAModelBehindALongBodyIsFound(t *testing.T) {
	long := `{"messages":[{"content":"` + strings.Repeat("hi there ", MaxCall/8) + `"}],"model":"m"`
	for name, tt := range map[string]struct {
		path, kind, tail string
		held             int // bytes of the body that are not in the rest
		model            string
		unread           bool
	}{
		"in the body":      {"/v1/chat/completions", "application/json", "}", len(long) + 1, "m", false},
		"in the rest":      {"/v1/chat/completions", "", "}", MaxCall, "m", false},
		"cut off":          {"/v1/chat/completions", "", "", MaxCall, "m", false},
		"twice":            {"/v1/chat/completions", "", `,"model":"x"}`, len(long) - 5, "x", true},
		"unknown form":     {"/v1/ocr", "application/json; charset=utf-8", "}", MaxCall, "m", false},
		"a file":           {"/upload/v1beta/files", "application/json", "}", MaxCall, "", false},
		"a file of others": {"/v1/ocr", "application/octet-stream", "}", MaxCall, "", false},
	} {
		body := long + tt.tail
		c := call("POST", tt.path, body[:tt.held])
		c.Header = map[string][]string{"content-type": {tt.kind}}
		if tt.held < len(body) {
			c.Whole, c.Rest = false, strings.NewReader(body[tt.held:])
		}
		if got := speaker(t, "openai").Ask(c); got.Model != tt.model || got.Unread != tt.unread {
			t.Errorf("%s: model %q, unread %v", name, got.Model, got.Unread)
		}
	}
	c := call("POST", "/v1/chat/completions", long[:MaxCall])
	c.Whole = false
	if got := speaker(t, "openai").Ask(c); !got.Unread {
		t.Error("a model that was not reached is not unread")
	}
}
