package policy

import "math"

// Pace spreads what lower classes take of a rolling window while an agent of the highest
// class is alive: a burst of 5% of the window's size, at least 1, and then its rate. A window
// that they had used up at once would make the other wait until it comes back.
type Pace struct {
	Next int64 // when all that was let through would have gone at an even rate
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

// Take notes that amount goes at t. More than a window's worth, as when requests used far more
// than was estimated, is paid for by the window: it comes back after one, and so does the pace.
func (p *Pace) Take(t, amount, size, window int64) {
	p.Next = min(max(p.Next, t)+Gap(amount, size, window), t+window)
}

// Refund notes at t that amount was never sent; negative if it was more.
func (p *Pace) Refund(t, amount, size, window int64) {
	if amount < 0 {
		p.Take(t, -amount, size, window)
		return
	}
	p.Next -= Gap(amount, size, window)
}
