package sluicehttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// payload is the body of a request. It holds the part that Sluice reads. The rest of a longer body is passed on as it
// comes, and such a body cannot be sent again.
type payload struct {
	held  []byte
	whole bool                          // held is the complete body
	none  bool                          // no body
	src   io.ReadCloser                 // the rest after held; nil once it is used up or closed
	again func() (io.ReadCloser, error) // the client's GetBody

	first  bytes.Reader
	opened bool
}

// smallBody is the size up to which a body may be kept while its response is read.
const smallBody = 16 << 10

// take reads up to most bytes of a request's body.
func (p *payload) take(r *http.Request, most int64) error {
	p.src, p.again = r.Body, r.GetBody
	if r.Body == nil || r.Body == http.NoBody {
		p.none, p.src = true, nil
		return nil
	}
	var err error
	switch n := r.ContentLength; {
	case most == 0:
		return nil
	case n > 0 && n <= most:
		p.held, p.whole = make([]byte, n), true
		if err = p.exactly(n); err == nil {
			return p.release()
		}
	case n > most:
		p.held = make([]byte, most)
		_, err = io.ReadFull(p.src, p.held)
	default:
		p.held, err = io.ReadAll(io.LimitReader(p.src, most+1))
		if p.whole = err == nil && int64(len(p.held)) <= most; p.whole {
			return p.release()
		}
	}
	if err != nil {
		return fmt.Errorf("sluicehttp: the request's body could not be read: %w", err)
	}
	return nil
}

// exactly reads a body of known length up to and including its end, because trailers come with the end.
func (p *payload) exactly(n int64) error {
	if _, err := io.ReadFull(p.src, p.held); err != nil {
		return err
	}
	var more [1]byte
	if extra, err := io.ReadFull(p.src, more[:]); extra > 0 {
		return fmt.Errorf("it is longer than its Content-Length of %d", n)
	} else if err != io.EOF {
		return err
	}
	return nil
}

// release closes a body that has been read.
func (p *payload) release() error {
	_ = p.src.Close()
	p.src = nil
	return nil
}

// replace replaces the held body.
func (p *payload) replace(body []byte) { p.held, p.again = body, nil }

// replayable reports whether the body can be sent more than once.
func (p *payload) replayable() bool { return p.none || p.whole || p.again != nil }

// open returns the body for one send.
func (p *payload) open() (io.ReadCloser, error) {
	switch {
	case p.none:
		return http.NoBody, nil
	case p.whole:
		reader := &p.first
		if p.opened || len(p.held) > smallBody { // the first reader may still be in use; a long body should be freed once it is sent
			reader = &bytes.Reader{}
		}
		p.opened = true
		reader.Reset(p.held)
		return io.NopCloser(reader), nil // net/http recognises this type and sends the body together with the header
	case p.src == nil:
		return p.again()
	}
	src := p.src
	p.src = nil
	if len(p.held) == 0 {
		return src, nil
	}
	held := p.held
	p.held = nil
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(held), src), src}, nil
}

// forget frees the body that was held for retries.
func (p *payload) forget() { p.held, p.again = nil, nil }

// close closes the part that was not sent.
func (p *payload) close() {
	if p.src != nil {
		_ = p.src.Close()
		p.src = nil
	}
}
