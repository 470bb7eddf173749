package sim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// wheel holds the items of the next few seconds by the millisecond they are due in. Only
// the items of one millisecond are sorted, which is quicker than one heap for all: a large
// fleet has a hundred thousand of them.
type wheel struct {
	slots  [spokes][]item
	filled [spokes / 64]uint64 // a bit for each slot that has items
	turn   store.Time          // slot of the items in due; all later ones are in slots
	due    []item              // sorted, from the one at next on
	next   int
}

const (
	spokes   = 4096 // slots
	slotBits = 10   // a slot is 1024 microseconds
)

func slotOf(t store.Time) store.Time { return t >> slotBits }

// takes reports whether the wheel can hold an item that is due at t, at a moment now. It
// cannot if t is too far ahead, or within what is due.
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

// ahead is how many slots lie between what is due and the next that has items, that one
// included; Never: none has.
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

// first is the next item; nil: there is none.
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

// pop takes the item that first returned.
func (w *wheel) pop() item {
	it := w.due[w.next]
	w.due[w.next] = item{} // lets go of its call
	w.next++
	return it
}
