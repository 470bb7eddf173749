package policy

import "math"

// Never is a time later than any.
const Never = 1 << 53

// Line is a floor: how much of a stock must be left behind. It sinks in a straight line,
// from Amount when Over is left to Until, to nothing at Until; so what is kept for
// somebody who does not come is not wasted. With Over 0 it does not sink.
type Floor struct {
	Amount, Over, Until int64
}

// At returns the floor at t, rounded to the nearest: rounded up, the last one of a window
// would never be used.
func (l Floor) At(t int64) int64 {
	if l.Over == 0 {
		return l.Amount
	}
	left := min(max(l.Until-t, 0), l.Over)
	return int64(math.Floor(float64(float64(l.Amount)*float64(left))/float64(l.Over) + 0.5))
}

// When returns the first moment from t on at which no more than left has to be left
// behind, or Never.
func (l Floor) When(t, left int64) int64 {
	switch {
	case l.At(t) <= left:
		return t
	case l.Over == 0 || left < 0:
		return Never
	}
	at := l.Until - int64(math.Floor(float64((float64(left)+0.5)*float64(l.Over))/float64(l.Amount)))
	for l.At(at) > left { // the two roundings can be apart by one
		at++
	}
	return max(at, t)
}

// Part returns so many thousandths of an amount, rounded down.
func Part(amount, thousandths int64) int64 {
	return amount/1000*thousandths + amount%1000*thousandths/1000
}
