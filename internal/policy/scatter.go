package policy

import "math/bits"

const (
	scatterBits = 15
	scatterEnd  = 1 << scatterBits
)

// MaxScatter is the longest window that launches are spread over: three days. A longer window times 2^15 would not
// be exact.
const MaxScatter = 1 << (53 - scatterBits)

// Scatter spreads jobs that would start together over a window. It is a flat record. The zero Scatter has no
// launches yet.
//
// The first launch opens a window and starts at once. Launch k starts at window x (the binary digits of k, mirrored
// at the point): 0, 1/2, 1/4, 3/4, 1/8, ... So each falls into the widest gap, however many will come. A start in
// the past is moved one window later. So every launch starts within one window from its request, and no two with the
// same window start at the same time. A crowd that comes late in a window is spread as wide as one that opens it.
type Scatter struct {
	Start int64 // when the window opened
	Until int64 // when it is over: it has lasted a window, and all launches have begun
	K     int64 // number of the next launch; wraps at 2^15
}

// Next returns when a job that asks at t should start: at t or later, and before t + window. A window of 0 means
// now.
func (s *Scatter) Next(t, window int64) int64 {
	if window <= 0 {
		return t
	}
	window = min(window, MaxScatter)
	if t >= s.Until {
		*s = Scatter{Start: t, Until: t + window, K: 1}
		return t
	}
	at := s.Start + window*mirrored(s.K)/scatterEnd
	if late := t - at; late > 0 {
		at += (late + window - 1) / window * window
	}
	s.K = (s.K + 1) % scatterEnd
	s.Until = max(s.Until, s.Start+window, at)
	return at
}

// mirrored returns van der Corput(k) in parts of 2^15.
func mirrored(k int64) int64 { return int64(bits.Reverse16(uint16(k)) >> (16 - scatterBits)) }
