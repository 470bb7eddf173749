package sim

import (
	"math"

	"github.com/sluicehq/sluice/store"
)

// loop runs events in virtual time, in the order of their times. Events at the same time run in the order in which they
// were scheduled. Jobs arrive before all other events of the same time.
type loop struct {
	now     store.Time
	queue   []item // a heap; see up and down
	wheel   wheel  // most events of calls
	present []item // events at the current time; those before began are done
	began   int
	seq     uint64
	steps   int
	jobs    jobs
	come    func(arrival) // called with each arriving job
	tick    func() bool   // called every tickEvery steps; may be nil; false ends the run
}

// item is one scheduled event. It is either a function with a call, which needs no extra memory, or an event that can
// be cancelled.
type item struct {
	at    store.Time
	seq   uint64
	do    func(*call)
	c     *call
	event *event // nil: run calls do with c
}

type event struct {
	at    store.Time
	do    func()
	index int // index in queue; negative: -1 minus the index in present; gone: not scheduled
}

// gone is the index of an event that has run or was cancelled.
const gone = math.MinInt

func newLoop() *loop { return &loop{now: Epoch} }

// at schedules do at t, or now if t has passed.
func (l *loop) at(t store.Time, do func()) *event {
	e := &event{at: max(t, l.now), do: do}
	l.push(item{at: e.at, event: e})
	return e
}

func (l *loop) after(d store.Time, do func()) *event { return l.at(l.now+d, do) }

// with schedules do with c. It cannot be cancelled.
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

// tickEvery is the number of steps between two ticks.
const tickEvery = 1 << 13

// run runs events until none is left, end is reached, or maxSteps is exceeded. It returns false if it stopped early,
// because of maxSteps or tick.
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

// first returns when the next item is due.
func (l *loop) first() store.Time {
	if l.began < len(l.present) {
		return l.now
	}
	if it := l.later(); it != nil {
		return it.at
	}
	return Never
}

// later returns the next item that is not in present, or nil if there is none.
func (l *loop) later() *item {
	it := l.wheel.first()
	if len(l.queue) > 0 && (it == nil || l.queue[0].before(it)) {
		return &l.queue[0]
	}
	return it
}

// pop removes the next item. Items in queue and wheel for the current time were scheduled earlier than those in
// present, so they come first.
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

// arity is the number of children of a heap node. Four make the heap flatter than two, and siblings are adjacent in
// memory.
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

// remove removes the item at i from the heap.
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

// up puts it at i or moves it up, to where it belongs.
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

// down puts it at i or moves it down, to where it belongs.
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
