// Package alert posts alerts for people to a webhook, as JSON. It retries a few times and never blocks the caller: if
// the queue is full, the message is dropped and counted.
//
// The address of a webhook is often a secret. Errors and logs name only its host.
package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
)

// Bounds of a [Poster].
const (
	MaxQueued  = 64
	MaxMessage = 64 << 10 // bytes
	Attempts   = 5
	timeout    = 10 * time.Second // for one attempt
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// message is an encoded message, or why there is none.
type message struct {
	text []byte
	err  error
}

// Poster posts to one webhook.
type Poster struct {
	address string
	host    string
	client  *http.Client
	report  func(error)

	queue   chan message
	dropped atomic.Int64
	life    context.Context
	stop    context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	closed bool
}

// New returns a Poster that runs until it is closed. It calls report from another goroutine for every message that
// could not be delivered. report may be nil.
func New(address string, report func(error)) (*Poster, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the webhook is not an address such as https://HOST/PATH")
	}
	p := &Poster{
		address: address, host: u.Host, report: report, queue: make(chan message, MaxQueued), done: make(chan struct{}),
		client: &http.Client{
			Timeout: timeout,
			// The owner of the webhook named this address, not the one it redirects to.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute},
		},
	}
	p.life, p.stop = context.WithCancel(context.Background())
	go p.run()
	return p, nil
}

// Post queues content, encoded as JSON. It does not block: if the queue is full, the message is dropped and counted. A
// message that cannot be encoded, or is longer than MaxMessage, is reported as not delivered.
func (p *Poster) Post(content any) {
	text, err := json.Marshal(content)
	if err == nil && len(text) > MaxMessage {
		err = fmt.Errorf("a message of %d bytes is longer than %d", len(text), MaxMessage)
	}
	if err != nil {
		text, err = nil, fmt.Errorf("the webhook at %s: %w", p.host, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.dropped.Add(1)
		return
	}
	select {
	case p.queue <- message{text, err}:
	default:
		p.dropped.Add(1)
	}
}

// Dropped returns how many messages were not delivered.
func (p *Poster) Dropped() int64 { return p.dropped.Load() }

// Close delivers the queued messages, as long as ctx allows, and stops the poster.
func (p *Poster) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.queue)
	}
	p.mu.Unlock()
	var err error
	select {
	case <-p.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.stop()
	<-p.done
	p.client.CloseIdleConnections()
	return err
}

func (p *Poster) run() {
	defer close(p.done)
	for m := range p.queue {
		err := m.err
		if err == nil {
			err = p.deliver(m.text)
		}
		if err != nil {
			p.dropped.Add(1)
			if p.report != nil {
				p.report(err)
			}
		}
	}
}

// deliver retries until the post succeeds, cannot succeed, or has failed Attempts times.
func (p *Poster) deliver(text []byte) error {
	pause := firstPause
	for n := 1; ; n++ {
		again, err := p.once(text)
		if err == nil {
			return nil
		}
		if !again || n == Attempts || p.life.Err() != nil {
			return err
		}
		if !sleep.For(p.life, pause) {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

func (p *Poster) once(text []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(p.life, http.MethodPost, p.address, bytes.NewReader(text))
	if err != nil {
		return false, fmt.Errorf("the webhook at %s: the request cannot be made", p.host)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sluice")
	resp, err := p.client.Do(req)
	if err != nil {
		if bad, ok := errors.AsType[*url.Error](err); ok {
			err = bad.Err // the url.Error would name the address
		}
		return true, fmt.Errorf("the webhook at %s: %w", p.host, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, MaxMessage)) // so that the connection can be reused
	_ = resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	again = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout
	return again, fmt.Errorf("the webhook at %s answered %d", p.host, resp.StatusCode)
}
