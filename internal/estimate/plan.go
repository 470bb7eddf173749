package estimate

import (
	"slices"
	"sync"
)

// Bounds of a Plan.
const (
	MaxWindows   = 64     // windows x accounts
	maxPerWindow = 32     // models of one window
	mostOfWindow = 50_000 // millionths of a window that one call needs at most

	planSamples = 8     // samples that an estimate is based on
	planStep    = 5_000 // millionths by which a window must have moved for a sample
	planBack    = 5_000 // a figure that falls by more belongs to a new window
)

// Plan learns what calls take from the windows of a subscription. Providers state only how much of a window is used,
// often in whole percent. So Plan adds up the tokens of calls until the figure has moved; the quotient is one
// sample. Other programs may use the same subscription, which makes samples too large. So the estimate is a low one
// of the latest samples.
//
// The zero value is empty and ready. It is safe for concurrent use.
type Plan struct {
	mu      sync.Mutex
	windows map[string]*window
	clock   uint64
}

// window is what is known about one window.
type window struct {
	seen   uint64 // when it was last used, by the plan's clock
	last   int64  // the figure at which the sums began
	latest int64  // the figure stated last
	paid   bool   // stated with it: use beyond the window is paid for and accepted
	moved  bool   // the figure has moved to last, so that the next sample is complete
	sums   map[string]int64
	rates  map[string]*rates
}

// rates are the latest samples, in millionths of the window per million tokens.
type rates struct {
	ring [planSamples]float64
	n    int
}

// State records that used millionths of a window are used, and whether use beyond it is paid for.
func (p *Plan) State(name string, used int64, paid bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.get(name, true)
	w.latest, w.paid = used, paid
	switch {
	case w.last < 0:
		w.last = used
	case used < w.last-planBack: // a new window began
		w.begin(used, false)
	case used-w.last >= planStep || !w.moved && used > w.last:
		if w.moved {
			w.sample(float64(used - w.last))
		}
		w.begin(used, true)
	}
}

// begin restarts the sums.
func (w *window) begin(used int64, moved bool) {
	w.last, w.moved = used, moved
	clear(w.sums)
}

// sample records a move of the figure. If several models were used, it counts for none of them in particular.
func (w *window) sample(by float64) {
	var all int64
	for _, n := range w.sums {
		all += n
	}
	if all == 0 {
		return // used outside Sluice
	}
	rate := by * 1e6 / float64(all)
	w.rate("").add(rate)
	for model, n := range w.sums {
		if model != "" && n >= all/10*9 {
			w.rate(model).add(rate)
		}
	}
}

func (w *window) rate(model string) *rates {
	r := w.rates[model]
	if r == nil {
		if len(w.rates) >= maxPerWindow {
			clear(w.rates) // names come from requests
		}
		r = &rates{}
		w.rates[model] = r
	}
	return r
}

func (r *rates) add(rate float64) {
	r.ring[r.n%planSamples] = rate
	r.n++
}

// low returns the lower quartile.
func (r *rates) low() float64 {
	n := min(r.n, planSamples)
	sorted := slices.Clone(r.ring[:n])
	slices.Sort(sorted)
	return sorted[(n-1)/4]
}

// Use records that a call of a model has used tokens from a window.
func (p *Plan) Use(name, model string, tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.get(name, false)
	if w == nil || tokens <= 0 {
		return
	}
	model = cut(model)
	if _, known := w.sums[model]; !known && len(w.sums) >= maxPerWindow {
		model = ""
	}
	w.sums[model] = clamp(w.sums[model] + clamp(tokens))
}

// Cost estimates what a call with so many tokens takes from a window, in millionths, at least 1. It returns false if
// that is unknown because no two statements have differed yet.
func (p *Plan) Cost(name, model string, tokens int64) (millionths int64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.get(name, false)
	if w == nil {
		return 0, false
	}
	r := w.rates[cut(model)]
	if r == nil || r.n == 0 {
		r = w.rates[""]
	}
	if r == nil || r.n == 0 {
		return 0, false
	}
	n := r.low() * float64(clamp(tokens)) / 1e6
	return int64(min(max(n, 1), mostOfWindow)), true
}

// Stated returns the latest statement about a window: how much is used, and whether use beyond it is paid for. ok is
// false if no response has stated it.
func (p *Plan) Stated(name string) (used int64, paid, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.windows[name]
	if w == nil {
		return 0, false, false
	}
	return w.latest, w.paid, true
}

// get returns a window. With create, it creates a missing one.
func (p *Plan) get(name string, create bool) *window {
	p.clock++
	w := p.windows[name]
	if w == nil && create {
		if len(p.windows) >= MaxWindows {
			p.drop()
		}
		if p.windows == nil {
			p.windows = map[string]*window{}
		}
		w = &window{last: -1, sums: map[string]int64{}, rates: map[string]*rates{}}
		p.windows[name] = w
	}
	if w != nil {
		w.seen = p.clock
	}
	return w
}

// drop forgets the least recently used window.
func (p *Plan) drop() {
	oldest := ""
	for name, w := range p.windows {
		if oldest == "" || w.seen < p.windows[oldest].seen {
			oldest = name
		}
	}
	delete(p.windows, oldest)
}
