package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

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

// ServeStdio serves one client until in or ctx ends.
func ServeStdio(ctx context.Context, o Options, in io.ReadCloser, out io.WriteCloser) error {
	err := New(ctx, o).Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxMessage})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil // the client or ctx ended it
	}
	return err
}
