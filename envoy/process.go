package envoy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/envoy/extproc"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// Sends gates requests that somebody else sends. [daemon.Daemon] implements it.
type Sends interface {
	Away(ctx context.Context, resource string, c sluicehttp.Caller, r *http.Request, away *wire.Away) (*http.Response, error)
}

// resourceKey is the metadata in which Envoy names the resource.
const resourceKey = "x-sluice-resource"

// senderHeaders say who sends. The provider does not get them.
var senderHeaders = []string{"x-sluice-agent", "x-sluice-class", "x-sluice-user", "x-sluice-tool", "x-sluice-emergency"}

// processor implements Envoy's external processing. Envoy opens a stream for each request.
type processor struct {
	extproc.UnimplementedExternalProcessorServer

	server *Server
}

// passing is a request that passes Envoy.
type passing struct {
	sends  Sends
	ctx    context.Context
	cancel context.CancelFunc

	resource string
	request  *http.Request
	body     []byte

	turn  chan struct{}       // closed when it is the request's turn
	heard chan *http.Response // the beginning of the response
	done  chan struct{}       // closed when all is settled
	err   error               // why the request may not go; set before done is closed
	pipe  *io.PipeWriter      // the response's body; nil before it begins
}

// Process handles one request and its response.
func (p *processor) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	x := &passing{sends: p.server.sends, ctx: ctx, cancel: cancel, turn: make(chan struct{}), heard: make(chan *http.Response, 1)}
	if named := metadata.ValueFromIncomingContext(ctx, resourceKey); len(named) > 0 {
		x.resource = named[0]
	}
	defer x.end()
	bodies := false
	for first := true; ; first = false {
		m, err := stream.Recv()
		if err != nil { // Envoy is done with the request, or its client has left
			return nil //nolint:nilerr // that is how streams end
		}
		if first {
			bodies = m.GetProtocolConfig().GetRequestBodyMode() != extproc.BodySendMode_NONE
		}
		answer, err := x.take(m, bodies)
		if err != nil {
			return p.server.failed(ctx, x.resource, err)
		}
		if err := stream.Send(answer); err != nil || answer.GetImmediateResponse() != nil {
			return err
		}
	}
}

// take handles a message. An error means that there is no decision.
func (x *passing) take(m *extproc.ProcessingRequest, bodies bool) (*extproc.ProcessingResponse, error) {
	switch r := m.Request.(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		if err := x.open(r.RequestHeaders); err != nil {
			return nil, err
		}
		if bodies && !r.RequestHeaders.EndOfStream { // the body comes next
			return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{Response: strip()}}}, nil
		}
		if refusal, err := x.hold(); refusal != nil || err != nil {
			return refusal, err
		}
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{Response: strip()}}}, nil
	case *extproc.ProcessingRequest_RequestBody:
		x.body = append(x.body, r.RequestBody.Body...)
		if refusal, err := x.hold(); refusal != nil || err != nil {
			return refusal, err
		}
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: &extproc.BodyResponse{}}}, nil
	case *extproc.ProcessingRequest_ResponseHeaders:
		x.begin(r.ResponseHeaders)
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{}}}, nil
	case *extproc.ProcessingRequest_ResponseBody:
		x.feed(r.ResponseBody.Body, r.ResponseBody.EndOfStream)
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{ResponseBody: &extproc.BodyResponse{}}}, nil
	case *extproc.ProcessingRequest_RequestTrailers:
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{}}}, nil
	case *extproc.ProcessingRequest_ResponseTrailers:
		x.feed(nil, true)
		return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{}}}, nil
	}
	return nil, status.Error(codes.InvalidArgument, "a message of a kind that this server does not know")
}

// strip removes the headers that say who sends.
func strip() *extproc.CommonResponse {
	return &extproc.CommonResponse{HeaderMutation: &extproc.HeaderMutation{RemoveHeaders: senderHeaders}}
}

// headerOf converts headers. Pseudo-headers are apart.
func headerOf(m *extproc.HeaderMap) (h http.Header, pseudo map[string]string) {
	h, pseudo = http.Header{}, map[string]string{}
	for _, v := range m.GetHeaders() {
		value := cmp.Or(string(v.RawValue), v.Value)
		if strings.HasPrefix(v.Key, ":") {
			pseudo[v.Key] = value
			continue
		}
		h.Add(v.Key, value)
	}
	return h, pseudo
}

// open reads the header of the request.
func (x *passing) open(m *extproc.HttpHeaders) error {
	header, pseudo := headerOf(m.GetHeaders())
	u, err := url.ParseRequestURI(pseudo[":path"])
	if err != nil || x.request != nil {
		return fmt.Errorf("%w: a request has one path", errQuestion)
	}
	u.Scheme, u.Host = cmp.Or(pseudo[":scheme"], "https"), pseudo[":authority"]
	r, err := http.NewRequestWithContext(x.ctx, cmp.Or(pseudo[":method"], http.MethodGet), u.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("%w: %s", errQuestion, err.Error())
	}
	r.Header, x.request = header, r
	return nil
}

// hold waits for the turn of the request. A refusal is the answer to the client.
func (x *passing) hold() (*extproc.ProcessingResponse, error) {
	if x.request == nil {
		return nil, fmt.Errorf("%w: a body came before its header", errQuestion)
	}
	if x.done != nil { // more of the body
		return nil, nil
	}
	if len(x.body) > 0 {
		body := x.body
		x.request.ContentLength = int64(len(body))
		x.request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		x.request.Body, _ = x.request.GetBody()
	}
	x.done = make(chan struct{})
	go x.run()
	select {
	case <-x.turn:
		return nil, nil
	case <-x.done:
	}
	var refused *sluice.Error
	if x.err != nil && errors.As(x.err, &refused) && isRefusal(x.err) {
		return refusal(refused), nil
	}
	return nil, cmp.Or(x.err, x.ctx.Err())
}

// run takes the request through the gate, to the end of its response.
func (x *passing) run() {
	defer close(x.done)
	h := x.request.Header
	caller := sluicehttp.Caller{
		User: h.Get("X-Sluice-User"), Tool: h.Get("X-Sluice-Tool"), Emergency: h.Get("X-Sluice-Emergency") == "1" || h.Get("X-Sluice-Emergency") == "true",
		RequestID: h.Get("X-Request-Id"),
	}
	caller.Agent, caller.Class = proxy.Named(h)
	caller.Agent = cmp.Or(caller.Agent, anyone)
	resp, err := x.sends.Away(x.ctx, x.resource, caller, x.request, &wire.Away{Single: true, Send: x.send})
	if x.err = err; err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body) // reading settles it; an error says that the client has left
	_ = resp.Body.Close()
}

// send tells Envoy that it is the request's turn, and waits for the response.
func (x *passing) send(r *http.Request) (*http.Response, error) {
	close(x.turn)
	httptrace.ContextClientTrace(r.Context()).WroteHeaders()
	select {
	case resp := <-x.heard:
		resp.Request = r
		return resp, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// begin passes on the beginning of the response.
func (x *passing) begin(m *extproc.HttpHeaders) {
	if x.done == nil || x.pipe != nil { // the request did not come first, or this is not its first response
		return
	}
	header, pseudo := headerOf(m.GetHeaders())
	code, err := strconv.Atoi(pseudo[":status"])
	if err != nil || code < 200 { // more follows
		return
	}
	reader, writer := io.Pipe()
	x.pipe = writer
	context.AfterFunc(x.ctx, func() { _ = reader.CloseWithError(context.Canceled) })
	resp := &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, ContentLength: -1, Body: reader,
	}
	x.heard <- resp
	if m.EndOfStream {
		x.feed(nil, true)
	}
}

// feed passes on a piece of the response's body, and its end.
func (x *passing) feed(piece []byte, last bool) {
	if x.pipe == nil {
		return
	}
	if len(piece) > 0 {
		_, _ = x.pipe.Write(piece) // an error means that no more is read
	}
	if last {
		_ = x.pipe.Close()
		<-x.done // so that the next request finds its place free
	}
}

// end settles the request. What was not read to its end, its client has left.
func (x *passing) end() {
	x.cancel()
	if x.done != nil {
		<-x.done
	}
}

// refusal is the answer to the client of a request that may not go.
func refusal(e *sluice.Error) *extproc.ProcessingResponse {
	code, headers := int32(http.StatusForbidden), []*extproc.HeaderValueOption{}
	add := func(name, value string) {
		headers = append(headers, &extproc.HeaderValueOption{Header: &extproc.HeaderValue{Key: name, RawValue: []byte(value)}})
	}
	for _, of := range []error{sluice.ErrNotNow, sluice.ErrDeadline, sluice.ErrFull} {
		if errors.Is(e, of) {
			code = http.StatusTooManyRequests
		}
	}
	if !e.RetryAt.IsZero() {
		add("retry-after", strconv.FormatFloat(math.Ceil(max(time.Until(e.RetryAt), 0).Seconds()), 'f', 0, 64))
	}
	if e.Reason != "" {
		add("x-sluice-reason", e.Reason)
	}
	add("x-sluice-refused", "1")
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{ImmediateResponse: &extproc.ImmediateResponse{
		Status: &extproc.HttpStatus{Code: code}, Headers: &extproc.HeaderMutation{SetHeaders: headers}, Body: []byte("sluice: " + e.Error() + "\n"), Details: "sluice",
	}}}
}
