package proof_test

import "github.com/sluicehq/sluice/store"

// event is something that happens to one plan.
type event struct {
	at   store.Time
	seq  int32 // events of the same moment happen in the order in which they were made
	plan int32
	kind kind
}

// queue is a heap of events.
type queue struct {
	heap []event
	seq  int32
}

func (q *queue) len() int      { return len(q.heap) }
func (q *queue) first() *event { return &q.heap[0] }

func (q *queue) less(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0 && q.less(i, (i-1)/2); i = (i - 1) / 2 {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
	}
}

func (q *queue) pop() event {
	top := q.heap[0]
	n := len(q.heap) - 1
	q.heap[0] = q.heap[n]
	q.heap = q.heap[:n]
	for i := 0; ; {
		k := 2*i + 1
		if k >= n {
			return top
		}
		if k+1 < n && q.less(k+1, k) {
			k++
		}
		if !q.less(k, i) {
			return top
		}
		q.heap[i], q.heap[k] = q.heap[k], q.heap[i]
		i = k
	}
}
