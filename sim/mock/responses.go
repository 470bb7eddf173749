package mock

import (
	"encoding/json"
	"net/http"
)

// response is the relevant part of a request to the responses API.
type response struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	Instructions json.RawMessage `json:"instructions"`
	Tools        json.RawMessage `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	MaxOutput    int64           `json:"max_output_tokens"`
	Stream       bool            `json:"stream"`
	Generate     *bool           `json:"generate"`
}

// create makes a response. It streams if stream is set or the request asks for it.
func (p openai) create(x *exchange, stream bool) {
	var r response
	if !p.decode(x, &r) {
		return
	}
	r.Stream = r.Stream || stream
	if stream && r.Generate != nil && !*r.Generate {
		p.warm(x, &r)
		return
	}
	var tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"parameters"`
	}
	turns, ok := inputTurns(r.Input)
	switch {
	case r.Model == "":
		x.fail(http.StatusBadRequest, "Missing required parameter: 'model'.")
		return
	case !ok:
		x.fail(http.StatusBadRequest, "Invalid type for 'input': expected a string or an array of objects.")
		return
	case len(r.Tools) > 0 && json.Unmarshal(r.Tools, &tools) != nil:
		x.fail(http.StatusBadRequest, "Invalid type for 'tools': expected an array of objects.")
		return
	}
	j := &job{model: r.Model, parts: [][]byte{compact(r.Instructions), compact(r.Input), compact(r.Tools)}, most: max(r.MaxOutput, 0)}
	for _, t := range tools {
		j.tools = append(j.tools, tool{t.Name, t.Schema})
	}
	j.pick(r.ToolChoice, turns)
	if !p.admit(x, j) {
		return
	}
	if r.Stream {
		p.responseEvents(x, &r, j)
		return
	}
	if !x.fault.errorIn200 {
		x.produce(j.ans.tokens)
	}
	x.reply(http.StatusOK, j.response(x, &r, j.status(), []any{j.item(x.text(j.ans), j.status())}, true))
}

// warm answers a request over a WebSocket that only prepares the next one. The request counts against no limit.
func (p openai) warm(x *exchange, r *response) {
	j := &job{model: r.Model, seed: seedOf([]byte(r.Model), []byte("warm")), ans: &answer{}}
	x.free()
	s := x.events(true)
	for i, status := range []string{"in_progress", "completed"} {
		kind := "response." + status
		if i == 0 {
			kind = "response.created"
		}
		s.send(kind, obj{{"type", kind}, {"sequence_number", i}, {"response", j.response(x, r, status, []any{}, i > 0)}})
	}
	s.end()
}

// inputTurns returns the turns of an input, which may also be a string.
func inputTurns(raw json.RawMessage) ([]turn, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []turn{{Role: "user", Content: raw}}, true
	}
	var turns []turn
	if json.Unmarshal(raw, &turns) != nil || len(turns) == 0 {
		return nil, false
	}
	return turns, true
}

func (j *job) status() string {
	if j.ans.cut {
		return "incomplete"
	}
	return "completed"
}

// item returns the only item of the response's output.
func (j *job) item(text, status string) obj {
	if t := j.ans.tool; t != nil {
		return obj{
			{"id", j.seed.id("fc_")}, {"type", "function_call"}, {"status", status}, {"arguments", text},
			{"call_id", j.seed.id("call_")}, {"name", t.name},
		}
	}
	content := []any{outputText(text)}
	if status == "in_progress" {
		content = []any{}
	}
	return obj{{"id", j.seed.id("msg_")}, {"type", "message"}, {"status", status}, {"content", content}, {"role", "assistant"}}
}

func outputText(text string) obj {
	return obj{{"type", "output_text"}, {"annotations", []any{}}, {"logprobs", []any{}}, {"text", text}}
}

// response returns the response object, with usage if over is set.
func (j *job) response(x *exchange, r *response, status string, output []any, over bool) obj {
	var usage, incomplete, most, instructions any
	tools, choice := json.RawMessage("[]"), json.RawMessage(`"auto"`)
	if over && !x.fault.noUsage {
		usage = obj{
			{"input_tokens", j.input}, {"input_tokens_details", obj{{"cached_tokens", x.used(j.input).CacheReadTokens}}},
			{"output_tokens", j.ans.tokens}, {"output_tokens_details", obj{{"reasoning_tokens", 0}}},
			{"total_tokens", j.input + j.ans.tokens},
		}
	}
	if status == "incomplete" {
		incomplete = obj{{"reason", "max_output_tokens"}}
	}
	if r.MaxOutput > 0 {
		most = r.MaxOutput
	}
	if len(r.Instructions) > 0 {
		instructions = r.Instructions
	}
	if len(r.Tools) > 0 {
		tools = r.Tools
	}
	if len(r.ToolChoice) > 0 {
		choice = r.ToolChoice
	}
	return obj{
		{"id", j.seed.id("resp_")}, {"object", "response"}, {"created_at", created}, {"status", status}, {"background", false},
		{"error", nil}, {"incomplete_details", incomplete}, {"instructions", instructions}, {"max_output_tokens", most}, {"model", j.model},
		{"output", output}, {"parallel_tool_calls", true}, {"previous_response_id", nil},
		{"reasoning", obj{{"effort", nil}, {"summary", nil}}}, {"service_tier", "default"}, {"store", false}, {"temperature", 1},
		{"text", obj{{"format", obj{{"type", "text"}}}}}, {"tool_choice", choice}, {"tools", tools}, {"top_p", 1}, {"truncation", "disabled"},
		{"usage", usage}, {"user", nil}, {"metadata", obj{}},
	}
}

// responseEvents sends the answer as events.
func (p openai) responseEvents(x *exchange, r *response, j *job) {
	s := x.events(true)
	number := -1
	event := func(kind string, rest ...field) (string, any) {
		number++
		return kind, append(obj{{"type", kind}, {"sequence_number", number}}, rest...)
	}
	whole := func(kind, status string, output []any, over bool) (string, any) {
		return event(kind, field{"response", j.response(x, r, status, output, over)})
	}
	output := field{"output_index", 0}
	item, text := j.item("", "in_progress"), ""
	id := field{"item_id", item[0].value}
	for _, piece := range j.ans.pieces {
		text += piece.text
	}
	part := []field{id, output, {"content_index", 0}}
	ok := s.send(whole("response.created", "in_progress", []any{}, false)) &&
		s.send(whole("response.in_progress", "in_progress", []any{}, false)) &&
		s.send(event("response.output_item.added", output, field{"item", item}))
	if !ok {
		return
	}
	if j.ans.tool != nil {
		ok = s.pieces(j.ans, func(text string) (string, any) {
			return event("response.function_call_arguments.delta", id, output, field{"delta", text})
		}) && s.send(event("response.function_call_arguments.done", id, output, field{"arguments", text}))
	} else {
		ok = s.send(event("response.content_part.added", with(part, field{"part", outputText("")})...)) &&
			s.pieces(j.ans, func(text string) (string, any) {
				return event("response.output_text.delta", with(part, field{"delta", text}, field{"logprobs", []any{}})...)
			}) &&
			s.send(event("response.output_text.done", with(part, field{"text", text}, field{"logprobs", []any{}})...)) &&
			s.send(event("response.content_part.done", with(part, field{"part", outputText(text)})...))
	}
	done := j.item(text, j.status())
	if ok && s.send(event("response.output_item.done", output, field{"item", done})) {
		s.finish(whole("response."+j.status(), j.status(), []any{done}, true))
	}
}

// with returns fields followed by more. It does not change fields.
func with(fields []field, more ...field) []field {
	return append(fields[:len(fields):len(fields)], more...)
}
