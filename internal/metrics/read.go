package metrics

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

var (
	errNoGate = errors.New("there is no gate yet")
	errSlow   = errors.New("the state was not read in time")
)

// reader reads the state of a gate, once for all concurrent callers. If the store hangs, callers wait no longer than
// the timeout, and only one goroutine is blocked.
type reader struct {
	gate    *atomic.Pointer[sluice.Gate]
	status  func(context.Context) (inspect.Status, error) // nil means the gate's
	timeout time.Duration

	mu  sync.Mutex
	now *reading // the running read, or nil
}

// reading is one read.
type reading struct {
	done   chan struct{}
	status inspect.Status
	err    error
	took   time.Duration
}

// read returns the running read, or a new one. first reports that this caller started it.
func (r *reader) read() (x *reading, first bool, err error) {
	gate := r.gate.Load()
	if gate == nil {
		return nil, false, errNoGate
	}
	limit := r.timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	r.mu.Lock()
	if x = r.now; x == nil {
		x, first = &reading{done: make(chan struct{})}, true
		r.now = x
		go r.run(x, gate, limit)
	}
	r.mu.Unlock()
	timer := time.NewTimer(limit + limit/10) // the gate should time out first
	defer timer.Stop()
	select {
	case <-x.done:
		return x, first, x.err
	case <-timer.C:
		return &reading{took: limit + limit/10}, first, errSlow // it took at least that long
	}
}

func (r *reader) run(x *reading, gate *sluice.Gate, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	read := r.status
	if read == nil {
		read = gate.Status
	}
	x.status, x.err = read(ctx)
	x.took = time.Since(began)
	r.mu.Lock()
	r.now = nil
	r.mu.Unlock()
	close(x.done)
}
