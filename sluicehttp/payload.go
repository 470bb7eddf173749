package sluicehttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice/provider"
)

// payload is the body of a request. It holds the part that Sluice reads. The rest of a longer body is passed on as it
// comes, and such a body cannot be sent again.
type payload struct {
	held  []byte
	whole bool                          // held is the complete body
	none  bool                          // no body
	src   io.ReadCloser                 // the rest after held; nil once it is used up or closed
	again func() (io.ReadCloser, error) // the client's GetBody

	room    *Bodies // bounds held; nil: no bound
	highest bool    // the request is of the highest class
	taken   int64   // bytes of room that held has
	limit   int64   // bytes that held will have at most
	known   bool    // and exactly
	kept    int64   // a body of up to this many bytes is kept for a dead letter
	free    func()  // frees the room of a body that is being sent for the last time
	// broken is set if the client's body could not be read while it was sent: the provider is not to blame.
	broken atomic.Bool
	err    error // why the rest could not be read
	// named is set if the body names a model in the part that was read. The rest may name another. packed is set if it is
	// compressed.
	named, packed bool

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
	if most == 0 {
		return nil
	}
	n := r.ContentLength
	p.limit = most + 1 // one more tells whether there is more
	if n > 0 {
		p.limit, p.known = min(n, most), true
	}
	ended, err := p.fill(p.limit)
	switch {
	case err != nil:
	case n > 0 && ended:
		err = io.ErrUnexpectedEOF
	case n > 0 && n <= most:
		if p.whole, err = true, p.exactly(n); err == nil {
			return p.release()
		}
	case ended:
		p.whole = true
		return p.release()
	}
	if err != nil {
		return fmt.Errorf("sluicehttp: the request's body could not be read: %w", err)
	}
	return nil
}

// How many bytes are reserved for a body at first, if its length is known or not. More is reserved as it comes, so that
// clients that send nothing take no room from others.
const (
	firstPiece = 64 << 10
	firstGuess = 4 << 10
)

// fill reads until n bytes are held, or the body ends.
func (p *payload) fill(n int64) (ended bool, err error) {
	for int64(len(p.held)) < n {
		if len(p.held) == cap(p.held) {
			if err := p.grow(n); err != nil {
				return false, err
			}
		}
		k, err := p.src.Read(p.held[len(p.held):min(int64(cap(p.held)), n)])
		p.held = p.held[:len(p.held)+k]
		if err == io.EOF {
			return int64(len(p.held)) < n, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// grow makes room for more than is held, up to the larger of n and the limit.
func (p *payload) grow(n int64) error {
	size, twice := max(p.limit, n), 2*int64(cap(p.held))
	switch {
	case !p.known:
		size = min(size, max(twice, firstGuess))
	case p.room != nil:
		size = min(size, max(twice, firstPiece))
	}
	if more := size - p.taken; size > smallBody {
		if !p.room.take(more, p.highest) {
			return errNoRoom
		}
		p.taken += more
	}
	held := make([]byte, len(p.held), size)
	copy(held, p.held)
	p.held = held
	return nil
}

// Read reads what follows the held part, and holds it too.
func (p *payload) Read(b []byte) (int, error) {
	if p.src == nil {
		return 0, io.EOF
	}
	from := len(p.held)
	p.limit, p.known = provider.MaxNamed, false
	ended, err := p.fill(int64(from + len(b)))
	if n := copy(b, p.held[from:]); n > 0 || err == nil && !ended {
		return n, nil
	}
	if err != nil {
		p.err = fmt.Errorf("sluicehttp: the request's body could not be read: %w", err)
		return 0, p.err
	}
	p.whole = true
	_ = p.release()
	return 0, io.EOF
}

// exactly reads the end of a body whose n bytes are held, because trailers come with the end.
func (p *payload) exactly(n int64) error {
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

// replace replaces the held body. The new one may be many times longer than a compressed one.
func (p *payload) replace(body []byte) error {
	if n := int64(len(body)); n > max(smallBody, p.taken) {
		if !p.room.take(n-p.taken, p.highest) {
			return errNoRoom
		}
		p.taken = n
	}
	p.held, p.again = body, nil
	return nil
}

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
		if p.taken > 0 && int64(len(p.held)) > p.kept && p.room.tight() {
			return p.lastly(reader), nil
		}
		return io.NopCloser(reader), nil // net/http recognises this type and sends the body together with the header
	case p.src == nil:
		body, err := p.again()
		if err != nil || !p.named {
			return body, err
		}
		one := p.oneModel(body)
		return &lastBody{one, p, func() {}, []io.Closer{one, body}}, nil
	}
	src, body := p.src, io.MultiReader(bytes.NewReader(p.held), p.src)
	p.src = nil
	if p.named {
		one := p.oneModel(body)
		return p.lastly(one, one, src), nil
	}
	return p.lastly(body, src), nil
}

// lastly returns the body for the only or the last send. What is held is free once it is sent.
func (p *payload) lastly(body io.Reader, then ...io.Closer) io.ReadCloser {
	room, taken := p.room, p.taken
	p.free = sync.OnceFunc(func() { room.give(taken) })
	p.held, p.whole, p.taken = nil, false, 0
	return &lastBody{body, p, p.free, then}
}

type lastBody struct {
	io.Reader
	p    *payload
	free func()
	then []io.Closer
}

// Read implements io.Reader.
func (b *lastBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.p.broken.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (b *lastBody) Close() (err error) {
	b.free()
	for _, c := range b.then {
		err = c.Close()
	}
	return err
}

// oneModel passes on a body until it names a second model, and then fails with [ErrModel]: the end of such a call does
// not reach the provider.
type oneModel struct {
	src    io.Reader
	mu     sync.Mutex // the transport may close the body while it reads
	guard  *provider.ModelGuard
	zipped *inflater // nil: the body is not compressed
	failed bool
	closed bool
}

func (p *payload) oneModel(body io.Reader) *oneModel {
	one := &oneModel{src: body, guard: provider.NewModelGuard()}
	if p.packed {
		one.zipped = newInflater(one.guard, provider.MaxNamed)
	}
	return one
}

// namesTwo reports whether a body that is held completely names a second model.
func (p *payload) namesTwo() bool {
	one := p.oneModel(bytes.NewReader(p.held))
	defer func() { _ = one.Close() }() // always nil
	_, err := io.Copy(io.Discard, one)
	return err != nil
}

// Read implements io.Reader.
func (o *oneModel) Read(p []byte) (int, error) {
	n, err := o.src.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return 0, http.ErrBodyReadAfterClose
	case o.failed || n == 0:
	case o.zipped == nil:
		o.guard.Write(p[:n])
		o.failed = o.guard.Unread()
	default:
		o.failed = !o.zipped.write(p[:n]) || o.guard.Unread()
	}
	if o.failed {
		return 0, ErrModel
	}
	return n, err
}

// Close implements io.Closer. It does not close the source.
func (o *oneModel) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.zipped != nil {
		o.zipped.close()
	}
	o.closed = true
	return nil
}

// forget frees the body that was held for retries.
func (p *payload) forget() {
	p.held, p.again = nil, nil
	p.room.give(p.taken)
	p.taken = 0
	if p.free != nil {
		p.free()
	}
}

// close closes the part that was not sent, and frees what is held.
func (p *payload) close() {
	p.forget()
	if p.src != nil {
		_ = p.src.Close()
		p.src = nil
	}
}
