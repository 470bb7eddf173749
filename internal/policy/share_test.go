package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSharesAsInTheDocumentation(t *testing.T) {
	s := Shares{Size: 1000, Weights: [8]int64{40, 35, 25}, Alive: 0b111}
	for class, want := range []int64{400, 350, 250} {
		if got := s.Guaranteed(class); got != want {
			t.Errorf("class %d has %d, want %d", class, got, want)
		}
	}
	s.Alive = 0b101
	for class, want := range []int64{615, 0, 384} {
		if got := s.Guaranteed(class); got != want {
			t.Errorf("class %d has %d, want %d", class, got, want)
		}
	}
	if got := s.Floor(2, 200); got != 615 {
		t.Errorf("within its share it leaves %d", got)
	}
	s.Used = [8]int64{600, 0, 384}
	if got := s.Floor(2, 200); got != 200 {
		t.Errorf("who borrows leaves %d, want what the light asks for", got)
	}
	s.Used[0] = 700
	if got := s.Floor(2, 200); got != 0 {
		t.Errorf("when the other has had its share it leaves %d", got)
	}
	if got := s.Allocated(0, 3); got != 205 {
		t.Errorf("one of three has %d", got)
	}
	if got := s.Allocated(0, 0); got != 615 {
		t.Errorf("one of none has %d", got)
	}
}

func drawShares(t *rapid.T) *Shares {
	n := rapid.IntRange(1, 8).Draw(t, "classes")
	s := &Shares{Size: rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 1<<40)).Draw(t, "size")}
	for i := range n {
		s.Weights[i] = rapid.Int64Range(1, 1000).Draw(t, "weight")
		s.Used[i] = rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(0, s.Size)).Draw(t, "used")
	}
	s.Alive = uint16(rapid.IntRange(1, 1<<n-1).Draw(t, "alive"))
	return s
}

// Guaranteed shares add up to at most the size, and to all of it except for rounding.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShares(t)
		var sum, alive int64
		for c := range s.Weights {
			g := s.Guaranteed(c)
			switch lives := s.Alive&(1<<c) != 0; {
			case g < 0 || g > 0 && !lives:
				t.Fatalf("%+v: class %d has %d", s, c, g)
			case lives:
				alive++
			}
			sum += g
		}
		if sum > s.Size || sum <= s.Size-alive {
			t.Fatalf("%+v: %d in all", s, sum)
		}
	})
}

// An unused share cannot be taken, and no floor exceeds the size. A class that has not had its share gets it,
// whatever the others did within their floors.
func TestSharesAreThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShares(t)
		s.Used = [8]int64{}
		used := int64(0)
		for range 50 {
			c := rapid.IntRange(0, len(s.Weights)-1).Draw(t, "class")
			if s.Alive&(1<<c) == 0 {
				continue
			}
			floor := s.Floor(c, 0)
			if floor < 0 || floor > s.Size {
				t.Fatalf("%+v: class %d leaves %d", s, c, floor)
			}
			if s.Used[c] < s.Guaranteed(c) && s.Size-used-1 < floor {
				t.Fatalf("%+v: class %d has had %d of %d and finds nothing", s, c, s.Used[c], s.Guaranteed(c))
			}
			if free := s.Size - used - floor; free > 0 {
				amount := rapid.Int64Range(0, free).Draw(t, "amount")
				s.Used[c] += amount
				used += amount
			}
		}
	})
}
