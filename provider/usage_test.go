package provider

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"pgregory.net/rapid"
)

// usageSamples are answers as providers send them, under testdata, and what they say.
var usageSamples = []struct {
	provider, file string
	want           Usage
	verdict        store.Verdict
}{
	{"anthropic", "anthropic.sse", Usage{Model: "claude-opus-5-5-20261001", Input: 2095, CacheRead: 51000, CacheWrite: 200, CacheLong: 1000, Output: 89, Known: true, Final: true, Seen: 64}, 0},
	{"anthropic", "anthropic-overloaded.sse", Usage{Model: "claude-sonnet-5-5", Input: 25, Output: 1, Known: true, Seen: 9}, store.VerdictOverloaded},
	{"anthropic", "anthropic.json", Usage{Model: "claude-haiku-4-5-20251001", Input: 10, CacheRead: 5, Output: 4, Known: true, Final: true}, 0},
	{"anthropic", "anthropic-rounds.json", Usage{Model: "claude-opus-5-5", Input: 203000, Output: 4500, Known: true, Final: true}, 0},
	{"openai", "openai-chat.sse", Usage{Model: "gpt-5.4-2026-03-05", Input: 86, CacheRead: 1920, Output: 300, Known: true, Final: true, Seen: 14}, 0},
	{"openai", "openai-responses.sse", Usage{Model: "gpt-6.1-sol-2026-10-01", Input: 269, CacheRead: 512, CacheWrite: 256, Output: 111, Known: true, Final: true, Seen: 8}, 0},
	{"openai", "openai-responses-failed.sse", Usage{Model: "gpt-6.1-sol"}, store.VerdictThrottled},
	{"openai", "openai-error.sse", Usage{}, store.VerdictError},
	{"openai", "openai-embeddings.json", Usage{Model: "text-embedding-3-small", Input: 8, Known: true, Final: true}, 0},
	{"xai", "xai.json", Usage{Model: "grok-4.6", Input: 26, CacheRead: 6, Output: 103, Known: true, Final: true}, 0},
	{"deepseek", "deepseek.json", Usage{Model: "deepseek-v4-pro", Input: 20, CacheRead: 100, Output: 20, Known: true, Final: true}, 0},
	{"groq", "groq.sse", Usage{Model: "llama-3.3-70b-versatile", Input: 20, Output: 26, Known: true, Final: true, Seen: 2}, 0},
	{"openrouter", "openrouter.sse", Usage{Model: "anthropic/claude-sonnet-5.5", Input: 194, Output: 2, Micros: 412, Known: true, Final: true, Seen: 2}, 0},
	{"openrouter", "openrouter-error.sse", Usage{Model: "z/z:free", Seen: 2}, store.VerdictError},
	{"gemini", "gemini.sse", Usage{Model: "gemini-3.1-pro-preview", Input: 117, CacheRead: 400, Output: 100, Known: true, Final: true, Seen: 11}, 0},
	{"gemini", "gemini-array.json", Usage{Model: "gemini-3.8-flash", Input: 4, Output: 9, Known: true, Final: true, Seen: 11}, 0},
	{"gemini", "gemini-error-array.json", Usage{}, store.VerdictOverloaded},
	{"cohere", "cohere.sse", Usage{Input: 75, Output: 5, Known: true, Final: true, Seen: 2}, 0},
	{"cohere", "cohere-embed.json", Usage{Input: 17, Known: true, Final: true}, 0},
	{"cohere", "cohere-rerank.json", Usage{Searches: 1, Known: true, Final: true}, 0},
	{"cohere", "cohere-chat-v1.json", Usage{Input: 6, Output: 4, Known: true, Final: true}, 0},
	{"cohere", "cohere-chat-v1.stream", Usage{Input: 6, Output: 4, Known: true, Final: true, Seen: 8}, 0},
	{"cohere", "cohere-billed.json", Usage{Input: 6, Output: 4, Known: true, Final: true}, 0},
	{"bedrock", "bedrock.json", Usage{Input: 125, CacheRead: 30, CacheWrite: 7, Output: 60, Known: true, Final: true}, 0},
}

// contentOf is the content type of a sample.
func contentOf(file string) string {
	switch filepath.Ext(file) {
	case ".sse":
		return "text/event-stream; charset=utf-8"
	case ".stream":
		return "application/stream+json"
	}
	return "application/json"
}

func sample(t testing.TB, file string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func speaker(t testing.TB, name string) Speaker {
	t.Helper()
	d, _ := Lookup(name)
	s, ok := d.(Speaker)
	if !ok {
		t.Fatalf("%s does not read requests", name)
	}
	return s
}

func usageOf(t testing.TB, provider, contentType string, pieces ...[]byte) (Usage, Observation) {
	t.Helper()
	r := speaker(t, provider).Usage(&ParsedRequest{Tokens: true}, contentType)
	if r == nil {
		t.Fatalf("%s reads nothing of %s", provider, contentType)
	}
	for _, p := range pieces {
		r.Write(p)
	}
	return r.Usage(), r.Failed()
}

func TestUsage(t *testing.T) {
	for _, tt := range usageSamples {
		t.Run(tt.file, func(t *testing.T) {
			got, failed := usageOf(t, tt.provider, contentOf(tt.file), sample(t, tt.file))
			if got != tt.want {
				t.Errorf("%+v, want\n%+v", got, tt.want)
			}
			if failed.Verdict != tt.verdict || (failed.Cause == "") != (tt.verdict == 0) {
				t.Errorf("failed with %+v, want %v", failed, tt.verdict)
			}
		})
	}
}

// The result does not depend on how a response is split into pieces, nor on its line endings.
func TestUsageOfPieces(t *testing.T) {
	for _, tt := range usageSamples {
		body := sample(t, tt.file)
		rapid.Check(t, func(t *rapid.T) {
			text := body
			if rapid.Bool().Draw(t, "crlf") {
				text = bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n"))
			}
			r := newUsageReader(vendorOf(tt.provider), "", contentOf(tt.file))
			for len(text) > 0 {
				n := rapid.IntRange(1, min(len(text), 200)).Draw(t, "bytes")
				r.Write(text[:n])
				text = text[n:]
			}
			if got := r.Usage(); got != tt.want || r.Failed().Verdict != tt.verdict {
				t.Fatalf("%s: %+v, want %+v", tt.file, got, tt.want)
			}
		})
	}
}

func vendorOf(name string) *vendor {
	v, _ := dialects[name].(*vendor)
	return v
}

// A response that is cut off anywhere never states more than the whole response.
func TestUsageOfWhatIsCutOff(t *testing.T) {
	for _, tt := range usageSamples {
		body := sample(t, tt.file)
		for end := range body {
			got, _ := usageOf(t, tt.provider, contentOf(tt.file), body[:end])
			if w := tt.want; got.Output > w.Output || got.CacheRead > w.CacheRead || got.Seen > w.Seen || got.Final && got != w {
				t.Fatalf("%s, %d bytes of it: %+v, whole %+v", tt.file, end, got, w)
			}
		}
	}
	got, _ := usageOf(t, "anthropic", "text/event-stream", sample(t, "anthropic.sse")[:900])
	if got.Input != 2095 || got.CacheRead != 51000 || !got.Known || got.Final || got.Seen == 0 {
		t.Errorf("of an answer that ended early: %+v", got)
	}
}

func TestUsageAmongGarbage(t *testing.T) {
	const good = "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\n"
	for _, bad := range []string{
		"data: {\"usage\":{\"prompt_tokens\":9,\n\n", "data: }}}\n\n", "data: [DONE]\n\n", "data\n\n", ":\n\n", "\r\n\r\n", "data: {{{\n\n", "data: \"\\\n\n",
		"data: {\"usage\":{\"prompt_tokens\":-3,\"completion_tokens\":1e99}}\n\n", "data: {\"usage\":null}\n\n", "data: {\"usage\":{\"prompt_tokens\":\"many\"}}\n\n",
		"data: {\"usage\":[1,2]}\n\n", "data: {\"usage\":{\"prompt_tokens\":99999999999999999999}}\n\n", "data: " + strings.Repeat("[", 2000) + "\n\n", "\x00\xff\xfe\n\n",
		"data: {\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}\n\n", "dat", "data: {\"a\":\ndata: 1}\n\n",
	} {
		got, _ := usageOf(t, "openai", "text/event-stream", []byte(good+bad+"\n\n"))
		if got.Input != 5 || got.Output != 7 {
			t.Errorf("%q behind: %+v", bad, got)
		}
		if got, _ = usageOf(t, "openai", "text/event-stream", []byte(bad+"\n\n"+good)); got.Input != 5 || got.Output != 7 {
			t.Errorf("%q before: %+v", bad, got)
		}
	}
	for _, bad := range []string{"", "null", "[]", "<html>", "{", `{"usage":5}`, `{"usage":{"prompt_tokens":5`, "\"usage\"", "usage"} {
		if got, failed := usageOf(t, "openai", "application/json", []byte(bad)); got.Known || failed.Verdict != 0 {
			t.Errorf("%q: %+v, %+v", bad, got, failed)
		}
	}
}

// A response of any length is read without holding it in memory.
func TestUsageOfAnEndlessAnswer(t *testing.T) {
	r := newUsageReader(&openAI, "", "application/json")
	chunk := bytes.Repeat([]byte("lorem ipsum "), 1<<15)
	r.Write([]byte(`{"choices":[{"message":{"content":"`))
	allocs := testing.AllocsPerRun(20, func() { r.Write(chunk) })
	r.Write([]byte(`"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`))
	if got := r.Usage(); allocs != 0 || got.Input != 3 || got.Output != 4 || !got.Final {
		t.Errorf("%v allocations, %+v", allocs, got)
	}
	r = newUsageReader(&openAI, "", "text/event-stream")
	event := append(append([]byte(`data: {"id":"x","object":"chat.completion.chunk","choices":[{"delta":{"content":"`), chunk...), "\"}}]}\n\n"...)
	if allocs := testing.AllocsPerRun(20, func() { r.Write(event) }); allocs != 0 {
		t.Errorf("%v allocations for an event", allocs)
	}
}

func TestContentWithoutUsage(t *testing.T) {
	o := speaker(t, "openai")
	for _, kind := range []string{"audio/mpeg", "text/html", "application/octet-stream"} {
		if r := o.Usage(&ParsedRequest{Tokens: true}, kind); r != nil {
			t.Errorf("%s is read", kind)
		}
	}
	if r := o.Usage(&ParsedRequest{}, "application/json"); r != nil {
		t.Error("an answer without tokens is read")
	}
	if r := (Generic{}).Usage(&ParsedRequest{}, "application/json"); r != nil {
		t.Error("a generic answer is read")
	}
}

// frame is one frame of Amazon's event stream.
func frame(headers, payload string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(frameBytes+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = append(b, 1, 2, 3, 4)
	b = append(append(b, headers...), payload...)
	return append(b, 5, 6, 7, 8)
}

func TestUsageOfAmazonsFrames(t *testing.T) {
	body := append(frame("\x0b:event-type", `{"contentBlockIndex":0,"delta":{"text":"Hi"}}`), frame("", "")...)
	body = append(body, frame("y", `{"stopReason":"end_turn"}`)...)
	body = append(body, frame("x", `{"metrics":{"latencyMs":5},"usage":{"inputTokens":9,"outputTokens":4,"totalTokens":13}}`)...)
	want := Usage{Input: 9, Output: 4, Known: true, Final: true, Seen: 2}
	for n := 1; n < len(body); n++ {
		if got, _ := usageOf(t, "bedrock", "application/vnd.amazon.eventstream", body[:n], body[n:]); got != want {
			t.Fatalf("cut at %d: %+v", n, got)
		}
	}
	if got, _ := usageOf(t, "bedrock", "application/vnd.amazon.eventstream", []byte("this is no frame at all"), body); got.Known {
		t.Errorf("among garbage: %+v", got)
	}
}

func TestGraphQLRefusalWithinAnAnswer(t *testing.T) {
	for body, want := range map[string]store.Verdict{
		bodyGraphQL: store.VerdictExhausted, bodyGraphQL2nd: store.VerdictThrottled, bodyQuoting: 0, `{"data":{}}`: 0, "": 0,
	} {
		r := GitHub{}.Usage(&ParsedRequest{Part: "graphql"}, "application/json; charset=utf-8")
		for i := range len(body) {
			r.Write([]byte(body[i : i+1]))
		}
		if got := r.Failed(); got.Verdict != want || r.Usage() != (Usage{}) {
			t.Errorf("%s: %+v, want %v", body, got, want)
		}
	}
	if r := (GitHub{}).Usage(&ParsedRequest{Part: "core"}, "application/json"); r != nil {
		t.Error("a REST answer is read")
	}
}

func TestWaitsWithinAnAnswer(t *testing.T) {
	_, failed := usageOf(t, "openai", "text/event-stream", sample(t, "openai-responses-failed.sse"))
	if !failed.Hinted || failed.RetryAfter != 1500*time.Millisecond || failed.Scope != modelAndKey {
		t.Errorf("%+v", failed)
	}
}

func TestSpent(t *testing.T) {
	u := Usage{Input: 1, CacheRead: 10, CacheWrite: 100, CacheLong: 1000, Output: 10000}
	for name, want := range map[string][]int64{"anthropic": {1101, 10000, 11101}, "openai": {1111, 10000, 11111}, "groq": {1101, 10000, 11101}, "generic": nil, "github": nil, "slack": nil} {
		var got []int64
		for _, a := range speaker(t, name).Spent(&u) {
			got = append(got, a.N)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	u.Model = "claude-3-5-haiku-20241022"
	if got := speaker(t, "anthropic").Spent(&u)[0].N; got != 1111 {
		t.Errorf("an old model takes %d", got)
	}
}
