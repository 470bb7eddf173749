package sim

import (
	"math"

	"github.com/sluicehq/sluice/store"
)

// loop is virtual time: events in the order of their moments, and among those of
// one moment in the order they were scheduled. Jobs come before everything else of
// their moment.
type loop struct {
	now     store.Time
	queue   []item // a heap: see up and down
	wheel   wheel  // most of what is to happen to calls
	present []item // what was scheduled for this very moment, from the one at began on
	began   int
	seq     uint64
	steps   int
	jobs    jobs
	come    func(arrival) // is told of each of jobs
	tick    func() bool   // called every few thousand steps; may be nil. False ends the run
}

// item is one thing to do: either something with a call, which costs no memory of its
// own, or an event that can be cancelled.
type item struct {
	at    store.Time
	seq   uint64
	do    func(*call)
	c     *call
	event *event // nil: do is called with c
}

type event struct {
	at    store.Time
	do    func()
	index int // in the heap; below zero: -1 minus the one in present; gone: it has left
}

// gone is the place of an event that has been carried out or cancelled.
const gone = math.MinInt

func newLoop() *loop { return &loop{now: Epoch} }

// at schedules do; a moment that has passed means now.
func (l *loop) at(t store.Time, do func()) *event {
	e := &event{at: max(t, l.now), do: do}
	l.push(item{at: e.at, event: e})
	return e
}

func (l *loop) after(d store.Time, do func()) *event { return l.at(l.now+d, do) }

// with schedules do for c. It cannot be cancelled.
func (l *loop) with(c *call, t store.Time, do func(*call)) {
	l.push(item{at: max(t, l.now), do: do, c: c})
}

func (l *loop) cancel(e *event) {
	switch {
	case e.index >= 0:
		l.remove(e.index)
	case e.index != gone:
		l.present[-e.index-1].event = nil // its do is nil as well
		e.index = gone
	}
}

// tickEvery is how many steps pass between two ticks.
const tickEvery = 1 << 13

// run carries out events until none is left, the moment end has come, or
// maxSteps have been carried out; it reports whether it got to the end.
func (l *loop) run(end store.Time, maxSteps int) bool {
	for {
		first := l.first()
		job := l.jobs.next()
		if min(first, job) > end || min(first, job) == Never {
			return true
		}
		if l.steps >= maxSteps {
			return false
		}
		l.steps++
		if l.steps%tickEvery == 0 && l.tick != nil && !l.tick() {
			return false
		}
		if job <= first {
			l.now = job
			l.come(l.jobs.pop())
			continue
		}
		it := l.pop()
		l.now = it.at
		switch {
		case it.event != nil:
			it.event.index = gone
			it.event.do()
		case it.do != nil:
			it.do(it.c)
		}
	}
}

// first is when the next item is due.
func (l *loop) first() store.Time {
	if l.began < len(l.present) {
		return l.now
	}
	if it := l.later(); it != nil {
		return it.at
	}
	return Never
}

// later is the next item that was not scheduled for this very moment; nil: there is none.
func (l *loop) later() *item {
	it := l.wheel.first()
	if len(l.queue) > 0 && (it == nil || l.queue[0].before(it)) {
		return &l.queue[0]
	}
	return it
}

// pop takes the next item. What else is due in this moment was scheduled before
// the moment came, and so before all that is present.
func (l *loop) pop() item {
	if it := l.later(); l.began == len(l.present) || it != nil && it.at == l.now {
		if len(l.queue) > 0 && it == &l.queue[0] {
			return l.remove(0)
		}
		return l.wheel.pop()
	}
	it := l.present[l.began]
	l.present[l.began] = item{}
	if l.began++; l.began == len(l.present) {
		l.present, l.began = l.present[:0], 0
	}
	return it
}

func (it *item) before(other *item) bool {
	if it.at != other.at {
		return it.at < other.at
	}
	return it.seq < other.seq
}

// arity is how many children a node of the heap has: four are fewer levels, and they lie
// next to each other.
const arity = 4

func (l *loop) push(it item) {
	l.seq++
	it.seq = l.seq
	if it.at == l.now {
		if it.event != nil {
			it.event.index = -len(l.present) - 1
		}
		l.present = append(l.present, it)
		return
	}
	if it.event == nil && l.wheel.takes(it.at, l.now) {
		l.wheel.add(it)
		return
	}
	l.queue = append(l.queue, it)
	l.up(len(l.queue)-1, it)
}

// remove takes the item at i out of the heap.
func (l *loop) remove(i int) item {
	out := l.queue[i]
	if out.event != nil {
		out.event.index = gone
	}
	last := len(l.queue) - 1
	it := l.queue[last]
	l.queue[last] = item{}
	l.queue = l.queue[:last]
	if i < last {
		if i > 0 && it.before(&l.queue[(i-1)/arity]) {
			l.up(i, it)
		} else {
			l.down(i, it)
		}
	}
	return out
}

func (l *loop) put(i int, it item) {
	l.queue[i] = it
	if it.event != nil {
		it.event.index = i
	}
}

// up puts it where it belongs, at i or above.
func (l *loop) up(i int, it item) {
	for i > 0 {
		parent := (i - 1) / arity
		if !it.before(&l.queue[parent]) {
			break
		}
		l.put(i, l.queue[parent])
		i = parent
	}
	l.put(i, it)
}

// down puts it where it belongs, at i or below.
func (l *loop) down(i int, it item) {
	n := len(l.queue)
	for {
		first := arity*i + 1
		if first >= n {
			break
		}
		least := first
		for k := first + 1; k < min(first+arity, n); k++ {
			if l.queue[k].before(&l.queue[least]) {
				least = k
			}
		}
		if !l.queue[least].before(&it) {
			break
		}
		l.put(i, l.queue[least])
		i = least
	}
	l.put(i, it)
}
