package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage bounds one message of a client: calls are small.
const maxMessage = 64 << 10

// ServeHTTP answers one request of a client that speaks streamable HTTP. It keeps no sessions, which would need memory
// and an end: each request carries all that its response needs, and no stream stays open. The daemon must have checked
// host, origin and token before.
func ServeHTTP(w http.ResponseWriter, r *http.Request, o Options) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, fmt.Sprintf("error: the message cannot be read, or has more than %d bytes", maxMessage), status)
		return
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) { // a batch would be many calls in one request
		http.Error(w, "error: batches are not allowed\nhint: send one message in each request", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.Header().Set("Cache-Control", "no-store")
	server := New(r.Context(), o)
	sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the daemon checks host names itself, and knows more of them
	}).ServeHTTP(w, r)
}

// ServeStdio serves one client until in or ctx ends. A line that is no message gets an error as its answer.
func ServeStdio(ctx context.Context, o Options, in io.ReadCloser, out io.WriteCloser) error {
	whole := &oneAtATime{WriteCloser: out}
	err := New(ctx, o).Run(ctx, answering{&sdk.IOTransport{Reader: readMessages(in, whole), Writer: whole, MaxLineLength: 2 * maxMessage}})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil // the client or ctx ended it
	}
	return err
}

// answering is a transport whose end of input waits for the answers to what came before. The SDK drops them otherwise,
// and a script that pipes its calls into the program gets no answers.
type answering struct{ sdk.Transport }

func (t answering) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answeringConn{Connection: c, open: map[any]bool{}, done: make(chan struct{})}, nil
}

type answeringConn struct {
	sdk.Connection

	mu    sync.Mutex
	open  map[any]bool  // ids of calls without an answer
	ended bool          // the input is over
	done  chan struct{} // closed when the input is over and nothing is open
}

// lastAnswers is how long the last answers may take.
const lastAnswers = 30 * time.Second

func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if r, ok := msg.(*jsonrpc.Request); ok && err == nil && r.ID.IsValid() {
		c.mu.Lock()
		c.open[r.ID.Raw()] = true
		c.mu.Unlock()
	}
	if errors.Is(err, io.EOF) {
		c.mu.Lock()
		c.ended = true
		c.settle()
		c.mu.Unlock()
		select {
		case <-c.done:
		case <-ctx.Done():
		case <-time.After(lastAnswers):
		}
	}
	return msg, err
}

func (c *answeringConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if r, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, r.ID.Raw())
		c.settle()
		c.mu.Unlock()
	}
	return err
}

// settle ends the wait for the last answers. The caller holds mu.
func (c *answeringConn) settle() {
	if !c.ended || len(c.open) > 0 {
		return
	}
	select {
	case <-c.done:
	default:
		close(c.done)
	}
}
