package sim

import (
	"container/heap"

	"github.com/sluicehq/sluice/store"
)

// loop is virtual time: events in the order of their moments, and among those of
// one moment in the order they were scheduled.
type loop struct {
	now   store.Time
	queue events
	seq   uint64
	steps int
	tick  func() // called every few thousand steps; may be nil
}

type event struct {
	at    store.Time
	seq   uint64
	do    func() // nil once cancelled
	index int    // in the heap; -1 once it has left
}

func newLoop() *loop { return &loop{now: Epoch} }

// at schedules do; a moment that has passed means now.
func (l *loop) at(t store.Time, do func()) *event {
	l.seq++
	e := &event{at: max(t, l.now), seq: l.seq, do: do}
	heap.Push(&l.queue, e)
	return e
}

func (l *loop) after(d store.Time, do func()) *event { return l.at(l.now+d, do) }

func (l *loop) cancel(e *event) {
	if e.index >= 0 {
		heap.Remove(&l.queue, e.index)
	}
}

// run carries out events until none is left, the moment end has come, or
// maxSteps have been carried out; it reports whether it got to the end.
func (l *loop) run(end store.Time, maxSteps int) bool {
	for len(l.queue) > 0 && l.queue[0].at <= end {
		if l.steps >= maxSteps {
			return false
		}
		l.steps++
		if l.tick != nil && l.steps%(1<<13) == 0 {
			l.tick()
		}
		e := heap.Pop(&l.queue).(*event)
		l.now = e.at
		e.do()
	}
	return true
}

type events []*event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *events) Push(x any) {
	e := x.(*event)
	e.index = len(*q)
	*q = append(*q, e)
}
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.index = -1
	return e
}
