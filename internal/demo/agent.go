package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
)

// Bounds on what an agent sends and reads.
const (
	maxTokens = 256
	maxAnswer = 1 << 20
	maxSaid   = 200 // bytes of an unexpected response, in the error
	tellEvery = 100 * time.Millisecond
)

// caller is a running agent.
type caller struct {
	Agent
	base, key string
	client    *http.Client
	context   string // text that all calls begin with
	tally     tally
	next      atomic.Int64
}

// work makes all calls, and reports its progress until it returns.
func (c *caller) work(ctx context.Context, tell func(State)) {
	c.context = c.text()
	began := time.Now()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var workers sync.WaitGroup
		for range c.Workers {
			workers.Go(func() {
				for i := c.next.Add(1); i <= int64(c.Calls) && ctx.Err() == nil; i = c.next.Add(1) {
					if !c.due(ctx, began, i) {
						return
					}
					if err := c.call(ctx, i); err != nil {
						fail(err)
					}
				}
			})
		}
		workers.Wait()
	}()
	now := time.NewTicker(tellEvery)
	defer now.Stop()
	for working := true; working; {
		select {
		case <-done:
			working = false
		case <-now.C:
			if s, changed := c.tally.take(); changed {
				tell(s)
			}
		}
	}
	s, _ := c.tally.take()
	if s.Ended = true; s.Done < c.Calls {
		s.Error = fmt.Sprint(context.Cause(ctx))
	}
	tell(s)
}

// text returns the text that all calls begin with: as many tokens as configured, at four bytes each.
func (c *caller) text() string {
	if c.Tokens == 0 {
		return strings.Repeat("The "+c.Name+" agent has read this file before, and sends it with every call. ", 160)
	}
	const around = 60 // bytes of JSON and of the call's number
	return strings.Repeat("word ", int(max(4*c.Tokens-around, 5)/5))
}

// due waits until the job of call i begins. It returns false if ctx ends first.
func (c *caller) due(ctx context.Context, began time.Time, i int64) bool {
	at := c.Start
	if c.PerJob > 0 {
		at += time.Duration((i-1)/int64(c.PerJob)) * c.Every
	}
	return sleep.For(ctx, at-time.Since(began))
}

// call sends a call until it is answered, with backoff after each refusal or failure.
func (c *caller) call(ctx context.Context, i int64) error {
	body, err := json.Marshal(map[string]any{
		"model": cmp.Or(c.Model, Model), "max_tokens": maxTokens,
		"messages": []map[string]string{{"role": "user", "content": c.context + "This is call " + strconv.FormatInt(i, 10) + "."}},
	})
	if err != nil {
		return err
	}
	began := time.Now()
	c.tally.change(func(s *State) { s.Waiting++ })
	defer c.tally.change(func(s *State) { s.Waiting-- })
	for n := 0; ; n++ {
		asked, done, err := c.send(ctx, body, n)
		if err != nil {
			return err
		}
		if done {
			took := time.Since(began)
			c.tally.change(func(s *State) { s.Done, s.Total, s.Longest = s.Done+1, s.Total+took, max(s.Longest, took) })
			return nil
		}
		if !sleep.For(ctx, backoff(n, asked, rand.Float64())) {
			return ctx.Err()
		}
	}
}

// send sends a call for the n-th time, counted from 0. If done is false and err is nil, the caller must retry, no
// earlier than after asked.
func (c *caller) send(ctx context.Context, body []byte, n int) (asked time.Duration, done bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Api-Key", c.key)
	r.Header.Set("X-Agent-Id", c.Name)
	r.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(n)) // like the official clients
	c.tally.change(func(s *State) { s.Sends++ })
	resp, err := c.client.Do(r)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		var answer []byte
		if answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err == nil {
			return c.judge(resp, answer)
		}
	}
	if ctx.Err() != nil {
		return 0, false, ctx.Err()
	}
	c.tally.change(func(s *State) { s.Failed++ })
	return 0, false, nil
}

// judge returns whether a response completes the call, or how long to wait before the retry.
func (c *caller) judge(resp *http.Response, answer []byte) (asked time.Duration, done bool, err error) {
	switch status := resp.StatusCode; {
	case status == http.StatusOK:
		return 0, true, nil
	case status == http.StatusTooManyRequests:
		c.tally.change(func(s *State) { s.Throttled++ })
	case status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict: // official clients retry these
		c.tally.change(func(s *State) { s.Failed++ })
	default:
		return 0, false, fmt.Errorf("agent %s was answered with status %d: %.*q", c.Name, status, maxSaid, answer)
	}
	return retryAfter(resp.Header), false, nil
}
