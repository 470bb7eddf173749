package sluicehttp

import (
	"sync"
	"time"
)

const (
	maxPaces = 512 // models with their own timing
	// Defaults before anything is known about a model: how long its responses take, and how many bytes of text make a
	// token.
	firstService = 30 * time.Second
	firstBytes   = 3
	leastLinger  = time.Second
	mostLinger   = 10 * time.Minute
)

// timings remembers how long responses take, and how many bytes of text make a token.
type timings struct {
	mu     sync.Mutex
	models map[string]*timing
	all    timing
}

// timing is the timing of one model. Older responses lose weight.
type timing struct {
	service       time.Duration
	bytes, tokens float64
}

func (p *timings) learn(model string, took time.Duration, seen, output int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.models[model]
	if m == nil && len(p.models) < maxPaces && len(model) <= maxModelName {
		if p.models == nil {
			p.models = map[string]*timing{}
		}
		m = &timing{}
		p.models[model] = m
	}
	p.all.learn(took, seen, output)
	if m != nil {
		m.learn(took, seen, output)
	}
}

// maxModelName is the longest model name that is remembered, in bytes.
const maxModelName = 256

func (m *timing) learn(took time.Duration, seen, output int64) {
	if took = max(took, time.Microsecond); m.service == 0 {
		m.service = took
	}
	m.service += (took - m.service) / 16
	if seen > 0 {
		m.bytes += float64(seen) - m.bytes/16
		m.tokens += float64(output) - m.tokens/16
	}
}

// output estimates how many tokens the given number of bytes of text are.
func (p *timings) output(model string, seen int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range [...]*timing{p.models[model], &p.all} {
		if m != nil && m.bytes > 0 {
			return int64(float64(seen)*m.tokens/m.bytes + 0.5)
		}
	}
	return seen / firstBytes
}

// remaining estimates how long the provider will still work on a response that has taken so long: the rest of the usual
// time, but at least a quarter of it.
func (t *Transport) remaining(model string, took time.Duration) time.Duration {
	p := &t.timings
	p.mu.Lock()
	usual := firstService
	for _, m := range [...]*timing{p.models[model], &p.all} {
		if m != nil && m.service > 0 {
			usual = m.service
			break
		}
	}
	p.mu.Unlock()
	return min(max(usual-took, usual/4, leastLinger), mostLinger)
}
