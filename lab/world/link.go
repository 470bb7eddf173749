package world

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// Timeout is how long a caller waits for a reply before it gives up.
const Timeout = 2 * time.Second

// link is the connection of one process to a server.
type link struct {
	server *Server
	id     uint64
	sent   atomic.Uint64
	ended  context.Context
	end    context.CancelFunc
	open   sync.WaitGroup // watches
	cut    atomic.Bool

	line Line
	mu   sync.Mutex
	busy time.Time // when all that was sent so far has arrived
}

// carry returns how long it takes until n more bytes have arrived.
func (l *link) carry(n int) time.Duration {
	if l.line.Rate == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.busy.Before(now) {
		l.busy = now
	}
	l.busy = l.busy.Add(time.Duration(n) * time.Second / time.Duration(l.line.Rate))
	return l.busy.Sub(now)
}

// upload waits until n bytes have arrived at the server.
func (l *link) upload(ctx context.Context, n int) error {
	timer := time.NewTimer(l.carry(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return unanswered(ctx.Err())
	case <-l.ended.Done():
		return sharedlog.ErrClosed
	}
}

// sizeOf returns how many bytes a reply takes, as far as that matters.
func sizeOf(reply any) int {
	switch r := reply.(type) {
	case sharedlog.Entries:
		return len(r.Data)
	case sharedlog.Loaded:
		return len(r.Snapshot) + len(r.Data)
	}
	return 0
}

// Cut makes nothing pass between a process and its server, in either direction, until it is called with false. What is under
// way may have arrived, or not.
func Cut(e sharedlog.Engine, cut bool) { e.(*engine).link.cut.Store(cut) }

var errTimeout = errors.New("no reply")

// outcome is what a server answers.
type outcome[T any] struct {
	value T
	err   error
}

// call has the server carry out do, over a network that delays and loses messages.
func call[T any](ctx context.Context, l *link, do func() (T, error)) (T, error) {
	var none T
	switch {
	case l.ended.Err() != nil:
		return none, sharedlog.ErrClosed
	case ctx.Err() != nil:
		return none, unanswered(ctx.Err())
	}
	s, f := l.server, l.server.world.faults.Load()
	n := l.sent.Add(1)
	r := s.world.dice(l.id, n)
	there, back := delay(r, f.Delay), delay(r, f.Delay)
	lostRequest, lostReply := r.Float64() < f.LoseRequest, r.Float64() < f.LoseReply
	trouble := trouble{stall: f.Stall.draw(r), tail: f.LoseTail.draw(r), step: f.StepClock.draw(r), flush: r.Float64() < f.Flush}
	if r.Uint64()&1 == 0 {
		trouble.step = -trouble.step
	}

	reply := make(chan outcome[T], 1)
	go func() {
		time.Sleep(there + l.line.Delay)
		if lostRequest || l.cut.Load() {
			return
		}
		var o outcome[T]
		s.serve(l.id, n, trouble, func() { o.value, o.err = do() })
		time.Sleep(back + l.line.Delay + l.carry(sizeOf(o.value)))
		if !lostReply && !l.cut.Load() {
			reply <- o
		}
	}()
	timer := time.NewTimer(Timeout)
	defer timer.Stop()
	select {
	case o := <-reply:
		return o.value, o.err
	case <-ctx.Done():
		return none, unanswered(ctx.Err())
	case <-l.ended.Done():
		return none, sharedlog.ErrClosed
	case <-timer.C:
		return none, unanswered(errTimeout)
	}
}

func unanswered(why error) error { return fmt.Errorf("%w: %w", sharedlog.ErrUnavailable, why) }

// wake sends a wake-up to a watcher.
func (s *Server) wake(from, n uint64, i int, to chan<- struct{}) {
	f := s.world.faults.Load()
	r := s.world.dice(from^1<<39, n<<8+uint64(i))
	late, lost := delay(r, f.Delay)+time.Duration(r.Float64()*float64(f.DelayWake)), r.Float64() < f.LoseWake
	if lost {
		return
	}
	time.AfterFunc(late, func() { hint(to) })
}

// hint puts a value into a channel that holds one, unless one is there.
func hint(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
