package mock

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
)

// trailer is the trailer that X-Mock: trailers adds after the body.
const trailer = "X-Mock-Trailer"

// begun is a response whose headers have been sent.
type begun struct {
	x   *exchange
	out io.Writer
	zip *gzip.Writer // nil: not compressed
}

// start sends the headers of a response. The default content type is JSON. A length of -1 means unknown.
func (x *exchange) start(status int, length int64) *begun {
	h := x.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	b := &begun{x: x, out: x.w}
	if x.fault.gzip {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		b.zip = gzip.NewWriter(x.w)
		b.out = b.zip
	}
	if x.fault.trailers {
		h.Set("Trailer", trailer)
	}
	if length >= 0 && !x.fault.gzip && !x.fault.trailers {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	x.w.WriteHeader(status)
	return b
}

// write sends bytes. It returns false if the client has disconnected.
func (b *begun) write(p []byte) bool {
	if _, err := b.out.Write(p); err != nil {
		b.x.gone = true
	}
	return !b.x.gone
}

// flush sends what was written so far.
func (b *begun) flush() {
	if b.zip != nil {
		if b.zip.Flush() != nil {
			b.x.gone = true
		}
	}
	_ = http.NewResponseController(b.x.w).Flush() // recorders without Flush need none
}

// end completes the response.
func (b *begun) end() {
	if b.zip != nil && b.zip.Close() != nil {
		b.x.gone = true
	}
	if b.x.fault.trailers {
		b.x.w.Header().Set(trailer, "end")
	}
}

// cut breaks the connection in the middle of the response.
func (b *begun) cut() {
	b.flush()
	panic(http.ErrAbortHandler)
}

// reply sends a JSON response.
func (x *exchange) reply(status int, body any) {
	text := encode(body)
	ok := status < 300
	if ok && x.fault.errorIn200 {
		_, e := x.s.speaks.broken(x, false)
		text = encode(e)
	}
	if ok && x.fault.body >= 0 {
		x.large(status, text)
		return
	}
	b := x.start(status, int64(len(text)))
	if x.r.Method == http.MethodHead {
		return
	}
	if ok && x.fault.closeEarly {
		b.write(text[:len(text)/2])
		b.cut()
	}
	x.end()
	b.write(text)
	b.end()
}

// padding is a placeholder in the text of a response. large replaces it to reach the size that X-Mock asks for.
const padding = "@padding@"

// filler replaces padding.
var filler = bytes.Repeat([]byte("x"), 64<<10)

// large sends a response of the size that X-Mock asks for, without holding it in memory. It replaces the padding in
// text. If text has no padding, it sends a JSON object that is only padding. It truncates text that is too long.
func (x *exchange) large(status int, text []byte) {
	size := x.fault.body
	b := x.start(status, size)
	if x.r.Method == http.MethodHead {
		return
	}
	before, after, found := bytes.Cut(text, []byte(padding))
	if !found {
		before, after = []byte(`{"padding":"`), []byte(`"}`)
	}
	fill := size - int64(len(before)+len(after))
	if x.fault.closeEarly {
		after, fill = nil, fill/2
	}
	sent := int64(0)
	send := func(p []byte) bool {
		p = p[:min(int64(len(p)), size-sent)]
		sent += int64(len(p))
		return b.write(p)
	}
	if !send(before) {
		return
	}
	for fill > 0 {
		n := min(fill, int64(len(filler)))
		if !send(filler[:n]) {
			return
		}
		fill -= n
	}
	if x.fault.closeEarly {
		b.cut()
	}
	x.end()
	send(after)
	b.end()
}

// stream sends server-sent events, or the elements of a JSON array.
type stream struct {
	*begun
	named bool   // events have names
	next  string // what stands before the next element of an array; empty: events
}

// events begins a stream.
func (x *exchange) events(named bool) *stream {
	x.w.Header().Set("Cache-Control", "no-cache")
	x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return &stream{begun: x.start(http.StatusOK, -1), named: named}
}

// array begins a stream of the elements of a JSON array.
func (x *exchange) array() *stream {
	x.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	return &stream{begun: x.start(http.StatusOK, -1), next: "["}
}

// close ends the response, and the array if it is one.
func (s *stream) close() {
	if s.next == "" || s.write([]byte("]\n")) {
		s.end()
	}
}

// send sends one event and flushes it. It returns false if the client has disconnected.
func (s *stream) send(name string, data any) bool {
	var b bytes.Buffer
	switch {
	case s.next != "":
		b.WriteString(s.next)
		s.next = ",\n"
	case s.named:
		b.WriteString("event: " + name + "\ndata: ")
	default:
		b.WriteString("data: ")
	}
	if text, ok := data.(string); ok {
		b.WriteString(text)
	} else {
		b.Write(encode(data))
	}
	if s.next == "" {
		b.WriteString("\n\n")
	}
	if !s.write(b.Bytes()) {
		return false
	}
	s.flush()
	return !s.x.gone
}

// finish ends the request and sends the last event.
func (s *stream) finish(name string, data any) {
	s.x.end()
	if s.send(name, data) {
		s.close()
	}
}

// pieces sends the pieces of an answer, with pauses in between. event makes an event from the text of a piece. In the
// middle it applies the faults of X-Mock. It returns false if the stream has ended.
func (s *stream) pieces(a *answer, event func(text string) (string, any)) bool {
	x := s.x
	for i, p := range a.pieces {
		if i > 0 && !x.pause() {
			return false
		}
		if i == len(a.pieces)/2 && !s.halfway(event) {
			return false
		}
		x.produce(p.tokens)
		if !s.send(event(p.text)) {
			return false
		}
	}
	return true
}

// halfway applies the faults that X-Mock asks for in the middle of a stream. It returns false if they end the stream.
func (s *stream) halfway(event func(text string) (string, any)) bool {
	f := &s.x.fault
	for left := f.body; left > 0; {
		n := min(left, 16<<10)
		if !s.send(event(string(filler[:n]))) {
			return false
		}
		left -= n
	}
	switch {
	case f.closeEarly:
		s.cut()
	case f.errorIn200:
		s.finish(s.x.s.speaks.broken(s.x, true))
		return false
	}
	return true
}
