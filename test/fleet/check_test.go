//go:build linux || darwin

package fleet_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"
)

// byTime sorts uses.
func byTime(uses []use) {
	slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.At, b.At) })
}

// checkBucket pours every use into a bucket that drains at size a second and holds capacity, and returns the highest
// level. It is an error if that is above the capacity by more than what drains in the microsecond to which the
// store rounds. The uses are sorted.
func checkBucket(uses []use, size, capacity float64) (worst float64, err error) {
	level := 0.0
	for i, u := range uses {
		if i > 0 {
			level = max(0, level-size*u.At.sub(uses[i-1].At).Seconds())
		}
		level++
		if level > worst {
			worst = level
		}
		if level > capacity+size*time.Microsecond.Seconds() && err == nil {
			err = fmt.Errorf("use %d, ticket %s: %.4f in a bucket of %.0f", i, u.Ticket, level, capacity)
		}
	}
	return worst, err
}

// mostWithin returns how many uses lie in a stretch of time of some length, at most. They are sorted.
func mostWithin(uses []use, length time.Duration) (most int) {
	first := 0
	for last := range uses {
		for uses[last].At.sub(uses[first].At) >= length {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// checkTickets returns an error if a ticket was granted twice.
func checkTickets(uses []use) error {
	had := make(map[string]use, len(uses))
	for _, u := range uses {
		if first, twice := had[u.Ticket]; twice {
			return fmt.Errorf("ticket %s was granted to process %d and to process %d", u.Ticket, first.worker, u.worker)
		}
		had[u.Ticket] = u
	}
	return nil
}

// The checks find what they look for.
func TestChecks(t *testing.T) {
	at := func(ms ...int) (uses []use) {
		for i, m := range ms {
			uses = append(uses, use{At: stamp(m) * stamp(time.Millisecond), Ticket: fmt.Sprint(i)})
		}
		return uses
	}
	for _, c := range []struct {
		uses  []use
		legal bool
		most  int // in 100 ms
	}{
		{at(0, 0), true, 2},
		{at(0, 0, 0), false, 3},
		{at(0, 0, 100, 200, 200), false, 2},
		{at(0, 0, 100, 200, 300), true, 2},
		{at(0, 0, 99), false, 3},
		{at(0, 50, 50, 150), false, 3},
		{at(0, 1000, 1000, 1100), true, 2},
	} {
		if worst, err := checkBucket(c.uses, 10, 2); (err == nil) != c.legal || (worst > 2.001) == c.legal {
			t.Errorf("%v: level %.3f, %v", c.uses, worst, err)
		}
		if most := mostWithin(c.uses, 100*time.Millisecond); most != c.most {
			t.Errorf("%v: %d in 100 ms, not %d", c.uses, most, c.most)
		}
	}
	if err := checkTickets(at(1, 2, 3)); err != nil {
		t.Error(err)
	}
	if err := checkTickets(append(at(1, 2), at(3)...)); err == nil {
		t.Error("a ticket that was granted twice was not seen")
	}
}
