package sim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// wheel holds the items of the next few seconds in slots of about a millisecond. It only sorts the items of one slot at
// a time. That is faster than one heap for all, because a large fleet has a hundred thousand items.
type wheel struct {
	slots  [spokes][]item
	filled [spokes / 64]uint64 // a bit for each slot with items
	turn   store.Time          // slot number of the items in due; later items are in slots
	due    []item              // sorted; those before next are done
	next   int
}

const (
	spokes   = 4096 // number of slots
	slotBits = 10   // a slot is 1024 microseconds
)

func slotOf(t store.Time) store.Time { return t >> slotBits }

// takes reports whether the wheel can hold an item that is due at t. It cannot if t is too far ahead, or not after the
// slot in due.
func (w *wheel) takes(t, now store.Time) bool {
	if w.next == len(w.due) && w.turn < slotOf(now) && w.ahead() > slotOf(now)-w.turn {
		w.turn = slotOf(now)
	}
	return slotOf(t) > w.turn && slotOf(t) < w.turn+spokes
}

func (w *wheel) add(it item) {
	i := slotOf(it.at) % spokes
	w.slots[i] = append(w.slots[i], it)
	w.filled[i/64] |= 1 << (i % 64)
}

// ahead returns the number of slots from the current one to the next one with items, or Never if all are empty.
func (w *wheel) ahead() store.Time {
	from := uint(w.turn+1) % spokes
	word, skipped := from/64, -store.Time(from%64)
	set := w.filled[word] &^ (1<<(from%64) - 1)
	for range spokes/64 + 1 {
		if set != 0 {
			return skipped + store.Time(bits.TrailingZeros64(set)) + 1
		}
		skipped += 64
		word = (word + 1) % (spokes / 64)
		set = w.filled[word]
	}
	return Never
}

// first returns the next item, or nil if there is none.
func (w *wheel) first() *item {
	if w.next < len(w.due) {
		return &w.due[w.next]
	}
	step := w.ahead()
	if step == Never {
		return nil
	}
	w.turn += step
	i := w.turn % spokes
	w.slots[i], w.due, w.next = w.due[:0], w.slots[i], 0
	w.filled[i/64] &^= 1 << (i % 64)
	slices.SortFunc(w.due, func(a, b item) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(a.seq, b.seq)
	})
	return &w.due[0]
}

// pop removes the item that first returned.
func (w *wheel) pop() item {
	it := w.due[w.next]
	w.due[w.next] = item{} // lets the garbage collector free its call
	w.next++
	return it
}
