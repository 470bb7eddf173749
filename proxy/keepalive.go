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
// what the client skips. From the first time on the status is 200, so later errors are sent as events too.
type keepAlive struct {
	door   *door
	header http.Header // of the request
	every  time.Duration
	id     string // of the request

	mu    sync.Mutex
	w     http.ResponseWriter
	hold  *provider.Hold
	line  string      // what the client skips
	timer *time.Timer // nil if nothing is sent
	began bool
	over  bool
}

// keepAlive returns what keeps a request's connection alive, or nil if nothing is sent on any stream.
func (d *door) keepAlive(w http.ResponseWriter, r *http.Request, id string) *keepAlive {
	if d.observe || d.res.KeepAlive <= 0 || d.res.KeepAlive >= d.res.Deadline {
		return nil
	}
	return &keepAlive{door: d, header: r.Header, every: d.res.KeepAlive, id: id, w: w}
}

// keep starts the timer if the request is a stream that can be kept alive. The transport calls it before the request
// waits.
func (k *keepAlive) keep(asked *provider.ParsedRequest) {
	if asked.Hold == nil {
		return
	}
	line := asked.Hold.Line(k.door.proxy.clients.Of(k.header).Bears(k.door.res.Dialect.Name()))
	if line == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hold, k.line = asked.Hold, line
	k.timer = time.AfterFunc(k.every, k.beat)
}

// beat sends a keep-alive.
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
	_, _ = io.WriteString(k.w, k.line)          // if the client is gone, its context ends
	_ = http.NewResponseController(k.w).Flush() // the same
	k.timer.Reset(k.every)
}

// headerHeld marks a response that the gate began while the request waited.
const headerHeld = "X-Sluice-Held"

// end stops the keep-alive and reports whether the response has begun. After it, nothing else writes.
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
	_, _ = k.w.Write(k.hold.Failure(compact.Bytes())) // an error means that the client is gone
	_ = http.NewResponseController(k.w).Flush()
}

// refuse is like fail, for the gate's own refusals.
func (k *keepAlive) refuse(f *refusal) {
	k.door.proxy.log.Debug("not sent on", "request_id", k.id, "resource", k.door.name, "status", f.status, "reason", f.message, "held", true)
	_, body := k.door.speaker.Refuse(f.status, "sluice: "+f.text())
	k.fail(f.status, body)
}
