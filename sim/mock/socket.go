package mock

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// socket is a WebSocket on which a client requests many responses.
type socket struct {
	x       *exchange
	conn    *websocket.Conn
	ctx     context.Context
	running sync.WaitGroup
}

// isSocket reports whether the request opens a WebSocket.
func (x *exchange) isSocket() bool {
	return x.r.Method == http.MethodGet && strings.EqualFold(x.r.Header.Get("Upgrade"), "websocket")
}

// upgrade serves a WebSocket until either side closes it. It calls greet first, if it is not nil, and then handle for
// each message of the client.
func (x *exchange) upgrade(greet func(s *socket), handle func(s *socket, message []byte)) {
	x.free()
	conn, err := websocket.Accept(x.w, x.r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{"realtime"}})
	if err != nil {
		return // Accept has sent the response
	}
	conn.SetReadLimit(maxRequest)
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	defer cancel()
	s := &socket{x: x, conn: conn, ctx: ctx}
	stopped := context.AfterFunc(x.s.stopping, func() { _ = conn.Close(websocket.StatusGoingAway, "the server ends") })
	defer stopped()
	defer func() { _ = conn.CloseNow() }()
	defer s.running.Wait()
	defer cancel()
	if greet != nil {
		greet(s)
	}
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			return
		}
		handle(s, message)
	}
}

// send sends an event. It returns false if the client has disconnected.
func (s *socket) send(event any) bool {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, encode(event)) == nil
}

// close closes the connection with a reason, in the background.
func (s *socket) close(code websocket.StatusCode, reason string) {
	s.running.Go(func() { _ = s.conn.Close(code, reason[:min(len(reason), 120)]) })
}

// serve answers one message as a separate request, in the background. X-Mock may break the connection.
func (s *socket) serve(ctx context.Context, message []byte, w http.ResponseWriter, answer func(x *exchange)) {
	s.running.Go(func() {
		defer func() {
			if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // net/http panics with it as it is
				_ = s.conn.CloseNow()
			} else if p != nil {
				panic(p)
			}
		}()
		r := s.x.r.Clone(ctx)
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(message)), int64(len(message))
		x := &exchange{s: s.x.s, w: w, r: r, fault: s.x.fault}
		defer x.end()
		answer(x)
	})
}

// members returns the members of a JSON object by their exact names, or nil if it is not an object. Providers tell
// cases apart; encoding/json does not when it fills a struct.
func members(object []byte) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil {
		return nil
	}
	return all
}

// text returns a JSON string, or "" for any other value.
func text(value []byte) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// recorded keeps the response to a message instead of sending it.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func record() *recorded { return &recorded{header: http.Header{}} }

func (w *recorded) Header() http.Header         { return w.header }
func (w *recorded) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *recorded) WriteHeader(status int)      { w.status = status }

// eventual sends the events of a response as messages, and an error response as one event.
type eventual struct {
	recorded
	s     *socket
	extra []field // added to every event
}

func (w *eventual) Write(p []byte) (int, error) {
	if !strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream") {
		return w.body.Write(p)
	}
	_, data, ok := bytes.Cut(p, []byte("data: "))
	if !ok {
		return len(p), nil
	}
	data = bytes.TrimSpace(data)
	if len(w.extra) > 0 {
		data = append(append(bytes.TrimSuffix(data, []byte("}")), ','), encode(obj(w.extra))[1:]...)
	}
	if !w.s.send(json.RawMessage(data)) {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// fail sends the error response, if there is one.
func (w *eventual) fail() {
	if w.body.Len() == 0 {
		return
	}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(w.body.Bytes(), &body) // all errors have this field
	headers := obj{}
	for _, name := range slices.Sorted(maps.Keys(w.header)) {
		headers = append(headers, field{strings.ToLower(name), w.header.Get(name)})
	}
	w.s.send(append(obj{{"type", "error"}, {"status", w.status}, {"error", body.Error}, {"headers", headers}}, w.extra...))
}
