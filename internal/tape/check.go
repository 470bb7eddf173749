package tape

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Check plays n traces, or as many as the environment asks for (see Seeds). It shrinks the first one that fails and
// reports the result.
func Check(t testing.TB, n int, trace func(*Tape)) {
	t.Helper()
	var p Tape
	for seed := range Seeds(t, n) {
		p = Tape{rng: rand.NewPCG(seed, 0), drawn: p.drawn[:0]}
		text, failed := p.play(trace)
		if !failed {
			continue
		}
		small := shrink(p.drawn, trace)
		var log strings.Builder
		again := Tape{drawn: small, log: &log}
		last, _ := again.play(trace)
		t.Fatalf("seed %d: %s\nshrunk to %d numbers: %s\n%s", seed, text, len(small), last, log.String())
	}
}

// play plays a trace and returns why it failed.
func (t *Tape) play(trace func(*Tape)) (text string, failed bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			text, failed = r.text, true
		default:
			panic(r)
		}
	}()
	trace(t)
	return "", false
}

// maxTries bounds how often a trace is played to shrink it.
const maxTries = 20_000

// shrink removes numbers, and makes others smaller, while the trace still fails.
func shrink(drawn []uint64, trace func(*Tape)) []uint64 {
	best := append([]uint64(nil), drawn...)
	tries := 0
	fails := func(try []uint64) bool {
		tries++
		p := Tape{drawn: try}
		_, failed := p.play(trace)
		if failed {
			best = append([]uint64(nil), try[:min(p.next, len(try))]...)
		}
		return failed && tries < maxTries
	}
	for before := -1; before != tries && tries < maxTries; {
		before = tries
		smaller := false
		for size := 32; size > 0; size /= 2 {
			for from := 0; from+size <= len(best) && tries < maxTries; {
				try := append(append([]uint64(nil), best[:from]...), best[from+size:]...)
				if fails(try) {
					smaller = true
				} else {
					from++
				}
			}
		}
		for i := 0; i < len(best) && tries < maxTries; i++ {
			for _, v := range []uint64{0, best[i] / 2, best[i] - 1} {
				if i >= len(best) || v >= best[i] {
					continue
				}
				try := append([]uint64(nil), best...)
				try[i] = v
				smaller = fails(try) || smaller
			}
		}
		if !smaller {
			break
		}
	}
	return best
}
