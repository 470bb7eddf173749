package sluicehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/requestid"
	"github.com/sluicehq/sluice/provider"
)

// A ticket whose response is still being read is extended every keepEvery, by keepFor.
const (
	keepEvery = 2 * time.Minute
	keepFor   = 10 * time.Minute
)

// ending is how the reading of a response ended.
type ending int

const (
	complete ending = iota // all of it was read
	broken                 // the connection to the provider broke
	left                   // the client closed it before the end
)

// body is a response body on its way to the client. It settles the ticket exactly once, however the reading ends.
type body struct {
	f      *flight
	a      *attempt
	src    io.ReadCloser
	status int
	size   int64 // -1: not known
	stream bool
	filter *filter // nil: nothing is filtered

	mu     sync.Mutex // Close may come while Read waits
	usage  provider.UsageReader
	zipped *inflater // nil: the response is not compressed
	seen   int64
	kept   time.Time
	done   bool
	extra  []amount // usage stated in the header
}

// hand prepares the response for the client.
func (f *flight) hand(a *attempt, o *outcome) {
	resp := o.resp
	f.told.Status, f.told.UpstreamID = resp.StatusCode, upstreamID(resp.Header)
	f.payload.forget()
	b := &f.out
	b.f, b.a, b.src, b.status, b.size = f, a, resp.Body, resp.StatusCode, resp.ContentLength
	b.extra, b.kept = o.answer.Usage, a.began
	b.stream = f.asked.Stream && resp.StatusCode < 300 || streams(resp.Header)
	if resp.Body == nil || resp.Body == http.NoBody {
		b.finish(complete, nil)
		return
	}
	if f.asked.Tokens && resp.StatusCode/100 == 2 {
		b.listen(resp)
	}
	resp.Body = b
}

// listen sets up the usage reader, and the filter for usage events that only Sluice asked for.
func (b *body) listen(resp *http.Response) {
	f := b.f
	b.usage = f.t.speaker.Usage(&f.asked, resp.Header.Get("Content-Type"))
	switch encoding := encodingOf(resp.Header); {
	case encoding == "gzip" && b.usage != nil:
		b.zipped = newInflater(b.usage, maxInflated)
	case encoding != "":
		b.usage = nil // cannot be decoded
	case f.hidden && streams(resp.Header):
		b.filter = &filter{only: f.t.speaker.OnlyUsage}
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
}

func (b *body) Read(p []byte) (int, error) {
	if b.filter != nil {
		return b.filtered(p)
	}
	n, err := b.src.Read(p)
	b.look(p[:n])
	if err != nil {
		b.ended(err)
	}
	return n, err
}

// filtered is Read for a response with a filter.
func (b *body) filtered(p []byte) (int, error) {
	for len(p) > 0 {
		if n := b.filter.read(p); n > 0 {
			return n, nil
		}
		if b.filter.err != nil {
			return 0, b.filter.err
		}
		n, err := b.src.Read(p)
		b.look(p[:n])
		b.filter.write(p[:n])
		if err != nil {
			b.filter.end(err)
			b.ended(err)
		}
	}
	return 0, nil
}

// look reads the usage in p, and extends the ticket of a stream.
func (b *body) look(p []byte) {
	if len(p) == 0 {
		return
	}
	b.mu.Lock()
	b.seen += int64(len(p))
	switch {
	case b.done || b.usage == nil:
	case b.zipped != nil:
		b.zipped.write(p)
	default:
		b.usage.Write(p)
	}
	now := time.Time{}
	if b.stream { // other responses are over soon
		if now = time.Now(); b.done || now.Sub(b.kept) < keepEvery {
			now = time.Time{}
		} else {
			b.kept = now
		}
	}
	b.mu.Unlock()
	if !now.IsZero() {
		_ = b.a.current().Keep(context.WithoutCancel(b.f.ctx), keepFor) // if that fails, the ticket expires by itself
	}
}

// ended records the end of the response.
func (b *body) ended(err error) {
	switch {
	case errors.Is(err, io.EOF):
		b.finish(complete, nil)
	case b.f.ctx.Err() != nil:
		b.finish(left, err)
	default:
		b.finish(broken, err)
	}
}

// Close ends the response. If it was not read to its end, it counts as aborted by the client.
func (b *body) Close() error {
	b.finish(left, nil)
	err := b.src.Close()
	b.a.cancel(nil)
	return err
}

// idHeaders are the headers in which providers state the id of a request.
var idHeaders = []string{"Request-Id", "X-Request-Id", "X-Github-Request-Id", "Apim-Request-Id", "X-Amzn-Requestid"}

// upstreamID returns the provider's id of a request. It is empty if the response states none, or one with unsafe
// characters.
func upstreamID(h http.Header) string {
	for _, name := range idHeaders {
		if id := h[name]; len(id) > 0 && requestid.Safe(id[0]) {
			return id[0]
		}
	}
	return ""
}
