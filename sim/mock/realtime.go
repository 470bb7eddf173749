package mock

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

const pathRealtime = "/v1/realtime"

// socket serves the responses API over a WebSocket.
func (p openai) socket(x *exchange) {
	x.upgrade(nil, func(s *socket, message []byte) {
		event := members(message)
		w := &eventual{recorded: recorded{header: http.Header{}}, s: s}
		if stream := text(event["stream_id"]); stream != "" {
			w.extra = []field{{"stream_id", stream}}
		}
		switch text(event["type"]) {
		case "response.create":
			s.serve(s.ctx, message, w, func(x *exchange) {
				p.hello(w.header)
				p.create(x, true)
				w.fail()
			})
		case "response.processed", "response.cancel":
		default:
			s.send(append(obj{{"type", "error"}, {"status", http.StatusBadRequest}}, openaiError("invalid_request_error", "unknown_event", "Unknown event type.")...))
		}
	})
}

// talk is a session of the realtime API.
type talk struct {
	p     openai
	s     *socket
	model string

	mu           sync.Mutex
	instructions json.RawMessage
	most         int64
	items        [][]byte
	active       context.CancelFunc // cancels the running response of the conversation; nil: there is none
	number       int
}

// realtime serves the realtime API.
func (p openai) realtime(x *exchange) {
	model := x.r.URL.Query().Get("model")
	if model == "" {
		x.fail(http.StatusBadRequest, "You must provide a model parameter.")
		return
	}
	t := &talk{p: p, model: model}
	x.upgrade(func(s *socket) {
		t.s = s
		s.send(t.session("session.created"))
	}, func(_ *socket, message []byte) { t.handle(message) })
}

func (t *talk) session(kind string) obj {
	return obj{{"type", kind}, {"event_id", requestID("event_")}, {"session", obj{
		{"type", "realtime"}, {"object", "realtime.session"}, {"id", "sess_mock"}, {"model", t.model}, {"output_modalities", []any{"text"}},
	}}}
}

// realtimeEvent is the relevant part of a client's message.
type realtimeEvent struct {
	Type     string          `json:"-"`
	ID       string          `json:"event_id"`
	Item     json.RawMessage `json:"item"`
	Audio    string          `json:"audio"`
	Response struct {
		Conversation string          `json:"conversation"`
		Instructions json.RawMessage `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		MaxOutput    any             `json:"max_output_tokens"`
	} `json:"response"`
	Session struct {
		Instructions json.RawMessage `json:"instructions"`
		MaxOutput    any             `json:"max_output_tokens"`
	} `json:"session"`
}

func (t *talk) handle(message []byte) {
	var e realtimeEvent
	if json.Unmarshal(message, &e) == nil {
		e.Type = text(members(message)["type"])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Type {
	case "session.update":
		if len(e.Session.Instructions) > 0 {
			t.instructions = e.Session.Instructions
		}
		t.most = most(e.Session.MaxOutput, t.most)
		t.s.send(t.session("session.updated"))
	case "conversation.item.create":
		t.items = append(t.items, compact(e.Item))
		t.s.send(obj{{"type", "conversation.item.added"}, {"event_id", requestID("event_")}, {"previous_item_id", nil}, {"item", e.Item}})
	case "response.create":
		t.respond(&e, message)
	case "response.cancel":
		if t.active == nil {
			t.problem(&e, "response_cancel_not_active", "Cancellation failed: no active response found")
			return
		}
		t.active()
	case "input_audio_buffer.append":
	case "input_audio_buffer.commit": // the mock answers every commit, like a server that detects speech
		t.items = append(t.items, []byte(`{"type":"input_audio"}`))
		t.s.send(obj{{"type", "input_audio_buffer.committed"}, {"event_id", requestID("event_")}, {"item_id", "item_mock"}})
		t.respond(&e, message)
	default:
		t.problem(&e, "invalid_value", "Invalid value: '"+e.Type+"'.")
	}
}

func most(said any, was int64) int64 {
	if n, ok := said.(float64); ok && n > 0 {
		return int64(n)
	}
	return was
}

func (t *talk) problem(e *realtimeEvent, code, message string) {
	var id any
	if e.ID != "" {
		id = e.ID
	}
	t.s.send(obj{{"type", "error"}, {"event_id", requestID("event_")}, {"error", obj{
		{"type", "invalid_request_error"}, {"code", code}, {"message", message}, {"param", nil}, {"event_id", id},
	}}})
}

// respond starts a response. The caller holds the lock.
func (t *talk) respond(e *realtimeEvent, message []byte) {
	belongs := e.Response.Conversation != "none"
	if belongs && t.active != nil {
		t.problem(e, "conversation_already_has_active_response", "Conversation already has an active response in progress.")
		return
	}
	ctx, cancel := context.WithCancel(t.s.ctx)
	parts := [][]byte{compact(t.instructions)}
	if len(e.Response.Instructions) > 0 {
		parts[0] = compact(e.Response.Instructions)
	}
	if belongs {
		parts = append(parts, t.items...)
		t.active = cancel
	}
	if len(e.Response.Input) > 0 {
		parts = append(parts, compact(e.Response.Input))
	}
	t.number++
	j := &job{model: t.model, parts: parts, most: most(e.Response.MaxOutput, t.most)}
	w := record()
	t.s.serve(ctx, message, w, func(x *exchange) {
		defer cancel()
		over := sync.OnceFunc(func() { // runs before the last event, because the client may then ask for the next response
			t.mu.Lock()
			defer t.mu.Unlock()
			if belongs {
				if t.active = nil; j.ans != nil {
					t.items = append(t.items, encode(obj{{"type", "message"}, {"text", j.ans.text()}}))
				}
			}
		})
		defer over()
		t.answer(x, j, w, over)
	})
}

// answer sends the events of a response. It calls over before the last event.
func (t *talk) answer(x *exchange, j *job, w *recorded, over func()) {
	id := requestID("resp_")
	event := func(kind string, rest ...field) bool {
		return t.s.send(append(obj{{"type", kind}, {"event_id", requestID("event_")}}, rest...))
	}
	whole := func(status string, details, usage any) field {
		return field{"response", obj{{"object", "realtime.response"}, {"id", id}, {"status", status}, {"status_details", details}, {"output", []any{}}, {"usage", usage}}}
	}
	admitted := t.p.admit(x, j)
	if !event("response.created", whole("in_progress", nil, nil)) {
		return
	}
	if !admitted {
		if w.status != 0 {
			var body struct {
				Error json.RawMessage `json:"error"`
			}
			_ = json.Unmarshal(w.body.Bytes(), &body) // all refusals have this field
			over()
			event("response.done", whole("failed", obj{{"type", "failed"}, {"error", body.Error}}, nil))
		}
		return
	}
	event("rate_limits.updated", field{"rate_limits", t.limits(x)})
	item := field{"item_id", j.seed.id("item_")}
	if !event("response.output_item.added", field{"response_id", id}, field{"output_index", 0}, field{"item", obj{{"id", item.value}, {"type", "message"}, {"role", "assistant"}, {"content", []any{}}}}) {
		return
	}
	made := int64(0)
	for i, piece := range j.ans.pieces {
		if i > 0 && !x.pause() {
			break
		}
		if i == len(j.ans.pieces)/2 && x.fault.closeEarly {
			panic(http.ErrAbortHandler)
		}
		x.produce(piece.tokens)
		made += piece.tokens
		if !event("response.output_text.delta", field{"response_id", id}, item, field{"output_index", 0}, field{"content_index", 0}, field{"delta", piece.text}) {
			return
		}
	}
	var usage any
	if !x.fault.noUsage {
		read := x.used(j.input).CacheReadTokens
		usage = obj{
			{"total_tokens", j.input + made}, {"input_tokens", j.input}, {"output_tokens", made},
			{"input_token_details", obj{{"text_tokens", j.input}, {"audio_tokens", 0}, {"cached_tokens", read}}},
			{"output_token_details", obj{{"text_tokens", made}, {"audio_tokens", 0}}},
		}
	}
	status, details := "completed", any(nil)
	if made < j.ans.tokens { // the client has cancelled it
		status, details = "cancelled", obj{{"type", "cancelled"}, {"reason", "client_cancelled"}}
	} else if j.ans.cut {
		status, details = "incomplete", obj{{"type", "incomplete"}, {"reason", "max_output_tokens"}}
	}
	x.end()
	over()
	event("response.done", whole(status, details, usage))
}

// limits returns the content of a rate_limits.updated event.
func (t *talk) limits(x *exchange) []any {
	at, states := x.s.book.look(&x.ask)
	list := []any{}
	for _, s := range states {
		list = append(list, obj{
			{"name", s.limit.Unit}, {"limit", s.Size}, {"remaining", s.Remaining},
			{"reset_seconds", wholeSeconds(s.Reset.Sub(at))},
		})
	}
	return list
}
