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

// peekFor is how long the first bytes of an answer are waited for. What has come by then has to do.
const peekFor = 2 * time.Second

// peeked is a body whose beginning was read ahead. The client reads the same bytes.
type peeked struct {
	src io.ReadCloser

	mu    sync.Mutex
	more  sync.Cond
	ahead []byte // read ahead and not yet read by the client
	over  bool   // reading ahead is
	err   error  // why, if not because it was enough
}

// peek reads the beginning of an answer's body, decompressed. What it read, the client reads too.
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

// run reads ahead until it is enough.
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

// Close ends reading ahead, too: its read fails.
func (p *peeked) Close() error { return p.src.Close() }

// keep makes an answer independent of its connection, so that it can be returned later. It reports false if not
// all of it is there.
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
