package http1

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection. One request at a time uses it.
type conn struct {
	t       *Transport
	address string
	net     net.Conn
	reused  bool
	since   time.Time // it has been idle
	check   check

	r     *bufio.Reader
	w     *bufio.Writer
	left  int64 // bytes that may still be read of a header; -1: any number
	got   bool  // something was read for this request
	wrote int64 // bytes for this request
}

// maxHeader is the length of an answer's header where the base transport does not say.
const maxHeader = 10 << 20

func newConn(t *Transport, address string, network net.Conn) *conn {
	c := &conn{t: t, address: address, net: network}
	c.check.init(network)
	c.r, c.w = bufio.NewReaderSize(source{c}, 4<<10), bufio.NewWriterSize(sink{c}, 4<<10)
	return c
}

// source is what a connection reads from.
type source struct{ c *conn }

func (s source) Read(p []byte) (int, error) {
	c := s.c
	if c.left == 0 {
		return 0, errHeader
	}
	if c.left > 0 && int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.net.Read(p)
	if n > 0 {
		c.got = true
		if c.left > 0 {
			c.left -= int64(n)
		}
	}
	return n, err
}

// sink is what a connection writes to.
type sink struct{ c *conn }

func (s sink) Write(p []byte) (int, error) {
	n, err := s.c.net.Write(p)
	s.c.wrote += int64(n)
	return n, err
}

func (c *conn) close() { _ = c.net.Close() }

// alive reports that an idle connection can be used: the server has not closed it, and has sent nothing that nobody asked for.
func (c *conn) alive() bool { return c.r.Buffered() == 0 && c.check.quiet() }

var past = time.Unix(1, 0)

// abort ends reads and writes that wait.
func (c *conn) abort() { _ = c.net.SetDeadline(past) }

// exchange sends a request and reads the header of its answer. After an error, again tells that another connection may have more luck.
func (c *conn) exchange(r *http.Request) (resp *http.Response, again bool, err error) {
	ctx := r.Context()
	stop := context.AfterFunc(ctx, c.abort)
	c.got, c.wrote = false, 0
	if err = r.Write(c.w); err == nil {
		err = c.w.Flush()
	}
	if err == nil {
		resp, err = c.answer(r)
	}
	if err != nil {
		stop()
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		return nil, c.reused && !c.got && (c.wrote == 0 || replayable(r)), err
	}
	b := &body{c: c, ctx: ctx, stop: stop, src: resp.Body, keep: !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols}
	if resp.Body == http.NoBody && resp.StatusCode != http.StatusSwitchingProtocols {
		b.end(whole)
	} else {
		resp.Body = b
	}
	return resp, false, nil
}

// answer reads the header of an answer, and skips informational ones.
func (c *conn) answer(r *http.Request) (*http.Response, error) {
	for range maxEarly + 1 {
		c.left = maxHeader
		if most := c.t.base.MaxResponseHeaderBytes; most > 0 {
			c.left = most
		}
		resp, err := http.ReadResponse(c.r, r)
		if err != nil {
			return nil, err
		}
		c.left = -1
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
	return nil, errEarly
}

// body is an answer's body. When it has been read to its end, its connection can serve the next request.
type body struct {
	c    *conn
	ctx  context.Context
	stop func() bool // ends the watch of ctx; false: the connection was aborted
	src  io.Reader
	keep bool // the connection may be used again
	once sync.Once
	over atomic.Int32 // how it ended
}

// How a body ended.
const (
	underway = iota
	whole    // it was read to its end
	left     // it was closed before, or broke off
)

func (b *body) Read(p []byte) (int, error) {
	switch b.over.Load() {
	case whole:
		return 0, io.EOF
	case left:
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.src.Read(p)
	if err == nil {
		return n, nil
	}
	if err == io.EOF {
		b.end(whole)
	} else {
		b.end(left)
	}
	if err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close closes the connection if the answer was not read to its end.
func (b *body) Close() error {
	b.end(left)
	return nil
}

// end gives the connection up, the first time.
func (b *body) end(how int32) {
	b.once.Do(func() {
		b.over.Store(how)
		if running := b.stop(); how == whole && b.keep && running && b.c.r.Buffered() == 0 {
			b.c.t.keep(b.c)
		} else {
			b.c.close()
		}
	})
}
