package mock

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// gemini serves generateContent and the Live API.
type gemini struct{}

// pathLive is the last element of the Live API's path.
const pathLive = ".GenerativeService.BidiGenerateContent"

// generate is the relevant part of a request for content.
type generate struct {
	Contents json.RawMessage `json:"contents"`
	System   json.RawMessage `json:"systemInstruction"`
	Tools    json.RawMessage `json:"tools"`
	Config   struct {
		MaxOutput int64 `json:"maxOutputTokens"`
	} `json:"generationConfig"`
}

func (p gemini) serve(x *exchange) {
	path := x.r.URL.Path
	_, call, _ := strings.Cut(path, "/models/")
	model, method, _ := strings.Cut(call, ":")
	switch {
	case strings.HasSuffix(path, pathLive) && x.isSocket():
		p.live(x)
	case model != "" && (method == "generateContent" || method == "streamGenerateContent"):
		p.generate(x, model, method == "streamGenerateContent")
	case model != "" && method == "" && x.r.Method == http.MethodGet:
		x.free()
		x.reply(http.StatusOK, obj{{"name", "models/" + model}, {"displayName", model}})
	default:
		x.missing()
	}
}

func (p gemini) generate(x *exchange, model string, streamed bool) {
	if !x.allow(http.MethodPost) {
		return
	}
	body, ok := x.read()
	if !ok {
		return
	}
	var g generate
	if json.Unmarshal(body, &g) != nil || len(g.Contents) == 0 {
		x.fail(http.StatusBadRequest, "Invalid JSON payload received: contents are missing.")
		return
	}
	j := &job{model: model, parts: [][]byte{compact(g.System), compact(g.Contents), compact(g.Tools)}, most: max(g.Config.MaxOutput, 0)}
	if !p.admit(x, j) {
		return
	}
	if !streamed {
		if !x.fault.errorIn200 {
			x.produce(j.ans.tokens)
		}
		x.reply(http.StatusOK, p.content(x, j, x.text(j.ans), true))
		return
	}
	begin := x.array
	if x.r.URL.Query().Get("alt") == "sse" {
		begin = func() *stream { return x.events(false) }
	}
	s := begin()
	left := len(j.ans.pieces)
	ok = s.pieces(j.ans, func(text string) (string, any) {
		left--
		return "", p.content(x, j, text, left == 0)
	})
	if ok {
		x.end()
		s.close()
	}
}

// admit decides whether a job is accepted, and makes its answer.
func (p gemini) admit(x *exchange, j *job) bool {
	j.input = tokensOf(j.parts...)
	class := strings.ToLower(j.model)
	a := ask{class: class[:min(len(class), maxName)], takes: []amount{{sim.Requests, 1}, {sim.InputTokens, j.input}}}
	if !x.admit(a, j.model, x.used(j.input)) || !x.begin() {
		return false
	}
	j.seed = seedOf(append(j.parts, []byte(j.model))...)
	j.ans = x.s.respond(j.seed, nil, j.most)
	return true
}

// content returns a response, or one piece of a streamed response.
func (p gemini) content(x *exchange, j *job, text string, last bool) obj {
	candidate := obj{{"content", obj{{"parts", []any{obj{{"text", text}}}}, {"role", "model"}}}, {"index", 0}}
	if last {
		reason := "STOP"
		if j.ans.cut {
			reason = "MAX_TOKENS"
		}
		candidate = append(candidate, field{"finishReason", reason})
	}
	return obj{
		{"candidates", []any{candidate}}, {"usageMetadata", j.geminiUsage("candidatesTokenCount", j.ans.tokens)}, {"modelVersion", j.model}, {"responseId", j.seed.id("")},
	}.without(x.fault.noUsage || !last, "usageMetadata")
}

func (j *job) geminiUsage(output string, made int64) obj {
	return obj{{"promptTokenCount", j.input}, {output, made}, {"totalTokenCount", j.input + made}}
}

// liveTalk is a session of the Live API.
type liveTalk struct {
	p gemini
	s *socket

	mu    sync.Mutex
	model string
	most  int64
	items [][]byte
	last  sync.Mutex // serializes answers
}

// live serves the Live API.
func (p gemini) live(x *exchange) {
	t := &liveTalk{p: p}
	x.upgrade(func(s *socket) { t.s = s }, func(_ *socket, message []byte) { t.handle(message) })
}

func (t *liveTalk) handle(message []byte) {
	var setup struct {
		Model  string          `json:"model"`
		System json.RawMessage `json:"systemInstruction"`
		Config struct {
			MaxOutput int64 `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	m := members(message)
	if m == nil || m["setup"] != nil && json.Unmarshal(m["setup"], &setup) != nil {
		t.s.close(websocket.StatusInvalidFramePayloadData, "Invalid JSON payload received.")
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	starts := false
	switch {
	case m["setup"] != nil:
		t.model, t.most = strings.TrimPrefix(setup.Model, "models/"), setup.Config.MaxOutput
		t.items = [][]byte{compact(setup.System)}
		t.s.send(obj{{"setupComplete", obj{}}})
		return
	case t.model == "":
		t.s.close(websocket.StatusPolicyViolation, "setup must be the first message and only the first")
		return
	case m["clientContent"] != nil:
		client := members(m["clientContent"])
		t.items = append(t.items, compact(client["turns"]))
		starts = string(client["turnComplete"]) == "true"
	case m["realtimeInput"] != nil:
		input := members(m["realtimeInput"])
		said := text(input["text"])
		// audioStreamEnd ends the user's turn, like activityEnd.
		starts = said != "" || input["activityEnd"] != nil || string(input["audioStreamEnd"]) == "true"
		if starts {
			t.items = append(t.items, encode(said))
		}
	case m["toolResponse"] != nil:
		t.items = append(t.items, compact(m["toolResponse"]))
		starts = true
	}
	if !starts {
		return
	}
	j := &job{model: t.model, parts: append([][]byte(nil), t.items...), most: t.most}
	w := record()
	t.s.serve(t.s.ctx, message, w, func(x *exchange) { t.answer(x, j, w) })
}

// answer sends one turn of the model, in binary messages as Gemini does.
func (t *liveTalk) answer(x *exchange, j *job, w *recorded) {
	t.last.Lock()
	defer t.last.Unlock()
	send := func(v any) bool { return t.s.conn.Write(t.s.ctx, websocket.MessageBinary, encode(v)) == nil }
	if !t.p.admit(x, j) {
		if w.status != 0 {
			var body struct {
				Error struct {
					Message string `json:"message"`
				} `json:"error"`
			}
			_ = json.Unmarshal(w.body.Bytes(), &body) // all refusals have one
			t.s.close(websocket.StatusInternalError, body.Error.Message)
		}
		return
	}
	made := int64(0)
	for i, piece := range j.ans.pieces {
		if i > 0 && !x.pause() {
			return
		}
		if i == len(j.ans.pieces)/2 && x.fault.closeEarly {
			panic(http.ErrAbortHandler)
		}
		x.produce(piece.tokens)
		made += piece.tokens
		if !send(obj{{"serverContent", obj{{"modelTurn", obj{{"parts", []any{obj{{"text", piece.text}}}}}}}}}) {
			return
		}
	}
	t.mu.Lock()
	t.items = append(t.items, encode(j.ans.text()))
	t.mu.Unlock()
	send(obj{{"serverContent", obj{{"generationComplete", true}}}})
	x.end()
	send(obj{{"serverContent", obj{{"turnComplete", true}}}, {"usageMetadata", j.geminiUsage("responseTokenCount", made)}}.without(x.fault.noUsage, "usageMetadata"))
}

func (gemini) hello(h http.Header) { h.Set("Server", "scaffolding on HTTPServer2") }

// headers sets none: Gemini does not state its limits.
func (gemini) headers(http.Header, store.Time, []stated) {}

func (p gemini) refuse(h http.Header, d *decision) (int, any) {
	back := max(d.back, time.Second)
	message := fmt.Sprintf("You exceeded your current quota: %s, limit: %d. Please retry in %ss.", d.limit.Name, d.limit.Size, strconv.FormatFloat(back.Seconds(), 'f', 3, 64))
	return http.StatusTooManyRequests, obj{{"error", obj{
		{"code", http.StatusTooManyRequests}, {"message", message}, {"status", "RESOURCE_EXHAUSTED"},
		{"details", []any{obj{{"@type", "type.googleapis.com/google.rpc.RetryInfo"}, {"retryDelay", strconv.FormatInt(wholeSeconds(back), 10) + "s"}}}},
	}}}
}

func (gemini) problem(_ http.Header, status int, message string) any {
	word := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[status]
	if word == "" {
		word = "INTERNAL"
	}
	return obj{{"error", obj{{"code", status}, {"message", message}, {"status", word}}}}
}

func (p gemini) broken(*exchange, bool) (string, any) {
	return "", p.problem(nil, http.StatusInternalServerError, "An internal error has occurred. Please retry.")
}
