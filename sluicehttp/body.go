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

// A ticket whose answer is still being read is kept alive: it is told so every keepEvery, and lives keepFor from
// then on.
const (
	keepEvery = 2 * time.Minute
	keepFor   = 10 * time.Minute
)

// ending is how the reading of an answer ended.
type ending int

const (
	complete ending = iota // all of it was read
	broken                 // the provider broke off
	left                   // the client did not want the rest
)

// body is an answer's body on its way to the client. Whatever happens to it, the ticket is settled once.
type body struct {
	f      *flight
	a      *attempt
	src    io.ReadCloser
	status int
	size   int64 // -1: not known
	stream bool
	filter *filter // nil: nothing is cut out

	mu     sync.Mutex // Close may come while Read waits
	usage  provider.UsageReader
	zipped *inflater // nil: the answer is not compressed
	seen   int64
	kept   time.Time
	done   bool
	extra  []amount // what the header said of the usage
}

// hand prepares the answer for the client.
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

// listen sets up what reads the usage, and what cuts out what only we have asked for.
func (b *body) listen(resp *http.Response) {
	f := b.f
	b.usage = f.t.speaker.Usage(&f.asked, resp.Header.Get("Content-Type"))
	switch encoding := encodingOf(resp.Header); {
	case encoding == "gzip" && b.usage != nil:
		b.zipped = newInflater(b.usage, maxInflated)
	case encoding != "":
		b.usage = nil // nothing in it can be read
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

// filtered is Read where something is cut out.
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

// look takes in what passes by.
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
	if b.stream { // others are over soon
		if now = time.Now(); b.done || now.Sub(b.kept) < keepEvery {
			now = time.Time{}
		} else {
			b.kept = now
		}
	}
	b.mu.Unlock()
	if !now.IsZero() {
		_ = b.a.current().Keep(context.WithoutCancel(b.f.ctx), keepFor) // if it cannot be told, it ends by itself
	}
}

// ended notes that there is nothing more to read.
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

// Close ends the answer. One that was not read to its end was broken off.
func (b *body) Close() error {
	b.finish(left, nil)
	err := b.src.Close()
	b.a.cancel(nil)
	return err
}

// idHeaders are where providers state the id of a request.
var idHeaders = []string{"Request-Id", "X-Request-Id", "X-Github-Request-Id", "Apim-Request-Id", "X-Amzn-Requestid"}

// upstreamID is the provider's id of a request, empty if its answer states none, or one that is no id.
func upstreamID(h http.Header) string {
	for _, name := range idHeaders {
		if id := h[name]; len(id) > 0 && requestid.Safe(id[0]) {
			return id[0]
		}
	}
	return ""
}
