//go:build linux || darwin

package fleet_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// The sequential model: a number of places of which some are taken.

// step is what a client wants: to take some places, or to give them back.
type step struct {
	give bool
	n    int
}

// said is how it came out.
type said uint8

const (
	yes     said = iota // it was done
	no                  // refused: there are too few
	behind              // refused: others are ahead
	unknown             // nobody told: it may have been done, at any time since, or never
)

func (s said) String() string { return [...]string{"yes", "no", "behind", "unknown"}[s] }

// never is when an operation returned of which nobody told.
const never = math.MaxInt64

// places is the model of so many places. Whoever asks for them is refused if, and only if, there are too few. There is
// one exception: requests that are decided in the same step are in line for that moment, so one that would fit does
// not overtake one that asked for more, and is told that others are ahead.
func places(size int) porcupine.Model {
	nothing := func(taken int) []any { return []any{taken} }
	model := porcupine.NondeterministicModel{
		Init: func() []any { return nothing(0) },
		Step: func(state, input, output any) []any {
			taken, s, said := state.(int), input.(step), output.(said)
			after := taken + s.n
			if s.give {
				after = taken - s.n
			}
			can := after >= 0 && after <= size
			switch {
			case said == yes && can:
				return []any{after}
			case said == no && !can && !s.give:
				return nothing(taken)
			case said == behind && !s.give:
				return nothing(taken)
			case said == unknown && can:
				return []any{taken, after}
			case said == unknown:
				return nothing(taken)
			}
			return nil
		},
		Hash: func(state any) uint64 { return uint64(state.(int)) }, //nolint:gosec // never negative
		DescribeOperation: func(input, output any) string {
			s := input.(step)
			return fmt.Sprintf("%s %d: %v", map[bool]string{false: "take", true: "give"}[s.give], s.n, output)
		},
	}
	return model.ToModel()
}

// The model finds what it looks for.
func TestModel(t *testing.T) {
	op := func(from, to int64, s step, out said) porcupine.Operation {
		return porcupine.Operation{Input: s, Output: out, Call: from, Return: to}
	}
	take, give := step{n: 1}, step{give: true, n: 1}
	for _, c := range []struct {
		name    string
		history []porcupine.Operation
		want    bool
	}{
		{"two places, three takers", []porcupine.Operation{op(0, 1, take, yes), op(2, 3, take, yes), op(4, 5, take, no)}, true},
		{"one too many", []porcupine.Operation{op(0, 1, take, yes), op(2, 3, take, yes), op(4, 5, take, yes)}, false},
		{"refused for nothing", []porcupine.Operation{op(0, 1, take, yes), op(2, 3, take, no)}, false},
		{"behind others", []porcupine.Operation{op(0, 1, take, yes), op(2, 3, take, behind), op(4, 5, take, yes)}, true},
		{"refused at the same time", []porcupine.Operation{op(0, 9, take, yes), op(1, 9, take, no), op(2, 9, take, yes)}, true},
		{"taken once given", []porcupine.Operation{op(0, 1, step{n: 2}, yes), op(2, 3, give, yes), op(4, 5, take, yes)}, true},
		{"taken before it was given", []porcupine.Operation{op(0, 1, step{n: 2}, yes), op(2, 3, take, yes), op(4, 5, give, yes)}, false},
		{"given twice", []porcupine.Operation{op(0, 1, take, yes), op(2, 3, give, yes), op(4, 5, give, yes)}, false},
		{"perhaps taken: refused", []porcupine.Operation{op(0, 1, take, yes), op(2, never, take, unknown), op(4, 5, take, no)}, true},
		{"perhaps taken: granted", []porcupine.Operation{op(0, 1, take, yes), op(2, never, take, unknown), op(4, 5, take, yes)}, true},
		{"perhaps taken, but not so often", []porcupine.Operation{op(0, never, take, unknown), op(2, 3, take, no)}, false},
		{"perhaps given", []porcupine.Operation{op(0, 1, step{n: 2}, yes), op(2, never, give, unknown), op(4, 5, take, no), op(6, 7, take, yes)}, true},
		{"not given before it was asked", []porcupine.Operation{op(0, 1, step{n: 2}, yes), op(2, 3, take, yes), op(4, never, give, unknown)}, false},
	} {
		if got := porcupine.CheckOperations(places(2), c.history); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
