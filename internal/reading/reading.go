// Package reading shares slow readings among concurrent callers.
package reading

import (
	"context"
	"sync"
	"time"
)

// Shared reads a value for all callers that want it. There is at most one reading at a time. It begins after the calls
// that it serves, so a caller sees what it has done itself. The zero value is ready to use.
type Shared[T any] struct {
	mu   sync.Mutex
	last *result[T] // finished without an error; nil if there is none
	now  *result[T] // in progress; nil if there is none
	next *result[T] // begins when now is over; nil if no caller waits for it
}

// result is valid when done is closed.
type result[T any] struct {
	done  chan struct{}
	value T
	err   error
	begun time.Time
	took  time.Duration
}

// Last describes the last reading.
type Last[T any] struct {
	Value T
	Age   time.Duration // since it began
	Took  time.Duration
	Busy  bool // the next reading is in progress
}

// Get returns the value that read returns, or the last value if suffices says so. If ctx ends, the reading continues for
// the other callers, so read must end by itself.
func (s *Shared[T]) Get(ctx context.Context, read func(context.Context) (T, error), suffices func(Last[T]) bool) (T, error) {
	s.mu.Lock()
	if r := s.last; r != nil && suffices(Last[T]{r.value, time.Since(r.begun), r.took, s.now != nil}) {
		s.mu.Unlock()
		return r.value, nil
	}
	r := s.next
	if r == nil {
		r = &result[T]{done: make(chan struct{})}
		s.next = r
		if s.now == nil {
			s.now, s.next = r, nil
			go s.serve(context.WithoutCancel(ctx), r, read)
		}
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// serve reads for as long as callers wait.
func (s *Shared[T]) serve(ctx context.Context, r *result[T], read func(context.Context) (T, error)) {
	for r != nil {
		r.begun = time.Now()
		r.value, r.err = read(ctx)
		r.took = time.Since(r.begun)
		s.mu.Lock()
		if r.err == nil {
			s.last = r
		}
		close(r.done)
		r, s.next = s.next, nil
		s.now = r
		s.mu.Unlock()
	}
}
