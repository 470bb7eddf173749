// Package estimate predicts how many tokens a call will use, from the usage of earlier calls of the same agent and
// model. It reads no clock, draws no random numbers and does no I/O: the same calls in the same order give the same
// estimates.
//
// Input follows from the length of the text, with a learned ratio. Output is a high quantile of recent responses. So
// most calls stay below it, and few reserve much more than they need.
package estimate

import (
	"strings"
	"sync"
)

// Bounds of a Book. Names come from requests. A client that sends many different names only makes the Book forget.
const (
	MaxPairs  = 4096 // agents x models
	MaxModels = 512
	maxName   = 256     // bytes of a name that count
	maxAmount = 1 << 40 // tokens or bytes of one call
)

// FirstOutput is the estimated length of a response before any response was seen.
const FirstOutput = 1024

// Book remembers what calls have used. The zero value is empty and ready. It is safe for concurrent use.
type Book struct {
	mu     sync.Mutex
	pairs  table
	models table
	all    entry

	watches map[*Watch]struct{}
}

// Miss is the error of estimates: the mean of |estimate - actual| / actual, over about the last 32 calls.
type Miss struct {
	Input, Output float64
	Calls         int64 // since the start
}

// Input estimates the input tokens of a call with textBytes bytes of text.
func (b *Book) Input(agent, model string, textBytes int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.find(agent, model).input(textBytes)
}

// Output estimates the output tokens of a call. It never exceeds most, the call's own bound; 0 means no bound.
func (b *Book) Output(agent, model string, most int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := int64(FirstOutput)
	if e := b.find(agent, model); e.n > 0 {
		n = e.high
	}
	if most > 0 {
		n = min(n, most)
	}
	return n
}

// Learn records what a call really used. Negative numbers count as 0. A call without text teaches nothing about the
// ratio, but it does about the output.
func (b *Book) Learn(agent, model string, textBytes, input, output int64) {
	agent, model = cut(agent), cut(model)
	textBytes, input, output = clamp(textBytes), clamp(input), clamp(output)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all.begin(nil)
	m := b.models.get(key{model: model})
	if m == nil {
		m = b.models.add(key{model: strings.Clone(model)}, MaxModels)
		m.begin(&b.all)
	}
	p := b.pairs.get(key{agent, model})
	if p == nil {
		p = b.pairs.add(key{strings.Clone(agent), strings.Clone(model)}, MaxPairs)
		p.begin(m)
	}
	// Estimate before learning: each entry is judged by what it would have said.
	foreseen := b.from(p, m)
	in, out := foreseen.input(textBytes), int64(FirstOutput)
	if foreseen.n > 0 {
		out = foreseen.high
	}
	for _, e := range [...]*entry{p, m, &b.all} {
		e.learn(textBytes, input, output)
		e.missed(in, input, out, output, textBytes > 0)
	}
	if m.n <= soon {
		for w := range b.watches {
			b.tell(w)
		}
	}
}

// Overall returns the error of all estimates.
func (b *Book) Overall() Miss {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.miss
}

// find returns the most specific known entry: of agent and model, of the model, or of all calls.
func (b *Book) find(agent, model string) *entry {
	b.all.begin(nil)
	model = cut(model)
	return b.from(b.pairs.get(key{cut(agent), model}), b.models.get(key{model: model}))
}

func (b *Book) from(pair, model *entry) *entry {
	switch {
	case pair != nil && pair.n > 0:
		return pair
	case model != nil && model.n > 0:
		return model
	}
	return &b.all
}

func cut(name string) string { return name[:min(len(name), maxName)] }

func clamp(n int64) int64 { return min(max(n, 0), maxAmount) }
