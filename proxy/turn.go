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
	// holdFor is how long the news that a response has begun is kept back: it may be refused right after. Then it is asked for again,
	// and the client need not know.
	holdFor = 300 * time.Millisecond
	// lateFor is how long the usage of a response is waited for after its end.
	lateFor = 2 * time.Second
	// maxAhead bounds what is kept of a response that has begun until it can be counted.
	maxAhead = 1 << 20
)

var (
	errSilent    = errors.New("the provider does not answer")
	errWithdrawn = errors.New("the response was cancelled while it waited for its turn")
)

// turn is one response of a realtime connection. For the gate it is a request by itself, with its answer.
type turn struct {
	s       *socket
	kind    websocket.MessageType
	message []byte
	call    *provider.LiveCall
	number  int
	own     bool            // the provider has started it by itself
	before  <-chan struct{} // closed when the one that was asked for before is sent
	passed  chan struct{}   // closed when this one is
	pass    func()
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// With the socket's lock.
	id     string
	wrote  bool // the provider knows of it
	drop   bool // it was withdrawn before
	ending bool // it has ended, and may still say what was used

	mu    sync.Mutex
	more  sync.Cond // something has changed
	begun bool
	// flushed is closed when what was kept back has been passed on. It is set once, when the response begins; nil: nothing was.
	flushed chan struct{}
	answer  chan *heard // what was heard first
	held    []said      // kept back until it is certain that it has begun
	hold    *time.Timer
	src     events
	out     io.ReadCloser // the answer, once it can be read
	usage   bool          // it has said what was used
	dead    bool          // nothing more is heard of it
	left    bool          // because the client is gone
	silent  *time.Timer
}

// said is a message of the provider.
type said struct {
	kind    websocket.MessageType
	message []byte
}

// heard is what is heard first of a response.
type heard struct {
	status int // 200: it has begun
	header map[string][]string
	body   []byte
	events []said // for the client
}

func newTurn(s *socket, kind websocket.MessageType, message []byte, call *provider.LiveCall) *turn {
	t := &turn{s: s, kind: kind, message: message, call: call, number: s.number, passed: make(chan struct{}), answer: make(chan *heard, 1)}
	t.more.L = &t.mu
	t.pass = sync.OnceFunc(func() { close(t.passed) })
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	return t
}

// body is the message, for the gate.
func (t *turn) body() (io.ReadCloser, error) {
	if len(t.message) == 0 {
		return http.NoBody, nil
	}
	return io.NopCloser(bytes.NewReader(t.message)), nil
}

// run asks the gate, and hands the answer over to whoever reads what the provider says.
func (t *turn) run() {
	defer t.pass()
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
		_, _ = io.Copy(io.Discard, resp.Body) // then it is settled
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

// heard is what the provider said when it refused, for the client.
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

// send sends the message on, and returns the answer when it has begun.
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
		select { // the last that it said counts
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

// begin200 is the answer of a response that has begun.
func (t *turn) begin200() *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: &t.src, ContentLength: -1,
	}
}

// unsend takes a response out of those that were sent.
func (s *socket) unsend(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = slices.DeleteFunc(s.sent, func(x *turn) bool { return x == t })
}

// hear tells the sender what is heard first.
func (t *turn) hear(a *heard) {
	select {
	case t.answer <- a:
	default: // it has heard already
	}
}

// take takes in an event of the response. It reports that the event is not passed on, or not yet.
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
			status = http.StatusBadRequest // it is not known to help if it is asked for again
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
	if !t.begun || t.dead { // it is gone meanwhile
		t.mu.Unlock()
		return false
	}
	t.usage = t.usage || e.Usage
	ends := e.Ends || t.isEnding() && e.Usage
	if ends && e.Late && !t.usage && !t.isEnding() { // it may say later what was used
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

// stopHold is called with the lock held.
func (t *turn) stopHold() {
	if t.hold != nil {
		t.hold.Stop()
		t.hold = nil
	}
}

// begin notes that the response has begun, and passes on what was kept back. What comes next must not overtake that.
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

// beginning is begin up to where messages are written, which may take a while.
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
		return nil, nil, false // it was refused meanwhile, or is gone
	}
	t.begun, t.flushed = true, make(chan struct{})
	t.hear(&heard{status: http.StatusOK})
	held, t.held = t.held, nil
	for _, e := range held {
		t.feed(e.message, false)
	}
	return held, t.flushed, true
}

// feed adds an event to the answer. It is called with the lock held.
func (t *turn) feed(message []byte, ends bool) {
	for t.out == nil && !t.own && !t.dead && len(t.src.ahead) > maxAhead { // soon it can be read
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
		message = nil // what was used is said at the end
	}
	if len(message) > 0 {
		t.src.ahead = append(append(t.src.ahead, message...), '\n')
	}
	if ends && t.src.err == nil {
		t.src.err = io.EOF
	}
	t.drain()
}

// drain reads the answer as far as it has come. It is called with the lock held.
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

// attach takes over the answer, to read it.
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

// over ends a response that is complete.
func (t *turn) over() {
	t.mu.Lock()
	t.end()
	if t.out != nil {
		t.close()
	}
	t.mu.Unlock()
	t.s.left(t)
}

// end is called with the lock held.
func (t *turn) end() {
	t.dead = true
	t.stopHold()
	if t.silent != nil {
		t.silent.Stop()
	}
	t.more.Broadcast()
}

// close ends the answer: complete, or broken off as src says, or left. It is called with the lock held.
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

// silence is called when nothing was heard of the response for long.
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

// abandon ends a response because its connection does. lost tells that the provider is gone, else the client is.
func (t *turn) abandon(lost bool) {
	t.mu.Lock()
	t.left = !lost && t.src.err == nil
	if t.own && t.out == nil && t.src.err == nil { // count it as far as it has come
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

// events is what a response says, as the body of an answer. Its turn's lock is held when it is read, except by the gate, which only
// reads the bodies of refusals.
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
