package sluicehttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/provider"
)

// peekFor is how long to wait for the first bytes of a response. Sluice then uses what has arrived.
const peekFor = 2 * time.Second

// peeked is a body whose beginning was read ahead. The client still reads the same bytes.
type peeked struct {
	src io.ReadCloser

	mu    sync.Mutex
	more  sync.Cond
	ahead []byte // read ahead and not yet read by the client
	over  bool   // reading ahead has ended
	err   error  // the error that ended it, if any
}

// peek returns the beginning of a response body, decompressed. The client still reads all of it.
func (f *flight) peek(resp *http.Response) []byte {
	p := &peeked{src: resp.Body}
	p.more.L = &p.mu
	resp.Body = p
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run()
	}()
	timer := time.NewTimer(peekFor)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-f.ctx.Done():
	}
	p.mu.Lock()
	first := bytes.Clone(p.ahead)
	p.mu.Unlock()
	if gzipped(resp.Header) {
		first, _ = unzip(first, provider.MaxBody)
	}
	return first
}

// run reads ahead up to provider.MaxBody bytes.
func (p *peeked) run() {
	for total, chunk := 0, make([]byte, 4096); ; {
		n, err := p.src.Read(chunk[:min(len(chunk), provider.MaxBody-total)])
		total += n
		p.mu.Lock()
		p.ahead = append(p.ahead, chunk[:n]...)
		p.over, p.err = err != nil || total >= provider.MaxBody, err
		over := p.over
		p.more.Broadcast()
		p.mu.Unlock()
		if over {
			return
		}
	}
}

func (p *peeked) Read(b []byte) (int, error) {
	p.mu.Lock()
	for len(p.ahead) == 0 && !p.over {
		p.more.Wait()
	}
	n, err := copy(b, p.ahead), p.err
	p.ahead = p.ahead[n:]
	p.mu.Unlock()
	if n > 0 || len(b) == 0 {
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	return p.src.Read(b)
}

// Close also ends reading ahead: the pending read fails.
func (p *peeked) Close() error { return p.src.Close() }

// keep detaches a response from its connection, so that it can be returned later. It reports false if the body is not
// complete.
func keep(resp *http.Response) bool {
	p, ok := resp.Body.(*peeked)
	if !ok {
		if resp.ContentLength == 0 && resp.Body != nil {
			_ = resp.Body.Close()
			resp.Body = http.NoBody
		}
		return resp.Body == nil || resp.Body == http.NoBody
	}
	p.mu.Lock()
	whole := p.over && errors.Is(p.err, io.EOF)
	first := p.ahead
	p.mu.Unlock()
	if whole {
		_ = p.src.Close()
		resp.Body = io.NopCloser(bytes.NewReader(first))
	}
	return whole
}
