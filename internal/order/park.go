package order

import "github.com/sluicehq/sluice/internal/flat"

// spot is where flows are parked that lack the same limit of their own.
type spot struct {
	on   int32 // the caller's number for it
	root int32 // tree of flows by the age of their heads
}

// Park takes the flow of a waiter out of its lane until the time at, or until
// Unpark is called for on. Its place in the order stays.
func (q *Queue) Park(w, on int32, at int64) {
	f := q.waiters.At(w).flow
	fl := q.flows.At(f)
	q.leave(f)
	fl.node = q.tree.Insert(&q.parked, flat.Key{A: at, B: int64(f)}, f)
	fl.spot = q.spotOf(on)
	fl.spotNode = q.tree.Insert(&q.spots.At(fl.spot).root, flat.Key{A: q.waiters.At(fl.first).seq}, f)
}

// Unpark brings back the flow that has waited longest for on. It reports whether
// there was one.
func (q *Queue) Unpark(on int32) bool {
	s := q.findSpot(on)
	if s == 0 {
		return false
	}
	f := q.tree.Value(q.tree.Min(q.spots.At(s).root))
	q.leave(f)
	q.enter(f)
	return true
}

// Wake brings back every flow whose time has come, each with the one that is behind it
// at the same spot: it may have waited only for this one.
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

// ParkedBefore reports whether one that came before w is parked on on.
func (q *Queue) ParkedBefore(w, on int32) bool {
	s := q.findSpot(on)
	return s != 0 && q.tree.KeyOf(q.tree.Min(q.spots.At(s).root)).A < q.waiters.At(w).seq
}

// NextWake returns when the first parked flow is due, and false if there is none.
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
		q.spotIx.Remove(uint32(flat.Mix(uint64(s.on))), fl.spot)
		q.spots.Free(fl.spot)
	}
	fl.spot, fl.spotNode = 0, 0
}

func (q *Queue) findSpot(on int32) int32 {
	h := uint32(flat.Mix(uint64(on)))
	for i, p := q.spotIx.Seek(h, 0); i != 0; i, p = q.spotIx.Seek(h, p) {
		if q.spots.At(i).on == on {
			return i
		}
	}
	return 0
}

func (q *Queue) spotOf(on int32) int32 {
	i := q.findSpot(on)
	if i == 0 {
		i = q.spots.New()
		q.spots.At(i).on = on
		q.spotIx.Add(uint32(flat.Mix(uint64(on))), i)
	}
	return i
}
