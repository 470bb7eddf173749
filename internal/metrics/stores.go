package metrics

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/store"
)

// storeBuckets are the buckets for single operations: from memory, over a file, to a server far away.
var storeBuckets = []float64{5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}

// operation is a kind of call to a store. The values up to OpForget equal store.OpKind.
type operation uint8

const (
	opBatch operation = operation(store.OpForget) + 1 + iota // different operations in one step
	opSnapshot
	opHistory
	opOpen
	operations
)

var operationNames = [operations]string{
	store.OpAcquire: "acquire", store.OpPoll: "poll", store.OpCancel: "cancel", store.OpRenew: "renew", store.OpAnswer: "answer", store.OpClose: "close",
	store.OpObserve: "observe", store.OpPause: "pause", store.OpResume: "resume", store.OpHeartbeat: "heartbeat", store.OpLeave: "leave",
	store.OpLaunch: "launch", store.OpTouch: "touch", store.OpForget: "forget",
	opBatch: "batch", opSnapshot: "snapshot", opHistory: "history", opOpen: "open",
}

// operated measures calls to a store. A series begins with its first use, because most daemons never use all.
type operated struct {
	took   *prometheus.HistogramVec
	faults *prometheus.CounterVec
	cells  [operations]atomic.Pointer[cell]
}

// cell caches the metrics of one operation, to save a lookup per call.
type cell struct {
	took   prometheus.Observer
	faults prometheus.Counter
}

func newOperated(m *maker) *operated {
	return &operated{
		took: m.histogram("store_operation_seconds", "How long the store took for an operation of this process.", storeBuckets, "operation"),
		faults: m.counter("store_faults_total", "Operations of this process that the store failed at: it could not be reached, did not answer in time, or is damaged.",
			"operation"),
	}
}

// done counts a finished operation.
func (o *operated) done(op operation, began time.Time, err error) {
	c := o.cells[op].Load()
	if c == nil {
		name := operationNames[op]
		c = &cell{o.took.WithLabelValues(name), o.faults.WithLabelValues(name)}
		o.cells[op].Store(c) // a concurrent caller stores the same
	}
	c.took.Observe(time.Since(began).Seconds())
	if err != nil && isFault(err) {
		c.faults.Inc()
	}
}

// isFault reports whether an error is a failure of the store: not a caller that left, and not a closed session.
func isFault(err error) bool {
	return !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrClosed)
}

// kindOf returns the kind of a batch, or opBatch if its operations differ.
func kindOf(ops []store.Op) operation {
	if len(ops) == 0 {
		return opBatch
	}
	kind := ops[len(ops)-1].Kind
	for i := range ops {
		switch ops[i].Kind {
		case kind, store.OpAnswer, store.OpClose: // reports come before the operation they go with
		default:
			return opBatch
		}
	}
	if kind > store.OpForget {
		return opBatch
	}
	return operation(kind)
}

// Store wraps st so that it measures how long each operation takes and how many fail. Closing the result closes st.
func (r *Registry) Store(st store.Store) store.Store { return &clockedStore{st, r.operated} }

type clockedStore struct {
	store.Store
	operated *operated
}

// Unwrap returns the store that is measured; see [store.As].
func (s *clockedStore) Unwrap() store.Store { return s.Store }

// Pool opens a pool whose operations are measured.
func (s *clockedStore) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	began := time.Now()
	p, err := s.Store.Pool(ctx, spec)
	s.operated.done(opOpen, began, err)
	if err != nil {
		return nil, err
	}
	return &clockedPool{p, s.operated}, nil
}

// clockedPool measures the operations of a pool.
type clockedPool struct {
	store.Pool
	operated *operated
}

// Apply calls and measures the pool's Apply.
func (p *clockedPool) Apply(ctx context.Context, ops []store.Op) error {
	began := time.Now()
	err := p.Pool.Apply(ctx, ops)
	p.operated.done(kindOf(ops), began, err)
	return err
}

// Snapshot calls and measures the pool's Snapshot.
func (p *clockedPool) Snapshot(ctx context.Context) (store.Snapshot, error) {
	began := time.Now()
	s, err := p.Pool.Snapshot(ctx)
	p.operated.done(opSnapshot, began, err)
	return s, err
}
