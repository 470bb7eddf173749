package main

import (
	"maps"
	"math/bits"
	"slices"
	"time"
)

// spread counts times by size, to within 1/64. That is precise enough for quantiles, and small enough to send to
// another process.
type spread map[int]int

const spreadBits = 6

// slotOf combines the leading bits of d with the number of dropped bits.
func slotOf(d time.Duration) int {
	n := uint64(max(d, 0))
	drop := max(bits.Len64(n)-spreadBits-1, 0)
	return drop<<spreadBits + int(n>>drop)
}

// fromSlot returns the middle of the times in a slot.
func fromSlot(slot int) time.Duration {
	if slot < 2<<spreadBits {
		return time.Duration(slot)
	}
	drop := slot>>spreadBits - 1
	low := int64(slot-drop<<spreadBits) << drop
	return time.Duration(low + 1<<drop/2)
}

func (s spread) add(d time.Duration) { s[slotOf(d)]++ }

func (s *spread) merge(other spread) {
	if *s == nil {
		*s = spread{}
	}
	for slot, n := range other {
		(*s)[slot] += n
	}
}

func (s spread) quantile(q float64) time.Duration {
	total := 0
	for _, n := range s {
		total += n
	}
	rank := int(q * float64(total))
	for _, slot := range slices.Sorted(maps.Keys(s)) {
		if rank -= s[slot]; rank < 0 {
			return fromSlot(slot)
		}
	}
	return 0
}
