package order

import "github.com/sluicehq/sluice/internal/flat"

// spot holds the parked flows of one lane that lack the same limit of their own.
type spot struct {
	on   int32 // the caller's number for the limit
	lane int32
	root int32 // tree of flows by the age of their heads
}

// Park takes the flow of a waiter out of its lane until the time at, or until Unpark is called for on. The flow
// keeps its position in the order.
func (q *Queue) Park(w, on int32, at int64) {
	f := q.waiters.At(w).flow
	fl := q.flows.At(f)
	q.leave(f)
	fl.node = q.tree.Insert(&q.parked, flat.Key{A: at, B: int64(f)}, f)
	fl.spot = q.spotOf(on, fl.lane)
	fl.spotNode = q.tree.Insert(&q.spots.At(fl.spot).root, flat.Key{A: q.waiters.At(fl.first).seq}, f)
}

// Unpark returns to each lane the flow that has waited longest for on. It takes one per lane, because something else
// in a lane may still hold that flow back. It reports whether it found any.
func (q *Queue) Unpark(on int32) (found bool) {
	if q.parked == 0 {
		return false
	}
	h := onHash(on)
	for i, p := q.spotIx.Seek(h, 0); i != 0; i, p = q.spotIx.Seek(h, p) {
		s := q.spots.At(i)
		if s.on != on {
			continue
		}
		q.unparked = append(q.unparked, q.tree.Value(q.tree.Min(s.root)))
	}
	for _, f := range q.unparked {
		q.leave(f)
		q.enter(f)
	}
	found = len(q.unparked) > 0
	q.unparked = q.unparked[:0]
	return found
}

// Wake returns every flow whose time has come to its lane. With each it also returns the next flow of the same spot,
// which may have waited only for the first.
func (q *Queue) Wake(t int64) {
	for q.parked != 0 {
		n := q.tree.Min(q.parked)
		if q.tree.KeyOf(n).A > t {
			return
		}
		f := q.tree.Value(n)
		on := q.spots.At(q.flows.At(f).spot).on
		q.leave(f)
		q.enter(f)
		q.Unpark(on)
	}
}

// ParkedBefore reports whether a request that arrived before w is parked on on.
func (q *Queue) ParkedBefore(w, on int32) bool {
	h, seq := onHash(on), q.waiters.At(w).seq
	for i, p := q.spotIx.Seek(h, 0); i != 0; i, p = q.spotIx.Seek(h, p) {
		if s := q.spots.At(i); s.on == on && q.tree.KeyOf(q.tree.Min(s.root)).A < seq {
			return true
		}
	}
	return false
}

// NextWake returns when the first parked flow is due. It returns false if none is parked.
func (q *Queue) NextWake() (int64, bool) {
	if q.parked == 0 {
		return 0, false
	}
	return q.tree.KeyOf(q.tree.Min(q.parked)).A, true
}

func (q *Queue) leaveSpot(f int32) {
	fl := q.flows.At(f)
	s := q.spots.At(fl.spot)
	q.tree.Delete(&s.root, fl.spotNode)
	if s.root == 0 {
		q.spotIx.Remove(onHash(s.on), fl.spot)
		q.spots.Free(fl.spot)
	}
	fl.spot, fl.spotNode = 0, 0
}

// onHash is the hash of a caller's number for a meter.
func onHash(on int32) uint32 { return uint32(flat.Mix(uint64(uint32(on)))) }

func (q *Queue) spotOf(on, lane int32) int32 {
	h := onHash(on)
	for i, p := q.spotIx.Seek(h, 0); i != 0; i, p = q.spotIx.Seek(h, p) {
		if s := q.spots.At(i); s.on == on && s.lane == lane {
			return i
		}
	}
	i := q.spots.New()
	s := q.spots.At(i)
	s.on, s.lane = on, lane
	q.spotIx.Add(h, i)
	return i
}
