package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/provider"
)

// keepAlive keeps a client's connection alive while its streaming request is held: it begins the answer, and sends events that
// clients pass over. From the first one on the status is 200, so whatever goes wrong later is told as an event, too.
type keepAlive struct {
	door  *door
	event []byte
	every time.Duration
	id    string // of the request

	mu    sync.Mutex
	w     http.ResponseWriter
	timer *time.Timer // nil: it is no stream
	began bool
	over  bool
}

// What streams are kept alive with.
var (
	pingEvent    = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n") // as Anthropic sends it
	commentEvent = []byte(": keep-alive\n\n")                            // which every reader of server-sent events passes over
)

// sign is what keeps the streams of a request alive, nil if they are no server-sent events.
func (d *door) sign(r *http.Request) []byte {
	if d.speaker == nil || d.observe || d.res.KeepAlive <= 0 || d.res.KeepAlive >= d.res.Deadline {
		return nil
	}
	switch d.res.Dialect.Name() {
	case "anthropic":
		return pingEvent
	case "bedrock": // frames of Amazon's
		return nil
	case "gemini":
		if r.URL.Query().Get("alt") != "sse" && !strings.Contains(r.URL.Path, "/openai/") {
			return nil
		}
	}
	return commentEvent
}

// keep begins to count down if the request is a stream. The transport calls it before the request waits.
func (k *keepAlive) keep(asked *provider.ParsedRequest) {
	if !asked.Stream {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(k.every, k.beat)
}

// beat sends a sign of life.
func (k *keepAlive) beat() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	if !k.began {
		k.began = true
		h := k.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set(requestid.Header, k.id)
		h.Set(headerHeld, "1")
		_ = http.NewResponseController(k.w).EnableFullDuplex() // or HTTP/1.1 would drop what is unread of the client's body
		k.w.WriteHeader(http.StatusOK)
	}
	_, _ = k.w.Write(k.event)                   // that the client is gone its context tells
	_ = http.NewResponseController(k.w).Flush() // likewise
	k.timer.Reset(k.every)
}

// headerHeld tells that an answer was begun by the gate, while the request waited.
const headerHeld = "X-Sluice-Held"

// end stops the signs of life. It reports that the answer has begun. Afterwards nothing else writes.
func (k *keepAlive) end() (began bool) {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over = true; k.timer != nil {
		k.timer.Stop()
	}
	return k.began
}

// pass passes back an answer to a stream that has begun.
func (k *keepAlive) pass(resp *http.Response) {
	defer func() { _ = resp.Body.Close() }() // nobody could be told
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := io.Reader(resp.Body)
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") { // the client was told that it is plain
		plain, err := gzip.NewReader(resp.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		body = plain
	}
	if resp.StatusCode < 300 && kind == "text/event-stream" {
		flush := func() { _ = http.NewResponseController(k.w).Flush() }
		if !copyBody(k.w, body, flush) {
			panic(http.ErrAbortHandler)
		}
		return
	}
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	k.fail(resp.StatusCode, text)
}

// maxErrorBody is how much of an error is passed on in an event.
const maxErrorBody = 256 << 10

// fail ends a stream that has begun with an error in the provider's own form. The body is the error as it would have been
// answered.
func (k *keepAlive) fail(status int, body []byte) {
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil || compact.Len() == 0 || compact.Bytes()[0] != '{' {
		_, body = k.door.speaker.Refuse(status, "the provider answered "+http.StatusText(status)+", and not with a stream")
		compact.Reset()
		if json.Compact(&compact, body) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	var event bytes.Buffer
	if bytes.Equal(k.event, pingEvent) {
		event.WriteString("event: error\n")
	}
	event.WriteString("data: ")
	event.Write(compact.Bytes())
	event.WriteString("\n\n")
	_, _ = k.w.Write(event.Bytes()) // who is gone misses nothing
	_ = http.NewResponseController(k.w).Flush()
}

// refuse is fail for a refusal of the gate's own.
func (k *keepAlive) refuse(f *refusal) {
	k.door.proxy.log.Debug("not sent on", "request_id", k.id, "resource", k.door.name, "status", f.status, "reason", f.message, "held", true)
	_, body := k.door.speaker.Refuse(f.status, "sluice: "+f.text())
	k.fail(f.status, body)
}
