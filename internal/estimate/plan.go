package estimate

import (
	"slices"
	"sync"
)

// Bounds of a Plan.
const (
	MaxWindows   = 64     // windows x accounts
	maxPerWindow = 32     // models of one window
	mostOfWindow = 50_000 // millionths of a window that one call is taken to need

	planSamples = 8     // that an estimate rests on
	planStep    = 5_000 // millionths that a window has moved by when a sample is taken
	planBack    = 5_000 // a figure that falls by more is that of another window
)

// Plan learns what calls take of the windows of a subscription. Providers state only how much of a window is used, often in whole
// percent. So the tokens of calls are added up until the figure has moved, and the quotient is one sample. Others may use the
// same subscription, which makes samples too large: the estimate is a low one of the latest.
//
// Its zero value is empty and ready; it is safe for concurrent use.
type Plan struct {
	mu      sync.Mutex
	windows map[string]*window
	clock   uint64
}

// window is what is known of one window.
type window struct {
	seen   uint64 // when it was last used, by the plan's clock
	last   int64  // the figure that sums began at
	latest int64  // stated last
	paid   bool   // with it: what is beyond the window is paid for, and passes
	moved  bool   // last is where the figure has moved: from there a sample is whole
	sums   map[string]int64
	rates  map[string]*rates
}

// rates are the latest samples, in millionths of the window for a million tokens.
type rates struct {
	ring [planSamples]float64
	n    int
}

// State takes in that used millionths of a window are used, and whether what is beyond it is paid for.
func (p *Plan) State(name string, used int64, paid bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.get(name, true)
	w.latest, w.paid = used, paid
	switch {
	case w.last < 0:
		w.last = used
	case used < w.last-planBack: // it has begun anew
		w.begin(used, false)
	case used-w.last >= planStep || !w.moved && used > w.last:
		if w.moved {
			w.sample(float64(used - w.last))
		}
		w.begin(used, true)
	}
}

// begin starts sums anew.
func (w *window) begin(used int64, moved bool) {
	w.last, w.moved = used, moved
	clear(w.sums)
}

// sample takes in that the figure has moved. Where several models were used it is about none of them in particular.
func (w *window) sample(by float64) {
	var all int64
	for _, n := range w.sums {
		all += n
	}
	if all == 0 {
		return // somebody else's use
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

// low is the lower quartile.
func (r *rates) low() float64 {
	n := min(r.n, planSamples)
	sorted := slices.Clone(r.ring[:n])
	slices.Sort(sorted)
	return sorted[(n-1)/4]
}

// Use takes in that a call of a model has used so many tokens of a window.
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

// Cost estimates what a call with so many tokens takes of a window, in millionths, at least 1. It reports false if that is not
// known: no two statements have differed yet.
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

// Stated reports whether any answer has stated a window, how much of it is used, and whether what is beyond it is paid for.
func (p *Plan) Stated(name string) (used int64, paid, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.windows[name]
	if w == nil {
		return 0, false, false
	}
	return w.latest, w.paid, true
}

// get finds a window, and makes it if it is to be there.
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

// drop forgets the window that was not used for longest.
func (p *Plan) drop() {
	oldest := ""
	for name, w := range p.windows {
		if oldest == "" || w.seen < p.windows[oldest].seen {
			oldest = name
		}
	}
	delete(p.windows, oldest)
}
