package policy

import "math"

// Pace spreads what lower classes take from a rolling window while an agent of the highest class is live. They get a
// burst of 5% of the window's size, at least 1, and then the even rate. Otherwise they could use up the window at
// once, and the highest class would wait until it comes back.
type Pace struct {
	Next int64 // when all granted amounts would have been used at an even rate

	// Amounts taken and given back at the same time count as one sum. Their order does not matter, nor whether they
	// are recorded one by one.
	at   int64 // time of the last change
	base int64 // Next before that time
	paid int64 // taken at that time, less what was given back
}

// Gap returns how long amount lasts at an even rate, rounded up.
func Gap(amount, size, window int64) int64 {
	return int64(math.Ceil(float64(float64(amount)*float64(window)) / float64(size)))
}

// Allow returns when amount may go: at t, or later. An amount larger than the burst goes when all earlier amounts
// have been worked off.
func (p *Pace) Allow(t, amount, size, window int64) int64 {
	burst := max(size/20, 1)
	return max(p.Next-Gap(max(burst-amount, 0), size, window), t)
}

// AllowsAll reports whether several requests that take amount together may all go at t, in any order. It may return
// false although they may.
func (p *Pace) AllowsAll(t, amount, size, window int64) bool {
	return max(p.Next, t)+Gap(amount, size, window) < t+Gap(max(size/20, 1), size, window)
}

// Take records that amount goes at t. Requests can use far more than estimated, even more than a window holds. The
// window covers the excess: it comes back after one window, and so does the pace.
func (p *Pace) Take(t, amount, size, window int64) {
	if p.at != t {
		p.at, p.base, p.paid = t, p.Next, 0
	}
	p.paid += amount
	switch {
	case p.paid > 0:
		p.Next = min(max(p.base, t)+Gap(p.paid, size, window), t+window)
	default:
		p.Next = p.base - Gap(-p.paid, size, window)
	}
}

// Refund records at t that amount was never sent. A negative amount means that more was sent.
func (p *Pace) Refund(t, amount, size, window int64) { p.Take(t, -amount, size, window) }
