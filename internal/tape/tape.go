// Package tape plays random traces in tests. Check draws, records, replays and shrinks them. Seeds counts the traces
// of a test and plays as many as a campaign asks for.
//
// A trace is a list of numbers, and a test draws from it whatever it does next. The same seed always makes the same
// trace. A trace that fails is made smaller before it is shown. Each number costs nanoseconds, so one core plays
// tens of thousands of traces a second.
package tape

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
)

// Tape is the source of all randomness in one trace.
type Tape struct {
	rng   *rand.PCG // nil: replay
	drawn []uint64  // each number, relative to the lowest possible one
	next  int
	log   *strings.Builder // nil: no log
}

// failure is the panic value of Fatalf.
type failure struct{ text string }

// draw returns a number from 0 to most. An eighth of them are 0, an eighth are most, and a quarter are small,
// because mistakes are at the edges.
func (t *Tape) draw(most uint64) uint64 {
	if t.rng == nil {
		t.next++
		if t.next > len(t.drawn) {
			return 0
		}
		return min(t.drawn[t.next-1], most)
	}
	r := t.rng.Uint64()
	var v uint64
	switch edge := r & 7; {
	case most == 0 || edge == 0:
	case edge == 1:
		v = most
	case edge <= 3:
		v = t.uniform(most >> (r >> 3 % uint64(bits.Len64(most))))
	default:
		v = t.uniform(most)
	}
	t.drawn = append(t.drawn, v)
	return v
}

// uniform returns a number from 0 to most.
func (t *Tape) uniform(most uint64) uint64 {
	if most == ^uint64(0) {
		return t.rng.Uint64()
	}
	hi, _ := bits.Mul64(t.rng.Uint64(), most+1)
	return hi
}

// Int returns a number from lo to hi, often one of the two or close to lo. The name is for the log of a failing
// trace.
func (t *Tape) Int(name string, lo, hi int64) int64 {
	if hi < lo {
		panic(fmt.Sprintf("tape: %s from %d to %d", name, lo, hi))
	}
	v := lo + int64(t.draw(uint64(hi-lo)))
	if t.log != nil {
		t.Logf("  %s: %d", name, v)
	}
	return v
}

// Bool returns true half of the time.
func (t *Tape) Bool(name string) bool { return Of(t, name, false, true) }

// Below returns a number from 0 to n-1, all equally likely.
func (t *Tape) Below(n int) int {
	if t.rng == nil {
		return int(t.draw(uint64(n - 1)))
	}
	v := t.uniform(uint64(n - 1))
	t.drawn = append(t.drawn, v)
	return int(v)
}

// Of returns one element of list, all equally likely. The first should be the plainest, because traces shrink
// towards it.
func Of[T any](t *Tape, name string, list ...T) T {
	v := list[t.Below(len(list))]
	if t.log != nil {
		t.Logf("  %s: %+v", name, v)
	}
	return v
}

// Logf logs something about a failing trace. It does nothing while traces are tried.
func (t *Tape) Logf(format string, args ...any) {
	if t.log != nil {
		fmt.Fprintf(t.log, format+"\n", args...)
	}
}

// Fatalf ends the trace as failed.
func (t *Tape) Fatalf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// Step is an action that a trace may take.
type Step struct {
	Name   string
	Weight int
	Do     func()
}

// Steps plays lo to hi steps, each chosen by weight, and calls after after each.
func (t *Tape) Steps(lo, hi int64, after func(), list []Step) {
	sum := 0
	for i := range list {
		sum += list[i].Weight
	}
	for range t.Int("steps", lo, hi) {
		k := t.Below(sum)
		for i := range list {
			if k -= list[i].Weight; k < 0 {
				if t.log != nil {
					t.Logf("%s", list[i].Name)
				}
				list[i].Do()
				break
			}
		}
		after()
	}
}
