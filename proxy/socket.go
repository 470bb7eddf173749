package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
)

// Bounds on a realtime connection.
const (
	maxMessage   = 32 << 20         // bytes of one message
	maxTurns     = 32               // responses that wait or are in progress
	maxWaiting   = 64 << 20         // bytes of waiting messages
	maxOver      = 64               // ended responses whose ids are still known
	writeWithin  = time.Minute      // for writing a message: the peer may read slowly
	closeWithin  = time.Second      // for a peer's closing handshake
	silentFor    = 10 * time.Minute // a response without events for this long is over
	orderWithin  = 50 * time.Millisecond
	stateWithin  = time.Second // for telling the store about limits
	maxCloseText = 120
)

// socket is a realtime connection: the WebSocket of a client, and the matching one to the provider.
type socket struct {
	door   *door
	live   provider.Live
	caller sluicehttp.Caller
	task   string        // the kind of task to choose models for
	to     *http.Request // the request that opened the connection to the provider
	line   *wire.Line
	passed bool // another gate counts

	ctx              context.Context
	cancel           context.CancelFunc
	client, upstream *websocket.Conn
	gone             chan struct{} // closed when the connection to the provider has ended
	running          sync.WaitGroup

	mu      sync.Mutex
	number  int             // of responses asked for
	turns   map[*turn]bool  // responses that wait or are in progress
	sent    []*turn         // sent and not yet heard of, in the order of sending
	open    []*turn         // begun, in the order of beginning
	over    []string        // ids of the responses that ended last
	waiting int             // bytes of waiting messages
	last    <-chan struct{} // closed when the last response asked for was sent, or never will be
	drains  bool
	passing int // messages on their way to the client, which a draining connection waits for
	ended   bool
	end     chan struct{} // closed when one side has ended
	why     ending
}

// ending says why a connection ends.
type ending struct {
	side side
	err  error
}

type side uint8

const (
	bySelf side = iota
	byClient
	byUpstream
)

// run copies messages until one side ends. When it returns, all tickets are closed.
func (s *socket) run() {
	s.client.SetReadLimit(maxMessage)
	s.upstream.SetReadLimit(maxMessage)
	s.turns, s.gone = map[*turn]bool{}, make(chan struct{})
	s.mu.Lock()
	s.end = make(chan struct{})
	if s.drains {
		s.stop(ending{side: bySelf})
	}
	s.mu.Unlock()
	s.running.Go(func() { s.finish(ending{byClient, s.fromClient()}) })
	s.running.Go(func() {
		err := s.fromUpstream()
		s.closedBy(err)
		close(s.gone)
		s.finish(ending{byUpstream, err})
	})
	select {
	case <-s.end:
	case <-s.ctx.Done():
		s.finish(ending{side: bySelf})
	}
	s.mu.Lock()
	why, left := s.why, make([]*turn, 0, len(s.turns))
	for t := range s.turns {
		left = append(left, t)
	}
	s.mu.Unlock()
	for _, t := range left { // first, because closing takes time
		t.abandon(why.side == byUpstream)
	}
	s.shut(why)
	s.cancel()
	s.running.Wait()
}

// finish records why the connection ends. Only the first call counts.
func (s *socket) finish(why ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(why)
}

// stop is finish for callers that hold the lock.
func (s *socket) stop(why ending) {
	if !s.ended && s.end != nil {
		s.ended, s.why = true, why
		close(s.end)
	}
}

// shut closes both connections. The remaining side gets the close code of the other.
func (s *socket) shut(why ending) {
	code, reason := websocket.StatusGoingAway, "the gate ends; connect again"
	var said websocket.CloseError
	switch {
	case errors.As(why.err, &said):
		code, reason = said.Code, said.Reason
	case why.side == byUpstream:
		code, reason = websocket.StatusInternalError, "the connection to the provider was lost"
	case why.side == byClient:
		reason = "the client is gone"
	}
	timer := time.AfterFunc(closeWithin, s.cancel) // cuts off a peer that does not respond
	defer timer.Stop()
	var both sync.WaitGroup
	if why.side != byClient {
		both.Go(func() { _ = s.client.Close(code, reason) })
	}
	if why.side != byUpstream {
		both.Go(func() { _ = s.upstream.Close(code, reason) })
	}
	both.Wait()
}

// drain ends the connection when no response is in progress.
func (s *socket) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drains = true
	s.check()
}

// check ends a draining connection without responses. The caller holds the lock.
func (s *socket) check() {
	if s.drains && len(s.turns) == 0 && s.passing == 0 {
		s.stop(ending{side: bySelf})
	}
}

// hold keeps a draining connection open until release. A response has ended for the gate before its last event is
// written to the client.
func (s *socket) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passing++
}

func (s *socket) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passing--
	s.check()
}

// cut ends the connection at once.
func (s *socket) cut() {
	s.finish(ending{side: bySelf})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil { // it is still being opened
		s.cancel()
	}
}

// fromClient passes on the client's messages. A message that asks for a response waits for its turn.
func (s *socket) fromClient() error {
	for {
		kind, message, err := s.client.Read(s.ctx)
		if err != nil {
			return err
		}
		if !s.passed {
			call := s.live.Said(message)
			switch {
			case call.Unread && !s.door.observe:
				s.refuse(&call, refuse(http.StatusBadRequest, "the message cannot be read", "send one JSON object a message, at most 512 levels deep"))
				continue
			case call.Cancels && s.withdraw(&call):
				continue
			case call.Starts && (!call.Follows || !s.isBusy()):
				s.start(kind, message, &call)
				continue
			}
		}
		if err := s.write(s.upstream, kind, message); err != nil {
			return err
		}
	}
}

// write sends a message to one side.
func (s *socket) write(to *websocket.Conn, kind websocket.MessageType, message []byte) error {
	ctx, cancel := context.WithTimeout(s.ctx, writeWithin)
	defer cancel()
	return to.Write(ctx, kind, message)
}

// isBusy reports whether a response is in progress.
func (s *socket) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)+len(s.open) > 0
}

// start asks the gate for a response.
func (s *socket) start(kind websocket.MessageType, message []byte, call *provider.LiveCall) {
	s.mu.Lock()
	if s.ended || s.drains || len(s.turns) >= maxTurns || s.waiting+len(message) > maxWaiting {
		drains := s.drains
		s.mu.Unlock()
		f := &refusal{status: http.StatusTooManyRequests, message: "too many responses of this connection wait", hint: "ask for fewer at a time", after: time.Second}
		if drains {
			f = &refusal{status: http.StatusServiceUnavailable, message: "this gate is about to end", hint: "connect again", after: time.Second}
		}
		s.refuse(call, f)
		return
	}
	s.number++
	t := newTurn(s, kind, message, call)
	t.before, s.last = s.last, t.passed
	s.turns[t] = true
	s.waiting += len(message)
	s.mu.Unlock()
	s.running.Go(t.run)
	// Later messages of the client are not held. If the gate lets the response go at once, it is sent before them.
	late := time.NewTimer(orderWithin)
	defer late.Stop()
	select {
	case <-t.passed:
	case <-late.C:
	case <-s.ctx.Done():
	}
}

// withdraw drops a waiting response that the client cancels, if the provider does not know of it yet.
func (s *socket) withdraw(call *provider.LiveCall) bool {
	if call.Response != "" || s.isBusy() {
		return false
	}
	s.mu.Lock()
	var first *turn
	for t := range s.turns {
		if !t.wrote && !t.drop && (first == nil || t.number < first.number) && (call.Stream == "" || t.call.Stream == call.Stream) {
			first = t
		}
	}
	if first != nil {
		first.drop = true
	}
	s.mu.Unlock()
	if first == nil {
		return false
	}
	first.cancel(errWithdrawn)
	return true
}

// refuse tells the client, in the provider's format, that there will be no response.
func (s *socket) refuse(call *provider.LiveCall, f *refusal) {
	text := "sluice: " + f.text()
	if message := s.live.Refuse(call, f.status, text, f.after); message != nil {
		if err := s.write(s.client, websocket.MessageText, message); err != nil {
			s.finish(ending{byClient, err})
		}
		return
	}
	code := websocket.StatusInternalError
	switch f.status {
	case http.StatusTooManyRequests:
		code = websocket.StatusTryAgainLater
	case http.StatusBadRequest:
		code = websocket.StatusInvalidFramePayloadData
	}
	s.finish(ending{bySelf, websocket.CloseError{Code: code, Reason: strings.ToValidUTF8(text[:min(len(text), maxCloseText)], "")}})
}

// fromUpstream passes on the provider's messages, and counts them.
func (s *socket) fromUpstream() error {
	for {
		kind, message, err := s.upstream.Read(s.ctx)
		if err != nil {
			return err
		}
		if err := s.passOn(kind, message); err != nil {
			s.finish(ending{byClient, err})
			return err
		}
	}
}

// passOn counts a message of the provider, and passes it on to the client unless it is kept back.
func (s *socket) passOn(kind websocket.MessageType, message []byte) error {
	s.hold()
	defer s.release()
	if !s.passed {
		e := s.live.Told(message)
		if len(e.Header) > 0 && !e.Failed {
			s.state(&provider.Response{Status: http.StatusOK, Header: e.Header})
		}
		if s.take(kind, message, &e) {
			return nil
		}
	}
	return s.write(s.client, kind, message)
}

// closedBy passes an error to the responses that wait, if the provider closed the connection with one.
func (s *socket) closedBy(err error) {
	var said websocket.CloseError
	if s.passed || !errors.As(err, &said) {
		return
	}
	status, body := s.live.Closed(said.Reason)
	if status == 0 {
		return
	}
	s.mu.Lock()
	sent := slices.Clone(s.sent)
	s.mu.Unlock()
	for _, t := range sent {
		t.hear(&heard{status: status, body: body})
	}
	if len(sent) == 0 {
		s.state(&provider.Response{Status: status, Body: body})
	}
}

// state tells the gate what the provider states outside of a response: its limits, or a refusal.
func (s *socket) state(r *provider.Response) {
	asked := s.live.Asked()
	r.Model, r.Received = asked.Model, time.Now()
	observed := s.door.res.Dialect.Observe(r, r.Received)
	answer := observed.Answer(s.door.res.Limits)
	if answer.Status = r.Status; r.Status == http.StatusOK {
		answer.Verdict = store.VerdictNone // the response itself has the verdict
		if len(answer.Limits) == 0 {
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), stateWithin)
	defer cancel()
	_ = s.door.proxy.gate.Observe(ctx, sluice.Request{
		Resource: s.door.name, Agent: s.caller.Agent, Class: s.caller.Class, User: s.caller.User, Model: asked.Part, Key: s.line.Key,
	}, answer) // on a store error the next event states the same
}

// take finds the response that an event belongs to, and adds the event to it. It returns true if the event is not
// passed on, or not yet.
func (s *socket) take(kind websocket.MessageType, message []byte, e *provider.LiveEvent) bool {
	if !e.About && !e.Failed {
		return false
	}
	s.mu.Lock()
	t := s.find(e)
	if t == nil && e.About && !slices.Contains(s.over, e.Response) && (e.Response != "" || e.Content) {
		t = s.unasked()
	}
	if t != nil && e.Response != "" {
		t.id = e.Response
	}
	s.mu.Unlock()
	if t == nil {
		return false
	}
	return t.take(kind, message, e)
}

// find returns the response that an event belongs to. The caller holds the lock.
func (s *socket) find(e *provider.LiveEvent) *turn {
	fits := func(t *turn) bool { return e.Stream == "" || t.call.Stream == e.Stream }
	if e.Failed && !e.About {
		for _, t := range s.sent {
			if e.For != "" && t.call.ID == e.For || e.For == "" && fits(t) {
				return t
			}
		}
		if !e.Ends || e.For != "" {
			return nil
		}
	}
	for _, t := range s.open {
		if e.Response != "" && t.id == e.Response && fits(t) {
			return t
		}
	}
	for _, t := range s.sent { // a response that has begun has its id
		if t.id == e.Response && t.id != "" && fits(t) {
			return t
		}
	}
	if e.Response != "" && !e.Begins && slices.Contains(s.over, e.Response) {
		return nil
	}
	if e.Response == "" {
		for _, t := range slices.Backward(s.open) {
			if fits(t) && (!t.ending || e.Usage) {
				return t
			}
		}
	}
	for _, t := range s.sent {
		if (t.id == "" || e.Response == "") && fits(t) {
			return t
		}
	}
	return nil
}

// unasked returns a response that the provider starts by itself, for instance after the user spoke. It can no longer be
// held, but is counted. The caller holds the lock.
func (s *socket) unasked() *turn {
	if s.ended || len(s.turns) >= maxTurns {
		return nil
	}
	asked := s.live.Asked()
	if !asked.Tokens || asked.Model == "" {
		return nil
	}
	s.number++
	t := newTurn(s, 0, nil, &provider.LiveCall{Asked: &asked})
	t.own = true
	t.begun, t.wrote = true, true
	t.ctx, t.cancel = context.WithCancelCause(s.door.proxy.sockets.ctx) // it is counted even if its connection ends
	s.turns[t] = true
	s.open = append(s.open, t)
	s.door.proxy.sockets.counting.Go(t.run)
	return t
}

// left removes a response that has ended.
func (s *socket) left(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.turns[t] {
		return
	}
	delete(s.turns, t)
	s.sent = slices.DeleteFunc(s.sent, func(x *turn) bool { return x == t })
	s.open = slices.DeleteFunc(s.open, func(x *turn) bool { return x == t })
	s.waiting -= len(t.message)
	if t.id != "" {
		if s.over = append(s.over, t.id); len(s.over) > maxOver {
			s.over = slices.Delete(s.over, 0, 1)
		}
	}
	s.check()
}

// requestOf returns the request that represents a response to the gate.
func (s *socket) requestOf(t *turn) *http.Request {
	caller := s.caller
	caller.Retry = false // the header was about the connection
	caller.RequestID += "-" + strconv.Itoa(t.number)
	if t.own {
		caller.Wait = 0 // no client waits for it: it is counted when there is room
	}
	ctx := sluicehttp.WithCaller(t.ctx, caller)
	if s.task != "" {
		ctx = context.WithValue(ctx, visitKey{}, &visit{task: s.task})
	}
	ctx = wire.With(ctx, &wire.Line{Send: t.send, Gone: s.isGone, Asked: t.call.Asked, Key: s.line.Key})
	r := (&http.Request{
		Method: http.MethodPost, URL: s.to.URL, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: s.to.Header.Clone(), ContentLength: int64(len(t.message)), GetBody: t.body,
	}).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Del("X-Stainless-Retry-Count")
	r.Body, _ = t.body()
	return r
}

func (s *socket) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return s.ctx.Err() != nil
	}
}
