package estimate

import (
	"math/bits"
	"slices"
)

const (
	// recent is how many responses the next estimate is based on.
	recent = 32
	// forget is how fast old calls lose weight in the ratio: by 1/2^forget with each call.
	forget = 5
	// scale is the fixed-point factor of the sums of tokens and bytes, so that forgetting does not round.
	scale = 1 << 10
	// The initial ratio: 3 tokens in 10 bytes, with the weight of a text of this length.
	firstTokens, firstBytes = 300 * scale, 1000 * scale
	// mostRatio bounds the ratio. Text has no more tokens than bytes. Calls that refer to content stored at the
	// provider seem to have more, and would spoil all other estimates.
	mostRatio = 2
	// mostMiss bounds a single error, so that one absurd call does not hide all others.
	mostMiss = 100
)

// entry is what is known about a set of calls.
type entry struct {
	tokens, bytes int64 // weighted sums; their quotient is the ratio
	outputs       [recent]int64
	n             int64 // calls so far
	high          int64 // most responses stay below this
	miss          Miss
	inputs        int64 // calls with text, which Miss.Input covers

	key        key
	next, prev *entry
}

// begin initializes an entry from the more general entry of.
func (e *entry) begin(of *entry) {
	switch {
	case e.bytes != 0:
	case of == nil:
		e.tokens, e.bytes = firstTokens, firstBytes
	default:
		e.tokens, e.bytes = muldiv(of.tokens, firstBytes, of.bytes), firstBytes
	}
}

func (e *entry) input(textBytes int64) int64 {
	textBytes = clamp(textBytes)
	if textBytes == 0 {
		return 0
	}
	return min(muldiv(textBytes, e.tokens, e.bytes)+1, mostRatio*textBytes)
}

func (e *entry) learn(textBytes, input, output int64) {
	if textBytes > 0 {
		input = min(input, mostRatio*textBytes)
		e.tokens += input*scale - e.tokens>>forget
		e.bytes += textBytes*scale - e.bytes>>forget
	}
	e.outputs[e.n%recent] = output
	e.n++
	e.high = e.quantile()
}

// quantile estimates what nine of ten responses stay below. From few responses it cannot be estimated: then it is
// the longest plus a margin that shrinks with every response.
func (e *entry) quantile() int64 {
	n := min(e.n, recent)
	var sorted [recent]int64
	copy(sorted[:], e.outputs[:n])
	slices.Sort(sorted[:n])
	rank := (9*(n+1) + 9) / 10 // counted from 1
	if rank > n {
		most := sorted[n-1]
		return most + most/(n+1)
	}
	return sorted[rank-1]
}

// missed records the error of the estimates.
func (e *entry) missed(in, input, out, output int64, text bool) {
	e.miss.Calls = e.n
	e.miss.Output += (relative(out, output) - e.miss.Output) / float64(min(e.n, recent))
	if text {
		e.inputs++
		e.miss.Input += (relative(in, input) - e.miss.Input) / float64(min(e.inputs, recent))
	}
}

func relative(estimate, actual int64) float64 {
	off := float64(estimate - actual)
	if off < 0 {
		off = -off
	}
	return min(off/float64(max(actual, 1)), mostMiss)
}

// muldiv returns a*b/c for non-negative numbers, rounded down, at most maxAmount.
func muldiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return maxAmount
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, maxAmount))
}
