package policy

import "math"

// Never is later than any other time.
const Never = 1 << 53

// Floor is how much of a stock must be left behind. It sinks in a straight line, from Amount when Over is left until
// Until, to 0 at Until. So an amount that is reserved but never requested is not wasted. With Over 0 it does not
// sink.
type Floor struct {
	Amount, Over, Until int64
}

// At returns the floor at t, rounded to the nearest. If it were rounded up, the last unit of a window would never be
// used.
func (l Floor) At(t int64) int64 {
	if l.Over == 0 {
		return l.Amount
	}
	left := min(max(l.Until-t, 0), l.Over)
	return int64(math.Floor(float64(float64(l.Amount)*float64(left))/float64(l.Over) + 0.5))
}

// When returns the first time from t on at which the floor is at most left, or Never.
func (l Floor) When(t, left int64) int64 {
	switch {
	case l.At(t) <= left:
		return t
	case l.Over == 0 || left < 0:
		return Never
	}
	at := l.Until - int64(math.Floor(float64((float64(left)+0.5)*float64(l.Over))/float64(l.Amount)))
	for l.At(at) > left { // the two roundings can differ by one
		at++
	}
	return max(at, t)
}

// Part returns thousandths/1000 of an amount, rounded down.
func Part(amount, thousandths int64) int64 {
	return amount/1000*thousandths + amount%1000*thousandths/1000
}
