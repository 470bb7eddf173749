package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/sluicehttp"
)

// An exchange is a request that its client sends by itself, in its turn. The daemon gates it as it gates one that passes the proxy: the
// same transport reads the request, waits, judges the response, decides whether to send again, and settles the usage. Only the bytes
// between client and provider do not pass the daemon; the client reports them.

// Away is what exchanges need of the proxy.
type Away interface {
	// ResourceAt returns the resource that a URL belongs to, or "" if there is none.
	ResourceAt(u *url.URL) string
	// CannotSend says why clients cannot send requests to a resource by themselves; "" if they can.
	CannotSend(resource string) (why, hint string)
	// Patience returns how long a client of a resource is held by default.
	Patience(resource string) time.Duration
	// Away gates a request; see [proxy.Proxy.Away].
	Away(ctx context.Context, resource string, c sluicehttp.Caller, r *http.Request, away *wire.Away) (*http.Response, error)
	// Stay keeps what serves the current request until leave is called.
	Stay() (leave func())
}

const (
	// maxExchange bounds the JSON with which an exchange begins: it contains the whole request. maxPiece bounds that of a report, which
	// may be much longer than the bytes it stands for.
	maxExchange = 48 << 20
	maxPiece    = 4 << 20
	// silentFor is how long the client of an exchange may be silent. Clients report at least every minute.
	silentFor = 3 * time.Minute
	// maxExchanges bounds the exchanges of one token below the highest class.
	maxExchanges = 1000
)

func maxBodyOf(r *http.Request) int64 {
	switch {
	case r.URL.Path == "/v1/exchanges":
		return maxExchange
	case strings.HasPrefix(r.URL.Path, "/v1/exchanges/"):
		return maxPiece
	}
	return maxBody
}

// text is a body in JSON: a string, or {"base64": "..."}.
type text []byte

func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = []byte(s)
		return nil
	}
	var packed struct {
		Base64 *string `json:"base64"`
	}
	if err := json.Unmarshal(data, &packed); err != nil || packed.Base64 == nil {
		return errors.New(`body has to be a string, or {"base64": "..."}`)
	}
	b, err := base64.StdEncoding.DecodeString(*packed.Base64)
	*t = b
	return err
}

// outline is the body with which an exchange begins: who asks, and what is to be sent.
type outline struct {
	Resource  string            `json:"resource"`
	Agent     string            `json:"agent"`
	Class     string            `json:"class"`
	User      string            `json:"user"`
	Tool      string            `json:"tool"`
	Key       string            `json:"key"`
	WaitMS    *int64            `json:"wait_ms"`
	Emergency bool              `json:"emergency"`
	Retry     bool              `json:"retry"`
	Once      bool              `json:"once"`
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Body      text              `json:"body"`
}

// Turn is the response to an exchange whose request is to be sent now.
type Turn struct {
	Exchange string `json:"exchange"`
	Resource string `json:"resource"`
	Agent    string `json:"agent"`
	WaitedMS int64  `json:"waited_ms"`
}

// report is what a client says of a send.
type report struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    text              `json:"body"`
	// Ended is how the response ended: complete, left (by the client) or broken; empty if it goes on.
	Ended string `json:"ended"`
	// Error is why there is no response.
	Error string `json:"error"`

	reader io.ReadCloser // the response's body
}

// exchange is one that has not ended.
type exchange struct {
	id     string
	owner  string
	bound  bool // its client's token is below the highest class
	cancel context.CancelCauseFunc
	turns  chan struct{} // gets one each time the request is to be sent
	heard  chan *report  // what the client says of a send
	done   chan struct{} // closed when the transport has returned
	over   chan struct{} // closed when all is settled
	err    error         // of the transport; set before done is closed
	ctx    context.Context

	calls  sync.Mutex     // one report at a time
	pipe   *io.PipeWriter // the rest of the response's body; nil if there is none. Guarded by calls
	silent *time.Timer
}

// sending holds the exchanges that have not ended.
type sending struct {
	mu  sync.Mutex
	all map[string]*exchange
}

// add records an exchange, unless a bounded token has too many.
func (s *sending) add(x *exchange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*exchange{}
	}
	if x.bound {
		n := 0
		for _, o := range s.all {
			if o.owner == x.owner {
				n++
			}
		}
		if n >= maxExchanges {
			return false
		}
	}
	s.all[x.id] = x
	return true
}

func (s *sending) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

func (s *sending) find(id string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// EndExchanges ends all exchanges, as if their clients had left. Call it when no client can report any more.
func (a *API) EndExchanges() {
	a.sending.mu.Lock()
	all := slices.Collect(maps.Values(a.sending.all))
	a.sending.mu.Unlock()
	for _, x := range all {
		x.cancel(errSilent)
	}
	for _, x := range all {
		<-x.over
	}
}

var (
	errSilent = errors.New("the client of the exchange is silent")
	errUnsent = errors.New("the client has not sent the request")
	errLeft   = errors.New("the client has left")
	errBroken = errors.New("the connection to the provider broke")
)

// begin waits for the turn of a request that the client will send.
func (a *API) begin(c *call) error {
	var q outline
	if err := c.read(&q); err != nil {
		return err
	}
	if a.Away == nil {
		return &Problem{Status: http.StatusNotFound, Detail: "this daemon has no exchanges"}
	}
	r, err := q.request()
	if err != nil {
		return err
	}
	if q.Resource == "" {
		if q.Resource = a.Away.ResourceAt(r.URL); q.Resource == "" {
			return &Problem{
				Status: http.StatusNotFound, Detail: fmt.Sprintf("no resource has the address %s://%.200s", r.URL.Scheme, r.URL.Host),
				Hint: "name the resource, or give one in the configuration this upstream",
			}
		}
	}
	if why, hint := a.Away.CannotSend(q.Resource); why != "" {
		return &Problem{Status: http.StatusBadRequest, Detail: why, Hint: hint}
	}
	caller, err := a.callerOf(c, &q)
	if err != nil {
		return err
	}
	x := &exchange{
		id: rand.Text(), owner: c.who.Token, bound: c.bounded(), turns: make(chan struct{}, 1), heard: make(chan *report), done: make(chan struct{}), over: make(chan struct{}),
	}
	away := &wire.Away{Send: x.send, Single: q.Once}
	if away.Key, err = c.keyLabel(c.r.Context(), q.Resource, q.Key); err != nil {
		return err
	}
	if x.bound {
		if caller.Wait, err = c.await(q.Resource, caller.Wait); err != nil { // the token is paused alone
			return err
		}
		away.Trust = &statements{call: &call{r: c.r.WithContext(context.WithoutCancel(c.r.Context())), who: c.who, api: a}, resource: q.Resource}
	}
	if !a.sending.add(x) {
		return &Problem{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("the token has %d exchanges that have not ended", maxExchanges), Hint: "end exchanges, or wait", Why: "concurrency"}
	}
	begun := time.Now()
	a.run(c, x, q.Resource, caller, r, away)
	select {
	case <-x.turns:
	case <-x.done:
		return x.failed()
	case <-c.r.Context().Done():
	}
	if err := c.r.Context().Err(); err != nil { // the client will never learn of its turn
		x.end(errUnsent)
		return err
	}
	x.silent = time.AfterFunc(silentFor, func() { x.cancel(errSilent) })
	return c.reply(Turn{Exchange: x.id, Resource: q.Resource, Agent: caller.Agent, WaitedMS: time.Since(begun).Milliseconds()})
}

// request returns the request that the client will send.
func (q *outline) request() (*http.Request, error) {
	u, err := url.Parse(q.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "url: it has to be a whole http or https address", Hint: "send the address that the request goes to"}
	}
	u.User = nil
	r, err := http.NewRequest(cmp.Or(q.Method, http.MethodGet), u.String(), http.NoBody) //nolint:noctx // it gets one when it is gated
	if err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "method: not a method of HTTP", Hint: "such as GET or POST"}
	}
	for name, value := range q.Headers {
		r.Header.Set(name, value)
	}
	if len(q.Body) > 0 {
		body := q.Body
		r.ContentLength = int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
	}
	return r, nil
}

// callerOf returns who sends the request, as the caller's identity allows.
func (a *API) callerOf(c *call, q *outline) (caller sluicehttp.Caller, err error) {
	wait, err := millis("wait_ms", q.WaitMS, min(a.Away.Patience(q.Resource), maxWait), maxWait)
	if err != nil {
		return caller, err
	}
	class, err := c.as(&q.Agent, q.Class)
	if err != nil {
		return caller, err
	}
	if q.Emergency && c.bounded() {
		return caller, &Problem{Status: http.StatusForbidden, Detail: "the token's class has no emergencies", Hint: "leave emergency out, or use a token of the highest class"}
	}
	if q.User, err = c.speaksFor(q.Agent, q.User); err != nil {
		return caller, err
	}
	return sluicehttp.Caller{
		Agent: q.Agent, Class: class, User: q.User, Tool: q.Tool, Emergency: q.Emergency, Retry: q.Retry, Wait: max(wait, time.Millisecond), RequestID: requestid.Of(c.r),
	}, nil
}

// statements bounds what the client of an exchange says, as it does for tickets.
type statements struct {
	call     *call
	resource string
}

func (s *statements) Answer(a sluice.Answer) sluice.Answer {
	a, _ = s.call.believe(s.resource, a)
	return a
}

func (s *statements) Used(model string, reserved, used []sluice.Amount) []sluice.Amount {
	return s.call.money(s.resource, model, reserved, s.call.used(s.resource, reserved, used))
}

// run starts an exchange. It ends when the response was read, or when the client is silent.
func (a *API) run(c *call, x *exchange, resource string, caller sluicehttp.Caller, r *http.Request, away *wire.Away) {
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(c.r.Context()))
	leave := a.Away.Stay()
	go func() {
		defer leave()
		defer close(x.over)
		defer a.sending.remove(x.id)
		defer x.cancel(nil)
		resp, err := a.Away.Away(x.ctx, resource, caller, r, away)
		x.err = err
		close(x.done)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // reading settles it; an error says how it ended, which the transport sees too
			_ = resp.Body.Close()
		}
	}()
}

// end ends an exchange, and waits until it is settled.
func (x *exchange) end(why error) {
	x.cancel(why)
	<-x.over
}

// failed returns why an exchange has ended before its request was sent.
func (x *exchange) failed() error {
	switch {
	case errors.Is(x.err, sluicehttp.ErrModel):
		return &Problem{
			Status: http.StatusBadRequest, Detail: "the model of the call cannot be read, so the gate does not know which limits apply",
			Hint: "send one JSON object that names one model, at most 512 levels deep",
		}
	case errors.Is(x.err, sluicehttp.ErrUpgrade):
		return &Problem{Status: http.StatusBadRequest, Detail: "what passes over a WebSocket cannot be counted here", Hint: "send it through the gate: docs/proxy.md"}
	}
	return x.err
}

// send is the transport's way to the provider: it tells the client that it is the request's turn, and waits for the report.
func (x *exchange) send(r *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(r.Context())
	x.turns <- struct{}{}
	var h *report
	select {
	case h = <-x.heard:
	case <-r.Context().Done():
		if err := context.Cause(r.Context()); errors.Is(err, errUnsent) {
			return nil, err
		}
		trace.WroteHeaders() // it may have been sent
		return nil, context.Cause(r.Context())
	}
	trace.WroteHeaders()
	if h.Error != "" {
		return nil, errors.New(h.Error)
	}
	resp := &http.Response{
		Status: http.StatusText(h.Status), StatusCode: h.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: h.reader, ContentLength: -1, Request: r,
	}
	for name, value := range h.Headers {
		resp.Header.Set(name, value)
	}
	resp.Header.Del("Content-Encoding") // clients report what they have decompressed
	if h.Ended == complete {
		resp.ContentLength = int64(len(h.Body))
	}
	return resp, nil
}

// How a response ends.
const (
	complete = "complete"
	left     = "left"   // the client has closed it
	broken   = "broken" // the connection to the provider broke
)

// found returns the exchange that the path names, locked for one report.
func (a *API) found(c *call) (*exchange, error) {
	x := a.sending.find(c.r.PathValue("id"))
	if x == nil {
		return nil, &Problem{Status: http.StatusNotFound, Detail: "there is no such exchange, or it has ended", Hint: fmt.Sprintf("an exchange ends when its client is silent for %v", silentFor)}
	}
	if (c.who.Agent != "" || c.bounded()) && x.owner != c.who.Token {
		return nil, &Problem{Status: http.StatusForbidden, Detail: "the exchange belongs to another token", Hint: "use the token that began it"}
	}
	x.calls.Lock()
	x.silent.Stop()
	return x, nil
}

// release lets the next report come.
func (x *exchange) release() {
	x.silent.Reset(silentFor)
	x.calls.Unlock()
}

// readReport reads what a client says of a send.
func (c *call) readReport() (*report, error) {
	var h report
	if err := c.read(&h); err != nil {
		return nil, err
	}
	switch h.Ended {
	case "", complete, left, broken:
		return &h, nil
	}
	return nil, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("ended: %.80q is none of the ways a response ends", h.Ended), Hint: "use complete, left or broken, or leave it out while it goes on"}
}

// answerExchange takes the beginning of a response, or the reason why there is none. The reply says whether to send the request again: then it comes
// when it is the request's turn.
func (a *API) answerExchange(c *call) error {
	h, err := c.readReport()
	if err != nil {
		return err
	}
	if h.Error == "" && (h.Status < 200 || h.Status > 599) {
		return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("status: %d is no status of a response", h.Status), Hint: "use 200 to 599; without a response say why in error"}
	}
	x, err := a.found(c)
	if err != nil {
		return err
	}
	defer x.release()
	if h.Error != "" && h.Ended == left {
		x.end(errLeft) // the provider may still be working on it
		return c.reply(told{})
	}
	x.open(h)
	select {
	case x.heard <- h:
	case <-x.done:
		return &Problem{Status: http.StatusConflict, Detail: "the exchange has its response", Hint: "report the rest of its body to body"}
	}
	x.feed(h)
	select {
	case <-x.turns:
		return c.reply(told{SendAgain: true})
	case <-x.done:
	case <-c.r.Context().Done(): // the client does not wait for its next turn
		x.end(errUnsent)
		return c.r.Context().Err()
	}
	if h.Ended != "" || x.err != nil {
		<-x.over
	}
	return c.reply(told{})
}

// told is the reply to the report of a send.
type told struct {
	SendAgain bool `json:"send_again"`
}

// open prepares the body of a response for the transport.
func (x *exchange) open(h *report) {
	x.pipe = nil
	if h.Error != "" {
		return
	}
	if h.Ended == complete {
		h.reader = io.NopCloser(bytes.NewReader(h.Body))
		return
	}
	reader, writer := io.Pipe()
	x.pipe, h.reader = writer, reader
	context.AfterFunc(x.ctx, func() { _ = reader.CloseWithError(context.Cause(x.ctx)) })
}

// feed passes a piece of the response to the transport, and its end.
func (x *exchange) feed(h *report) {
	if x.pipe == nil {
		return
	}
	_, _ = x.pipe.Write(h.Body) // an error means that the transport reads no more
	switch h.Ended {
	case complete:
		_ = x.pipe.Close()
	case left:
		x.cancel(errLeft)
	case broken:
		_ = x.pipe.CloseWithError(errBroken)
	}
}

// bodyOfExchange takes a piece of a response, and its end.
func (a *API) bodyOfExchange(c *call) error {
	h, err := c.readReport()
	if err != nil {
		return err
	}
	x, err := a.found(c)
	if err != nil {
		return err
	}
	defer x.release()
	if x.pipe == nil {
		return &Problem{Status: http.StatusConflict, Detail: "the exchange has no response yet", Hint: "report it to answer, or give the exchange back with DELETE"}
	}
	x.feed(h)
	if h.Ended != "" {
		<-x.over
	}
	return nil
}

// cancelExchange gives back an exchange whose request was not sent.
func (a *API) cancelExchange(c *call) error {
	x, err := a.found(c)
	if err != nil {
		return err
	}
	defer x.release()
	x.end(errUnsent)
	return nil
}
