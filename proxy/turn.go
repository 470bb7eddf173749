package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/provider"
)

const (
	// holdFor is how long the first events of a response are kept back, because the provider may refuse it right after.
	// Then the gate asks again, and the client does not notice.
	holdFor = 300 * time.Millisecond
	// lateFor is how long to wait for the usage of a response after its end.
	lateFor = 2 * time.Second
	// maxAhead bounds how many bytes of a response are kept until it can be counted.
	maxAhead = 1 << 20
)

var (
	errSilent    = errors.New("the provider does not answer")
	errWithdrawn = errors.New("the response was cancelled while it waited for its turn")
)

// turn is one response of a realtime connection. The gate sees it as a request with a response of its own.
type turn struct {
	s       *socket
	kind    websocket.MessageType
	message []byte
	call    *provider.LiveCall
	number  int
	own     bool            // the provider started it by itself
	before  <-chan struct{} // closed when the previous one asked for is sent
	passed  chan struct{}   // closed when this one is sent
	pass    func()
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// Guarded by the socket's lock.
	id     string
	wrote  bool // the provider knows of it
	drop   bool // it was withdrawn before it was sent
	ending bool // it has ended, and may still report its usage

	mu    sync.Mutex
	more  sync.Cond // signals a change
	begun bool
	// flushed is closed when the kept events have been passed on. It is set once, when the response begins; nil means
	// that none were kept.
	flushed chan struct{}
	answer  chan *heard // the first news of the response
	held    []said      // events kept until the response has surely begun
	hold    *time.Timer
	src     events
	out     io.ReadCloser // the response body, once it can be read
	usage   bool          // its usage was reported
	dead    bool          // no more events are expected
	left    bool          // the client is gone
	silent  *time.Timer
}

// said is a message from the provider.
type said struct {
	kind    websocket.MessageType
	message []byte
}

// heard is the first news of a response.
type heard struct {
	status int // 200 means that it has begun
	header map[string][]string
	body   []byte
	events []said // to pass to the client
}

func newTurn(s *socket, kind websocket.MessageType, message []byte, call *provider.LiveCall) *turn {
	t := &turn{s: s, kind: kind, message: message, call: call, number: s.number, passed: make(chan struct{}), answer: make(chan *heard, 1)}
	t.more.L = &t.mu
	t.pass = sync.OnceFunc(func() { close(t.passed) })
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	return t
}

// body returns the message as a request body, for the gate.
func (t *turn) body() (io.ReadCloser, error) {
	if len(t.message) == 0 {
		return http.NoBody, nil
	}
	return io.NopCloser(bytes.NewReader(t.message)), nil
}

// run asks the gate, and attaches the response so that the provider's events fill it.
func (t *turn) run() {
	defer t.pass()
	t.s.hold() // a refusal is written after the turn has left the connection
	defer t.s.release()
	if t.before != nil {
		select {
		case <-t.before:
		case <-t.ctx.Done():
		}
	}
	resp, err := t.s.door.gated.RoundTrip(t.s.requestOf(t))
	switch {
	case err != nil:
		t.s.left(t)
		t.fail(err)
	case resp.StatusCode != http.StatusOK:
		events := t.heard()
		_, _ = io.Copy(io.Discard, resp.Body) // reading to the end settles it
		_ = resp.Body.Close()
		t.s.left(t)
		for _, e := range events {
			if err := t.s.write(t.s.client, e.kind, e.message); err != nil {
				t.s.finish(ending{byClient, err})
				return
			}
		}
	default:
		t.attach(resp.Body)
	}
}

// heard returns the provider's events of a refusal, for the client.
func (t *turn) heard() []said {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// fail tells the client that there will be no response.
func (t *turn) fail(err error) {
	cause := context.Cause(t.ctx)
	switch {
	case errors.Is(cause, errWithdrawn):
		t.s.refuse(t.call, &refusal{status: http.StatusBadRequest, message: errWithdrawn.Error()})
	case t.own, t.ctx.Err() != nil, errors.Is(err, wire.ErrGone): // no client waits for it, or the connection ends
	case errors.Is(err, errSilent):
		t.s.refuse(t.call, &refusal{status: http.StatusGatewayTimeout, message: errSilent.Error(), hint: "ask again"})
	default:
		t.s.refuse(t.call, refusalOf(err))
	}
	t.cancel(nil)
}

// send sends the message to the provider, and returns the response when it has begun.
func (t *turn) send(r *http.Request) (*http.Response, error) {
	s := t.s
	trace := httptrace.ContextClientTrace(r.Context())
	if t.own {
		trace.WroteHeaders()
		return t.begin200(), nil
	}
	message, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if t.drop {
		s.mu.Unlock()
		return nil, errWithdrawn
	}
	t.id, t.wrote = "", true
	s.sent = append(s.sent, t)
	s.mu.Unlock()
	t.mu.Lock()
	t.held = nil
	t.mu.Unlock()
	if err := s.write(s.upstream, t.kind, message); err != nil {
		s.unsend(t)
		s.finish(ending{byUpstream, err})
		return nil, wire.ErrGone
	}
	trace.WroteHeaders()
	t.pass()
	silence := time.NewTimer(silentFor)
	defer silence.Stop()
	var a *heard
	select {
	case a = <-t.answer:
	case <-s.gone:
		select { // its last message still counts
		case a = <-t.answer:
		default:
			s.unsend(t)
			return nil, wire.ErrGone
		}
	case <-r.Context().Done():
		s.unsend(t)
		return nil, context.Cause(r.Context())
	case <-silence.C:
		s.unsend(t)
		return nil, errSilent
	}
	if a.status == http.StatusOK {
		return t.begin200(), nil
	}
	s.unsend(t)
	t.mu.Lock()
	t.held = a.events
	t.mu.Unlock()
	header := http.Header{"Content-Type": {"application/json"}}
	for name, values := range a.header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

// begin200 returns the HTTP response for a turn that has begun.
func (t *turn) begin200() *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: &t.src, ContentLength: -1,
	}
}

// unsend removes a response from the sent ones.
func (s *socket) unsend(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = slices.DeleteFunc(s.sent, func(x *turn) bool { return x == t })
}

// hear passes the first news of the response to send.
func (t *turn) hear(a *heard) {
	select {
	case t.answer <- a:
	default: // it already has news
	}
}

// take adds an event to the response. It returns true if the event is not passed on, or not yet.
func (t *turn) take(kind websocket.MessageType, message []byte, e *provider.LiveEvent) bool {
	t.mu.Lock()
	if !t.begun && e.Failed {
		t.stopHold()
		events := append(t.held, said{kind, message})
		t.held = nil
		t.s.unsend(t)
		t.mu.Unlock()
		status := e.Status
		if status < 400 || status > 599 {
			status = http.StatusBadRequest // a retry is not known to help
		}
		t.hear(&heard{status: status, header: e.Header, body: message, events: events})
		return true
	}
	if !t.begun && e.Begins && !t.s.door.observe {
		t.held = append(t.held, said{kind, message})
		if t.hold == nil {
			t.hold = time.AfterFunc(holdFor, t.begin)
		}
		t.mu.Unlock()
		return true
	}
	t.mu.Unlock()
	t.begin()
	t.mu.Lock()
	if !t.begun || t.dead { // it ended in the meantime
		t.mu.Unlock()
		return false
	}
	t.usage = t.usage || e.Usage
	ends := e.Ends || t.isEnding() && e.Usage
	if ends && e.Late && !t.usage && !t.isEnding() { // it may report its usage later
		ends = false
		t.setEnding()
	}
	t.feed(message, ends)
	t.mu.Unlock()
	if ends {
		t.over()
	}
	return false
}

func (t *turn) isEnding() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.ending
}

func (t *turn) setEnding() {
	t.s.mu.Lock()
	t.ending = true
	t.s.mu.Unlock()
	t.silent.Reset(lateFor)
}

// stopHold stops the hold timer. The caller holds the lock.
func (t *turn) stopHold() {
	if t.hold != nil {
		t.hold.Stop()
		t.hold = nil
	}
}

// begin records that the response has begun, and passes on the kept events. Later events wait until that is done.
func (t *turn) begin() {
	held, flushed, first := t.beginning()
	if !first {
		if flushed != nil {
			<-flushed
		}
		return
	}
	defer close(flushed)
	for _, e := range held {
		if err := t.s.write(t.s.client, e.kind, e.message); err != nil {
			t.s.finish(ending{byClient, err})
			return
		}
	}
}

// beginning is the part of begin before messages are written, which may take a while.
func (t *turn) beginning() (held []said, flushed chan struct{}, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent == nil && !t.dead {
		t.silent = time.AfterFunc(silentFor, t.silence)
	}
	if t.begun || t.dead {
		return nil, t.flushed, false
	}
	t.stopHold()
	s := t.s
	s.mu.Lock()
	known := slices.Contains(s.sent, t)
	if known {
		s.sent = slices.DeleteFunc(s.sent, func(x *turn) bool { return x == t })
		s.open = append(s.open, t)
	}
	s.mu.Unlock()
	if !known {
		return nil, nil, false // it was refused or ended in the meantime
	}
	t.begun, t.flushed = true, make(chan struct{})
	t.hear(&heard{status: http.StatusOK})
	held, t.held = t.held, nil
	for _, e := range held {
		t.feed(e.message, false)
	}
	return held, t.flushed, true
}

// feed adds an event to the response body. The caller holds the lock.
func (t *turn) feed(message []byte, ends bool) {
	for t.out == nil && !t.own && !t.dead && len(t.src.ahead) > maxAhead { // it can be read soon
		t.more.Wait()
	}
	if t.dead {
		return
	}
	if t.silent != nil && !ends && !t.isEnding() {
		t.silent.Reset(silentFor)
	}
	if t.own && t.out == nil && len(message) > maxAhead { // it waits to be counted
		message = nil
	}
	if t.own && t.out == nil && !ends {
		message = nil // usage is reported at the end
	}
	if len(message) > 0 {
		t.src.ahead = append(append(t.src.ahead, message...), '\n')
	}
	if ends && t.src.err == nil {
		t.src.err = io.EOF
	}
	t.drain()
}

// drain reads the response as far as it has arrived. The caller holds the lock.
func (t *turn) drain() {
	if t.out == nil {
		return
	}
	p := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(p)
	for {
		n, err := t.out.Read(p[:])
		if err != nil || n == 0 {
			return
		}
	}
}

// attach takes over the response, to read it.
func (t *turn) attach(answer io.ReadCloser) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out = answer
	t.drain()
	if t.dead {
		t.close()
	}
	t.more.Broadcast()
}

// over ends a complete response.
func (t *turn) over() {
	t.mu.Lock()
	t.end()
	if t.out != nil {
		t.close()
	}
	t.mu.Unlock()
	t.s.left(t)
}

// end stops the timers and wakes waiting readers. The caller holds the lock.
func (t *turn) end() {
	t.dead = true
	t.stopHold()
	if t.silent != nil {
		t.silent.Stop()
	}
	t.more.Broadcast()
}

// close closes the response: complete, cut off as src says, or abandoned by the client. The caller holds the lock.
func (t *turn) close() {
	if !t.left {
		if t.src.err == nil {
			t.src.err = io.ErrUnexpectedEOF
		}
		t.drain()
	}
	_ = t.out.Close()
	t.cancel(nil)
}

// silence ends a response that had no events for long.
func (t *turn) silence() {
	if t.isEnding() {
		t.mu.Lock()
		if t.src.err == nil {
			t.src.err = io.EOF
		}
		t.mu.Unlock()
	}
	t.over()
}

// abandon ends a response because its connection ends. lost reports that the provider is gone; otherwise the client is.
func (t *turn) abandon(lost bool) {
	t.mu.Lock()
	t.left = !lost && t.src.err == nil
	if t.own && t.out == nil && t.src.err == nil { // count what has arrived
		t.left, t.src.err = false, io.ErrUnexpectedEOF
	}
	t.end()
	attached := t.out != nil
	if attached {
		t.close()
	}
	t.mu.Unlock()
	if !attached && !t.own {
		t.cancel(nil)
	}
	t.s.left(t)
}

// events is the response's events as a body. Readers hold the turn's lock, except for the gate, which reads only the
// bodies of refusals.
type events struct {
	ahead []byte
	err   error
}

func (e *events) Read(p []byte) (int, error) {
	n := copy(p, e.ahead)
	if e.ahead = e.ahead[n:]; n == 0 {
		if cap(e.ahead) > bufferSize {
			e.ahead = nil
		}
		return 0, e.err
	}
	return n, nil
}

func (e *events) Close() error { return nil }
