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

// keepAlive keeps a client's connection alive while its streaming request is held: it begins the response and sends
// events that clients ignore. From the first event on the status is 200, so later errors are sent as events too.
type keepAlive struct {
	door  *door
	event []byte
	every time.Duration
	id    string // of the request

	mu    sync.Mutex
	w     http.ResponseWriter
	timer *time.Timer // nil if the request is no stream
	began bool
	over  bool
}

// The events that keep streams alive.
var (
	pingEvent    = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n") // as Anthropic sends it
	commentEvent = []byte(": keep-alive\n\n")                            // every reader of server-sent events ignores it
)

// sign returns the keep-alive event for a request's stream, or nil if the stream does not use server-sent events.
func (d *door) sign(r *http.Request) []byte {
	if d.speaker == nil || d.observe || d.res.KeepAlive <= 0 || d.res.KeepAlive >= d.res.Deadline {
		return nil
	}
	switch d.res.Dialect.Name() {
	case "anthropic":
		return pingEvent
	case "bedrock": // uses Amazon's own frames
		return nil
	case "gemini":
		if r.URL.Query().Get("alt") != "sse" && !strings.Contains(r.URL.Path, "/openai/") {
			return nil
		}
	}
	return commentEvent
}

// keep starts the timer if the request is a stream. The transport calls it before the request waits.
func (k *keepAlive) keep(asked *provider.ParsedRequest) {
	if !asked.Stream {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(k.every, k.beat)
}

// beat sends a keep-alive event.
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
		_ = http.NewResponseController(k.w).EnableFullDuplex() // otherwise HTTP/1.1 would drop the unread rest of the client's body
		k.w.WriteHeader(http.StatusOK)
	}
	_, _ = k.w.Write(k.event)                   // if the client is gone, its context ends
	_ = http.NewResponseController(k.w).Flush() // the same
	k.timer.Reset(k.every)
}

// headerHeld marks a response that the gate began while the request waited.
const headerHeld = "X-Sluice-Held"

// end stops the keep-alive events and reports whether the response has begun. After it, nothing else writes.
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

// pass sends the provider's response into a stream that has begun.
func (k *keepAlive) pass(resp *http.Response) {
	defer func() { _ = resp.Body.Close() }() // the error has no receiver
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := io.Reader(resp.Body)
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") { // the client was told that the stream is plain
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

// maxErrorBody bounds how much of an error is sent in an event.
const maxErrorBody = 256 << 10

// fail ends a stream that has begun with an error event in the provider's own format. body is the error that the
// response would have held.
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
	_, _ = k.w.Write(event.Bytes()) // an error means that the client is gone
	_ = http.NewResponseController(k.w).Flush()
}

// refuse is like fail, for the gate's own refusals.
func (k *keepAlive) refuse(f *refusal) {
	k.door.proxy.log.Debug("not sent on", "request_id", k.id, "resource", k.door.name, "status", f.status, "reason", f.message, "held", true)
	_, body := k.door.speaker.Refuse(f.status, "sluice: "+f.text())
	k.fail(f.status, body)
}
