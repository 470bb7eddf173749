package mock

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/sim"
)

// anthropic serves the Messages API.
type anthropic struct{}

// message is the relevant part of a request.
type message struct {
	Model      string          `json:"model"`
	MaxTokens  *int64          `json:"max_tokens"`
	Messages   json.RawMessage `json:"messages"`
	System     json.RawMessage `json:"system"`
	Tools      json.RawMessage `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Stream bool `json:"stream"`

	turns []turn
	tools []tool
}

// turn is one message of a conversation. Anthropic and OpenAI use the same shape.
type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (p anthropic) serve(x *exchange) {
	switch path := x.r.URL.Path; {
	case path == "/":
		if x.allow(http.MethodHead, http.MethodGet) {
			x.free()
			x.reply(http.StatusOK, obj{{"type", "mock"}})
		}
	case path == "/v1/messages":
		if m := p.parse(x, true); m != nil {
			p.messages(x, m)
		}
	case path == "/v1/messages/count_tokens":
		if m := p.parse(x, false); m != nil {
			p.count(x, m)
		}
	case path == "/v1/models" || strings.HasPrefix(path, "/v1/models/"):
		if x.allow(http.MethodGet) {
			x.free()
			p.models(x, strings.TrimPrefix(strings.TrimPrefix(path, "/v1/models"), "/"))
		}
	default:
		x.missing()
	}
}

// parse reads a request. If the request is invalid, it sends an error response and returns nil.
func (anthropic) parse(x *exchange, bounded bool) *message {
	if !x.allow(http.MethodPost) {
		return nil
	}
	body, ok := x.read()
	if !ok {
		return nil
	}
	m := new(message)
	complaint := ""
	switch err := json.Unmarshal(body, m); {
	case err != nil:
		complaint = "The request body is not valid JSON: " + err.Error()
	case m.Model == "":
		complaint = "model: Field required"
	case bounded && m.MaxTokens == nil:
		complaint = "max_tokens: Field required"
	case bounded && *m.MaxTokens < 1:
		complaint = "max_tokens: Input should be greater than or equal to 1"
	case json.Unmarshal(m.Messages, &m.turns) != nil || len(m.turns) == 0:
		complaint = "messages: Input should be a valid list of at least one message"
	}
	if complaint == "" {
		m.tools, ok = anthropicTools(m.Tools)
		if !ok {
			complaint = "tools: Input should be a valid list of tools"
		}
	}
	if complaint != "" {
		x.fail(http.StatusBadRequest, complaint)
		return nil
	}
	return m
}

func anthropicTools(raw json.RawMessage) (all []tool, ok bool) {
	var list []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	if len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	for _, t := range list {
		all = append(all, tool{t.Name, t.Schema})
	}
	return all, true
}

// parts returns the parts of the request that count as input tokens, as compact JSON.
func (m *message) parts() [][]byte {
	return [][]byte{compact(m.System), compact(m.Messages), compact(m.Tools)}
}

func (anthropic) count(x *exchange, m *message) {
	if x.admit(ask{takes: []amount{{unitCount, 1}}}, "", Usage{}) && x.begin() {
		x.reply(http.StatusOK, obj{{"input_tokens", tokensOf(m.parts()...)}})
	}
}

// used splits the input tokens of a request into cache reads, cache writes and the rest, as X-Mock asks for.
func (x *exchange) used(input int64) Usage {
	u := Usage{CacheReadTokens: min(x.fault.cacheRead, input)}
	u.CacheWriteTokens = min(x.fault.cacheWrite, input-u.CacheReadTokens)
	u.InputTokens = input - u.CacheReadTokens - u.CacheWriteTokens
	return u
}

func (p anthropic) messages(x *exchange, m *message) {
	u := x.used(tokensOf(m.parts()...))
	a := ask{class: modelClass(m.Model), produces: true, takes: []amount{
		{sim.Requests, 1}, {sim.InputTokens, u.InputTokens + u.CacheWriteTokens}, // tokens read from a cache do not count
	}}
	if !x.admit(a, m.Model, u) || !x.begin() {
		return
	}
	s := seedOf(append(m.parts(), []byte(m.Model))...)
	ans := x.s.respond(s, m.picks(), *m.MaxTokens)
	if m.Stream {
		p.stream(x, m, ans, u)
		return
	}
	if !x.fault.errorIn200 {
		x.produce(ans.tokens)
	}
	content := obj{{"type", "text"}, {"text", x.text(ans)}}
	if ans.tool != nil {
		content = append(ans.toolUse(), field{"input", json.RawMessage(ans.tool.arguments)})
	}
	x.reply(http.StatusOK, obj{
		{"id", s.id("msg_01")}, {"type", "message"}, {"role", "assistant"}, {"model", m.Model}, {"content", []any{content}},
		{"stop_reason", ans.stopReason()}, {"stop_sequence", nil}, {"usage", anthropicUsage(u, ans.tokens)},
	}.without(x.fault.noUsage, "usage"))
}

// text returns the text of an answer, or a placeholder for the padding that X-Mock asks for.
func (x *exchange) text(a *answer) string {
	if x.fault.body >= 0 {
		return padding
	}
	return a.text()
}

// without returns o without the named field if leave is true. Otherwise it returns o.
func (o obj) without(leave bool, name string) obj {
	if !leave {
		return o
	}
	return slices.DeleteFunc(slices.Clone(o), func(f field) bool { return f.name == name })
}

func anthropicUsage(u Usage, output int64) obj {
	return obj{
		{"input_tokens", u.InputTokens}, {"cache_creation_input_tokens", u.CacheWriteTokens}, {"cache_read_input_tokens", u.CacheReadTokens},
		{"cache_creation", obj{{"ephemeral_5m_input_tokens", u.CacheWriteTokens}, {"ephemeral_1h_input_tokens", 0}}},
		{"output_tokens", output}, {"service_tier", "standard"},
	}
}

func (a *answer) stopReason() string {
	switch {
	case a.tool != nil:
		return "tool_use"
	case a.cut:
		return "max_tokens"
	}
	return "end_turn"
}

func (a *answer) toolUse() obj {
	return obj{{"type", "tool_use"}, {"id", a.seed.id("toolu_01")}, {"name", a.tool.name}}
}

// stream sends the answer as events.
func (p anthropic) stream(x *exchange, m *message, ans *answer, u Usage) {
	s := x.events(true)
	start := obj{
		{"id", ans.seed.id("msg_01")}, {"type", "message"}, {"role", "assistant"}, {"model", m.Model}, {"content", []any{}},
		{"stop_reason", nil}, {"stop_sequence", nil}, {"usage", anthropicUsage(u, 1)}, // the number of output tokens is unknown yet
	}.without(x.fault.noUsage, "usage")
	block := obj{{"type", "text"}, {"text", ""}}
	kind, name := "text_delta", "text"
	if ans.tool != nil {
		block = append(ans.toolUse(), field{"input", obj{}})
		kind, name = "input_json_delta", "partial_json"
	}
	event := func(kind string, rest ...field) (string, any) { return kind, append(obj{{"type", kind}}, rest...) }
	ok := s.send(event("message_start", field{"message", start})) &&
		s.send(event("content_block_start", field{"index", 0}, field{"content_block", block})) &&
		s.send(event("ping")) &&
		s.pieces(ans, func(text string) (string, any) {
			return event("content_block_delta", field{"index", 0}, field{"delta", obj{{"type", kind}, {name, text}}})
		}) &&
		s.send(event("content_block_stop", field{"index", 0}))
	if !ok {
		return
	}
	_, last := event("message_delta",
		field{"delta", obj{{"stop_reason", ans.stopReason()}, {"stop_sequence", nil}}},
		field{"usage", obj{
			{"input_tokens", u.InputTokens}, {"cache_creation_input_tokens", u.CacheWriteTokens},
			{"cache_read_input_tokens", u.CacheReadTokens}, {"output_tokens", ans.tokens},
		}})
	if s.send("message_delta", last.(obj).without(x.fault.noUsage, "usage")) {
		s.finish(event("message_stop"))
	}
}

// picks returns the tool that the answer uses, or nil.
func (m *message) picks() *tool {
	if len(m.tools) == 0 || m.ToolChoice.Type == "none" {
		return nil
	}
	switch {
	case m.ToolChoice.Type == "any":
		return &m.tools[0]
	case m.ToolChoice.Type == "tool":
		return named(m.tools, m.ToolChoice.Name)
	case asksForTool(m.turns):
		return &m.tools[0]
	}
	return nil
}

// named returns the tool with that name, or the first tool if there is none.
func named(tools []tool, name string) *tool {
	return &tools[max(slices.IndexFunc(tools, func(t tool) bool { return t.name == name }), 0)]
}

// asksForTool reports whether the user's last turn asks for a tool. It skips system turns at the end, because Claude
// Code adds one about MCP servers.
func asksForTool(turns []turn) bool {
	last := turns[len(turns)-1]
	for i := len(turns) - 1; i > 0 && last.Role == "system"; i-- {
		last = turns[i-1]
	}
	return last.Role == "user" && strings.Contains(strings.ToLower(contentText(last.Content)), "use the tool")
}

// contentText returns the text of a content field, which is a string or a list of blocks. It ignores tool results.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &blocks) // other values have no text
	for _, b := range blocks {
		text += b.Text + "\n"
	}
	return text
}

// modelClass returns the name under which Anthropic counts a model. All Opus models of generation 4 count together, and
// so do all Sonnet models of generation 4. Every other model counts separately. A date at the end of the name does not
// matter.
func modelClass(model string) string {
	model = snapshot.ReplaceAllString(strings.ToLower(model), "")
	for _, pooled := range [...]string{"claude-opus-4", "claude-sonnet-4"} {
		if rest, ok := strings.CutPrefix(model, pooled); ok && (rest == "" || rest[0] == '-' || rest[0] == '.') {
			return pooled
		}
	}
	return model[:min(len(model), maxName)]
}

var snapshot = lazyregexp.New(`-(\d{8}|latest)$`)
