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
	// Rest says how long to leave the source to others after a reading that took so long. nil: not at all.
	Rest func(took time.Duration) time.Duration

	mu      sync.Mutex
	last    *result[T] // finished without an error; nil if there is none
	now     *result[T] // in progress; nil if there is none
	next    *result[T] // begins when now and the rest after it are over; nil if no caller waits for it
	serving bool       // a goroutine reads, or is about to
	rested  time.Time  // until then there is no reading
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
	r := s.begin(ctx, read)
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Last returns the last value and how old it is, or false if there is none.
func (s *Shared[T]) Last() (v T, age time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return v, 0, false
	}
	return s.last.value, time.Since(s.last.begun), true
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

// begin returns the reading that begins after this call. The caller holds the lock.
func (s *Shared[T]) begin(ctx context.Context, read func(context.Context) (T, error)) *result[T] {
	if s.next == nil {
		s.next = &result[T]{done: make(chan struct{})}
	}
	if !s.serving {
		s.serving = true
		go s.serve(context.WithoutCancel(ctx), read, s.rested)
	}
	return s.next
}

// serve reads for as long as callers wait.
func (s *Shared[T]) serve(ctx context.Context, read func(context.Context) (T, error), rested time.Time) {
	for {
		time.Sleep(time.Until(rested))
		s.mu.Lock()
		r := s.next
		s.now, s.next = r, nil
		s.mu.Unlock()
		r.begun = time.Now()
		r.value, r.err = read(ctx)
		r.took = time.Since(r.begun)
		s.mu.Lock()
		if r.err == nil && !r.old {
			s.last = r
		}
		if s.Rest != nil {
			s.rested = r.begun.Add(r.took + s.Rest(r.took))
		}
		s.now, rested = nil, s.rested
		s.serving = s.next != nil
		waited := s.serving
		close(r.done)
		s.mu.Unlock()
		if !waited {
			return
		}
	}
}
