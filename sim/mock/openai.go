package mock

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/sim"
)

// openai serves the chat completions, responses and realtime APIs.
type openai struct{}

// created is the creation time of every response, so that the same request has the same response.
const created = 1_767_225_600

const pathResponses = "/v1/responses"

func (p openai) serve(x *exchange) {
	switch path := x.r.URL.Path; {
	case path == "/v1/chat/completions":
		p.chat(x)
	case path == pathRealtime && x.isSocket():
		p.realtime(x)
	case path == pathResponses && x.isSocket():
		p.socket(x)
	case path == pathResponses:
		p.create(x, false)
	case path == "/v1/models" || strings.HasPrefix(path, "/v1/models/"):
		if x.allow(http.MethodGet) {
			x.free()
			p.models(x, strings.TrimPrefix(strings.TrimPrefix(path, "/v1/models"), "/"))
		}
	default:
		x.missing()
	}
}

// dated matches the date at the end of a model name. Names that differ only in the date share their limits.
var dated = lazyregexp.New(`-\d{4}-\d{2}-\d{2}$`)

// completion is the relevant part of a request for a chat completion.
type completion struct {
	Model         string          `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	Tools         json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	MaxTokens     int64           `json:"max_tokens"`
	MaxCompletion int64           `json:"max_completion_tokens"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// job is a parsed request for a model's answer.
type job struct {
	model string
	parts [][]byte // parts of the request that count as input
	most  int64    // maximum output tokens; 0: not stated
	tools []tool
	picks *tool
	input int64

	seed seed
	ans  *answer
}

// decode reads the JSON body of a request. If the body is invalid, it sends an error response and returns false.
func (openai) decode(x *exchange, into any) bool {
	if !x.allow(http.MethodPost) {
		return false
	}
	body, ok := x.read()
	if !ok {
		return false
	}
	if json.Unmarshal(body, into) != nil {
		x.fail(http.StatusBadRequest, "We could not parse the JSON body of your request.")
		return false
	}
	return true
}

// admit decides whether a job is accepted, waits for the latency and makes the answer. It takes the maximum output
// tokens that the job states from the limit on tokens, or the input tokens if they are more.
func (openai) admit(x *exchange, j *job) bool {
	j.input = tokensOf(j.parts...)
	u := x.used(j.input)
	u.InputTokens += u.CacheWriteTokens // OpenAI does not count cache writes separately
	u.CacheWriteTokens = 0
	class := dated.ReplaceAllString(strings.ToLower(j.model), "")
	a := ask{class: class[:min(len(class), maxName)], takes: []amount{{sim.Requests, 1}, {sim.Tokens, max(j.most, j.input)}}}
	if !x.admit(a, j.model, u) || !x.begin() {
		return false
	}
	j.seed = seedOf(append(j.parts, []byte(j.model))...)
	j.ans = x.s.respond(j.seed, j.picks, j.most)
	return true
}

func (p openai) chat(x *exchange) {
	var c completion
	if !p.decode(x, &c) {
		return
	}
	var turns []turn
	var tools []struct {
		Function struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	switch {
	case c.Model == "":
		x.fail(http.StatusBadRequest, "you must provide a model parameter")
		return
	case json.Unmarshal(c.Messages, &turns) != nil || len(turns) == 0:
		x.fail(http.StatusBadRequest, "Invalid type for 'messages': expected an array with at least one object.")
		return
	case len(c.Tools) > 0 && json.Unmarshal(c.Tools, &tools) != nil:
		x.fail(http.StatusBadRequest, "Invalid type for 'tools': expected an array of objects.")
		return
	}
	j := &job{model: c.Model, parts: [][]byte{compact(c.Messages), compact(c.Tools)}, most: max(c.MaxTokens, c.MaxCompletion, 0)}
	for _, t := range tools {
		j.tools = append(j.tools, tool{t.Function.Name, t.Function.Schema})
	}
	j.pick(c.ToolChoice, turns)
	if !p.admit(x, j) {
		return
	}
	if c.Stream {
		p.chunks(x, j, c.StreamOptions.IncludeUsage)
		return
	}
	if !x.fault.errorIn200 {
		x.produce(j.ans.tokens)
	}
	said := obj{{"role", "assistant"}, {"content", x.text(j.ans)}, {"refusal", nil}, {"annotations", []any{}}}
	if t := j.ans.tool; t != nil {
		said[1].value = nil
		said = append(said, field{"tool_calls", []any{obj{
			{"id", j.seed.id("call_")}, {"type", "function"}, {"function", obj{{"name", t.name}, {"arguments", t.arguments}}},
		}}})
	}
	x.reply(http.StatusOK, obj{
		{"id", j.seed.id("chatcmpl-")}, {"object", "chat.completion"}, {"created", created}, {"model", j.model},
		{"choices", []any{obj{{"index", 0}, {"message", said}, {"logprobs", nil}, {"finish_reason", j.finish()}}}},
		{"usage", j.chatUsage(x)}, {"service_tier", "default"}, {"system_fingerprint", "fp_mock"},
	}.without(x.fault.noUsage, "usage"))
}

// pick chooses the tool that the answer calls, if any.
func (j *job) pick(choice json.RawMessage, turns []turn) {
	if len(j.tools) == 0 {
		return
	}
	var word string
	var chosen struct {
		Name     string `json:"name"` // in the responses API
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(choice, &word) != nil {
		_ = json.Unmarshal(choice, &chosen) // other values choose nothing
	}
	switch name := chosen.Name + chosen.Function.Name; {
	case name != "":
		j.picks = named(j.tools, name)
	case word == "required", word != "none" && len(turns) > 0 && asksForTool(turns):
		j.picks = &j.tools[0]
	}
}

func (j *job) finish() string {
	switch {
	case j.ans.tool != nil:
		return "tool_calls"
	case j.ans.cut:
		return "length"
	}
	return "stop"
}

func (j *job) chatUsage(x *exchange) obj {
	return obj{
		{"prompt_tokens", j.input}, {"completion_tokens", j.ans.tokens}, {"total_tokens", j.input + j.ans.tokens},
		{"prompt_tokens_details", obj{{"cached_tokens", x.used(j.input).CacheReadTokens}, {"audio_tokens", 0}}},
		{"completion_tokens_details", obj{
			{"reasoning_tokens", 0}, {"audio_tokens", 0}, {"accepted_prediction_tokens", 0}, {"rejected_prediction_tokens", 0},
		}},
	}
}

// chunks sends the answer as a stream. The last chunk has the usage, if the request asks for it.
func (p openai) chunks(x *exchange, j *job, withUsage bool) {
	withUsage = withUsage && !x.fault.noUsage
	s := x.events(false)
	chunk := func(choices []any, usage any) (string, any) {
		return "", obj{
			{"id", j.seed.id("chatcmpl-")}, {"object", "chat.completion.chunk"}, {"created", created}, {"model", j.model},
			{"service_tier", "default"}, {"system_fingerprint", "fp_mock"}, {"choices", choices}, {"usage", usage},
		}.without(!withUsage, "usage")
	}
	delta := func(d obj, finish any) (string, any) {
		return chunk([]any{obj{{"index", 0}, {"delta", d}, {"logprobs", nil}, {"finish_reason", finish}}}, nil)
	}
	first := obj{{"role", "assistant"}, {"content", ""}, {"refusal", nil}}
	next := func(text string) (string, any) { return delta(obj{{"content", text}}, nil) }
	if t := j.ans.tool; t != nil {
		first = obj{{"role", "assistant"}, {"content", nil}, {"tool_calls", []any{obj{
			{"index", 0}, {"id", j.seed.id("call_")}, {"type", "function"}, {"function", obj{{"name", t.name}, {"arguments", ""}}},
		}}}, {"refusal", nil}}
		next = func(text string) (string, any) {
			return delta(obj{{"tool_calls", []any{obj{{"index", 0}, {"function", obj{{"arguments", text}}}}}}}, nil)
		}
	}
	ok := s.send(delta(first, nil)) && s.pieces(j.ans, next) && s.send(delta(obj{}, j.finish())) &&
		(!withUsage || s.send(chunk([]any{}, j.chatUsage(x))))
	if ok {
		s.finish("", "[DONE]")
	}
}
