package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// bodyStall is how long a request's body may send nothing while the gate waits for it. The daemon gives the bodies of
// requests to itself as long.
const bodyStall = 30 * time.Second

// clientBody records that the client's body could not be read, so that the provider is not blamed. A body that stalls is
// cut, because a client that never finishes would hold memory, a connection and perhaps a ticket.
type clientBody struct {
	io.ReadCloser
	failed, stalled atomic.Bool
	cut             func() // makes a read that waits fail
	ended           func() // called at the end of the body; nil: nothing to do
}

func (b *clientBody) Read(p []byte) (int, error) {
	late := time.AfterFunc(bodyStall, func() {
		b.stalled.Store(true)
		b.cut()
	})
	n, err := b.ReadCloser.Read(p)
	late.Stop()
	if err == io.EOF && b.ended != nil {
		b.ended()
	}
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.failed.Store(true)
	}
	return n, err
}

// refusal returns the response to a request whose body could not be read.
func (b *clientBody) refusal() *refusal {
	if b.stalled.Load() {
		f := refuse(http.StatusRequestTimeout, "the request's body sent nothing for "+bodyStall.String(), "send it again, without a pause")
		f.fatal = false
		return f
	}
	return refuse(http.StatusBadRequest, "the request's body is malformed or incomplete", "look at its chunks and its Content-Length")
}
