package order

import "github.com/sluicehq/sluice/internal/flat"

// aheadScale is the denominator of Ahead.
const aheadScale = 1024

// aheadLooks bounds how many flows Ahead examines. Their average stands for the rest.
const aheadLooks = 32

// maxAhead keeps products of costs, weights and agents within 63 bits.
const maxAhead = 1 << 34

// Ahead estimates the fraction of all other waiting cost that will be granted before waiter w, in 1/1024. It errs
// towards too little. w is the last waiter of its agent or, when it renews, the first. Ahead does not count other
// lanes, because most of them need other meters. With above, it does not count lower classes either: they may be
// held where this class is not.
func (q *Queue) Ahead(w int32, above bool) int64 {
	wt := q.waiters.At(w)
	fl := q.flows.At(wt.flow)
	others := q.queued - wt.cost
	if others <= 0 {
		return 0
	}
	if q.Mode == FIFO {
		if fl.first == w && wt.next != 0 {
			return 0 // it renews
		}
		return aheadScale
	}
	class := fl.key.Class
	l := q.lanes.At(fl.lane)
	pt := &l.parts[class]
	own := q.members.At(fl.member).queued - wt.cost
	if fl.first == w {
		own = 0
	}
	ahead := min(own+q.sooner(w, own), pt.queued-wt.cost)
	ahead += q.higher(l, class, wt.lead, ahead, above)
	return min(ahead, others) * aheadScale / others
}

// higher returns the queued cost of other classes in a lane that goes before a waiter, by the tags on the meter
// lead. ahead is the cost that the waiter's own class has before it.
func (q *Queue) higher(l *lane, class, lead uint8, ahead int64, above bool) (sum int64) {
	finish := l.parts[class].tags[lead].start + q.partCost(l, class, int32(lead), min(ahead, maxAhead))
	for i := range l.parts {
		o := &l.parts[i]
		switch {
		case i == int(class) || o.waiting == 0 || above && i > int(class):
		case q.Mode == Fair:
			room := max(finish-o.tags[lead].start, 0)
			sum += min(room*q.Weights[i]/weightScale, o.queued)
		case i < int(class):
			sum += o.queued
		}
	}
	return sum
}

// sooner returns the queued cost of other agents in w's class that goes before w. own is the cost that its own agent
// has before it.
func (q *Queue) sooner(w int32, own int64) (sum int64) {
	wt := q.waiters.At(w)
	me := q.flows.At(wt.flow)
	l := q.lanes.At(me.lane)
	tag := flat.Key{A: q.members.At(me.member).start + own, B: wt.seq}
	looks := int64(0)
	for n := q.tree.Min(l.roots[me.key.Class]); n != 0 && q.tree.KeyOf(n).Less(tag); n = q.tree.Next(n) {
		if looks++; looks > aheadLooks {
			return sum / aheadLooks * int64(l.parts[me.key.Class].active)
		}
		fl := q.flows.At(q.tree.Value(n))
		if fl.member == me.member {
			continue
		}
		m := q.members.At(fl.member)
		sum += min(max(tag.A-m.start, q.waiters.At(fl.first).cost), m.queued)
	}
	return sum
}

// Share returns ahead/1024 of amount. Ahead returns the fraction.
func Share(amount, ahead int64) int64 {
	return amount/aheadScale*ahead + amount%aheadScale*ahead/aheadScale
}
