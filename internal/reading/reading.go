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
	old   bool // Forget was called after it began; guarded by Shared.mu
}

// Last describes the last reading.
type Last[T any] struct {
	Value T
	Age   time.Duration // since it began
	Took  time.Duration
	Busy  bool // the next reading is in progress
}

// Use says what a caller does with the last value.
type Use int

const (
	// Refuse waits for a new reading.
	Refuse Use = iota
	// Keep takes the last value.
	Keep
	// Renew takes the last value. If no reading is in progress, one begins for later callers.
	Renew
)

// Get returns the value that read returns, or the last value if use says so. If ctx ends, the reading continues for the
// other callers, so read must end by itself.
func (s *Shared[T]) Get(ctx context.Context, read func(context.Context) (T, error), use func(Last[T]) Use) (T, error) {
	s.mu.Lock()
	if r := s.last; r != nil {
		u := use(Last[T]{r.value, time.Since(r.begun), r.took, s.now != nil})
		if u == Renew && s.now == nil {
			s.begin(ctx, read)
		}
		if u != Refuse {
			s.mu.Unlock()
			return r.value, nil
		}
	}
	r := s.next
	switch {
	case s.now == nil:
		r = s.begin(ctx, read)
	case r == nil:
		r = &result[T]{done: make(chan struct{})}
		s.next = r
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

// Forget drops the last value. Later calls get one that was read after Forget.
func (s *Shared[T]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
	if s.now != nil {
		s.now.old = true
	}
}

// begin starts a reading. None is in progress, and the caller holds the lock.
func (s *Shared[T]) begin(ctx context.Context, read func(context.Context) (T, error)) *result[T] {
	s.now = &result[T]{done: make(chan struct{})}
	go s.serve(context.WithoutCancel(ctx), s.now, read)
	return s.now
}

// serve reads for as long as callers wait.
func (s *Shared[T]) serve(ctx context.Context, r *result[T], read func(context.Context) (T, error)) {
	for r != nil {
		r.begun = time.Now()
		r.value, r.err = read(ctx)
		r.took = time.Since(r.begun)
		s.mu.Lock()
		if r.err == nil && !r.old {
			s.last = r
		}
		close(r.done)
		r, s.next = s.next, nil
		s.now = r
		s.mu.Unlock()
	}
}
