package policy

import "math"

// Pace spreads what lower classes take of a rolling window while an agent of the highest
// class is alive: a burst of 5% of the window's size, at least 1, and then its rate. A window
// that they had used up at once would make the other wait until it comes back.
type Pace struct {
	Next int64 // when all that was let through would have gone at an even rate

	// What is taken and given back at one moment counts as one amount: its order does not matter, and neither does it
	// whether it is told one by one or as a sum.
	at   int64 // the moment of the last change
	base int64 // Next before it
	paid int64 // taken at it, less what was given back
}

// Gap is how long amount lasts at an even rate, rounded up.
func Gap(amount, size, window int64) int64 {
	return int64(math.Ceil(float64(float64(amount)*float64(window)) / float64(size)))
}

// Allow returns when amount may go: at t, or later. What is larger than the burst goes when all
// before it has been worked off.
func (p *Pace) Allow(t, amount, size, window int64) int64 {
	burst := max(size/20, 1)
	return max(p.Next-Gap(max(burst-amount, 0), size, window), t)
}

// AllowsAll reports that all of several requests may go at t that take amount together, whatever their order. It may report
// false although they may.
func (p *Pace) AllowsAll(t, amount, size, window int64) bool {
	return max(p.Next, t)+Gap(amount, size, window) < t+Gap(max(size/20, 1), size, window)
}

// Take notes that amount goes at t. More than a window's worth, as when requests used far more
// than was estimated, is paid for by the window: it comes back after one, and so does the pace.
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

// Refund notes at t that amount was never sent; negative if it was more.
func (p *Pace) Refund(t, amount, size, window int64) { p.Take(t, -amount, size, window) }
