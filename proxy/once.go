package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// errResend is the error for a request that net/http would have sent again by itself.
var errResend = fmt.Errorf("the connection was closed after the request was sent: %w", io.ErrUnexpectedEOF)

// once sends each request at most once, for requests that another gate counts. net/http sends a request again by itself
// if a kept connection closes without an answer. The gate that counts does not see that, so such a request fails here:
// that gate sends it again, with another ticket, where this is safe.
type once struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context()) // lasts as long as the response, and ends with the client's request
	var wrote, again atomic.Bool
	trace := &httptrace.ClientTrace{
		WroteHeaders: func() { wrote.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			if !wrote.Load() {
				return
			}
			again.Store(true)
			cancel(errResend)
			// A cancelled request may still be written. Closing the connection prevents that, but a connection of HTTP/2
			// carries other requests too.
			if c, ok := info.Conn.(*tls.Conn); !ok || c.ConnectionState().NegotiatedProtocol != "h2" {
				_ = info.Conn.Close()
			}
		},
	}
	resp, err := o.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if again.Load() {
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errResend
	}
	return resp, err
}
