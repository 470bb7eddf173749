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
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
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
	// maxTexts bounds the method, the address and the headers of a request together, and the headers of a response.
	maxTexts = 256 << 10
	// maxHeld bounds the JSON of all exchanges that have not ended. It is counted from smallHeld on; the last quarter is for the highest
	// class.
	maxHeld   = 128 << 20
	smallHeld = 64 << 10
	// silentFor is how long the client of an exchange may be silent. Clients report every quarter of a minute.
	silentFor = time.Minute
	// maxExchanges bounds the exchanges of one token below the highest class.
	maxExchanges = 1000
	// maxGivenBack bounds the exchanges that were given back before they began, and givenBackFor how long they are known.
	maxGivenBack = 1000
	givenBackFor = time.Minute
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
	Exchange  string            `json:"exchange"`
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

// failure returns why there is no response. What the client says may hold a key, and errors are logged and stored.
func (h *report) failure() error {
	if text := strings.ToLower(h.Error); strings.Contains(text, "timeout") || strings.Contains(text, "timedout") {
		return errTimedOut
	}
	return errNoResponse
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

	granted atomic.Bool    // its first turn has come
	calls   chan struct{}  // holds one report at a time
	pipe    *io.PipeWriter // the rest of the response's body; nil if there is none. Guarded by calls
	silent  *time.Timer
}

var (
	errSilent = errors.New("the client of the exchange is silent")
	errUnsent = errors.New("the client has not sent the request")
	errLeft   = errors.New("the client has left")
	errBroken = errors.New("the connection to the provider broke")

	errTimedOut   = errors.New("the client's request timed out")
	errNoResponse = errors.New("the client got no response")
)

// begin waits for the turn of a request that the client will send.
func (a *API) begin(c *call) error {
	if a.Away == nil {
		return &Problem{Status: http.StatusNotFound, Detail: "this daemon has no exchanges"}
	}
	free, err := a.sending.hold(c.r.ContentLength, c.bounded())
	if err != nil {
		return err
	}
	going := false
	defer func() {
		if !going {
			free()
		}
	}()
	var q outline
	if err := c.read(&q); err != nil {
		return err
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
		id: cmp.Or(q.Exchange, rand.Text()), owner: c.who.Token, bound: c.bounded(), turns: make(chan struct{}, 1), heard: make(chan *report), done: make(chan struct{}), over: make(chan struct{}),
		calls: make(chan struct{}, 1),
	}
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(c.r.Context()))
	x.silent = time.AfterFunc(maxWait+silentFor, func() { x.cancel(errSilent) })
	away := &wire.Away{Send: x.send, Single: q.Once}
	if away.Key, err = c.keyLabel(c.r.Context(), q.Resource, q.Key); err != nil {
		return err
	}
	if x.bound {
		if caller.Wait, err = c.await(q.Resource, caller.Wait); err != nil { // the token is paused alone
			return err
		}
		away.Trust = &statements{call: &call{r: c.r.WithContext(x.ctx), who: c.who, api: a}, resource: q.Resource, exchange: x.id}
	}
	if err := a.sending.add(x); err != nil {
		return err
	}
	going = true
	begun := time.Now()
	a.run(x, q.Resource, caller, r, away, free)
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
	x.granted.Store(true)
	x.silent.Reset(silentFor)
	return c.reply(Turn{Exchange: x.id, Resource: q.Resource, Agent: caller.Agent, WaitedMS: time.Since(begun).Milliseconds()})
}

// request returns the request that the client will send.
func (q *outline) request() (*http.Request, error) {
	u, err := url.Parse(q.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "url: it has to be a whole http or https address", Hint: "send the address that the request goes to"}
	}
	texts := len(q.Method) + len(q.URL)
	for name, value := range q.Headers {
		texts += len(name) + len(value)
	}
	if texts > maxTexts {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("method, url and headers have more than %d bytes", maxTexts), Hint: "leave out headers that say nothing of limits"}
	}
	if q.Exchange != "" && !isExchangeID(q.Exchange) {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "exchange: this is no id of an exchange", Hint: "choose 16 to 64 random letters, digits, - and _, or leave it out"}
	}
	u.User = nil
	r, err := http.NewRequest(cmp.Or(q.Method, http.MethodGet), u.String(), http.NoBody) //nolint:noctx // it gets one when it is gated
	if err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "method: not a method of HTTP", Hint: "such as GET or POST"}
	}
	for name, value := range q.Headers {
		r.Header.Set(name, value)
	}
	// Clients leave out secrets. Those of clients that do not go no further.
	plain := deadletter.NewRequest(r.Method, "/?"+u.RawQuery, r.Header, nil, true, 0)
	for _, name := range plain.Left {
		r.Header.Del(name)
	}
	_, r.URL.RawQuery, _ = strings.Cut(plain.Path, "?")
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
	exchange string
}

// Reserve bounds what the request reserves to what a ticket may take.
func (s *statements) Reserve(cost []sluice.Amount) []sluice.Amount {
	for i := range cost {
		cost[i].N = min(cost[i].N, s.call.mostOf(s.resource, cost[i].Unit))
	}
	return cost
}

// Enter waits until one more open ticket leaves enough of each limit.
func (s *statements) Enter(ctx context.Context, model string, cost []sluice.Amount) error {
	a := s.call.api
	s.Leave() // the send before
	wait := maxWait
	if until, ok := ctx.Deadline(); ok {
		wait = time.Until(until)
	}
	if !a.open.room(ctx, s.resource, opened{cost: cost, model: model}, a.Limits[s.resource], wait) {
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return err
		}
		return s.tooMany()
	}
	return nil
}

// Take records the ticket of the request, unless other tickets were granted while it waited.
func (s *statements) Take(model string, cost []sluice.Amount) error {
	a, now := s.call.api, time.Now()
	if !a.open.add(s.resource, s.exchange, opened{slices.Clone(cost), model, now.Add(store.MaxTTL)}, a.Limits[s.resource], now) {
		return s.tooMany()
	}
	return nil
}

// Leave says that the request has no ticket any more.
func (s *statements) Leave() { s.call.api.open.end(s.resource, s.exchange) }

func (s *statements) tooMany() error {
	p := tooMany()
	return &sluice.Error{Err: sluice.ErrNotNow, Resource: s.resource, Reason: p.Why, Message: p.Detail, Hint: p.Hint}
}

func (s *statements) Answer(a sluice.Answer) sluice.Answer {
	a, _ = s.call.believe(s.resource, a)
	return a
}

func (s *statements) Used(model string, reserved, used []sluice.Amount) []sluice.Amount {
	return s.call.money(s.resource, model, reserved, s.call.used(s.resource, reserved, used))
}

// run starts an exchange. It ends when the response was read, or when the client is silent.
func (a *API) run(x *exchange, resource string, caller sluicehttp.Caller, r *http.Request, away *wire.Away, free func()) {
	leave := a.Away.Stay()
	go func() {
		defer leave()
		defer free()
		defer close(x.over)
		defer a.sending.remove(x.id)
		defer x.silent.Stop()
		defer x.cancel(nil)
		if away.Trust != nil {
			defer away.Trust.Leave()
		}
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
	switch why := context.Cause(x.ctx); {
	case errors.Is(why, errUnsent), errors.Is(why, errLeft):
		return errGivenBack
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
		return nil, h.failure()
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
