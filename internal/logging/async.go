package logging

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// closeWithin bounds how long Close waits for a reader that does not read.
const closeWithin = time.Second

// Async writes lines to another writer without making anybody wait for it. Lines that come faster than they can be written are
// left out and counted.
type Async struct {
	w     io.Writer
	mu    sync.RWMutex // held to read by those who write, so that nobody writes after the end
	over  bool
	lines chan []byte
	lost  atomic.Int64
	done  chan struct{}
}

// NewAsync makes a writer that keeps up to so many lines.
func NewAsync(w io.Writer, lines int) *Async {
	a := &Async{w: w, lines: make(chan []byte, lines), done: make(chan struct{})}
	go a.run()
	return a
}

func (a *Async) run() {
	defer close(a.done)
	for line := range a.lines {
		_, _ = a.w.Write(line) // nobody could be told
	}
}

// Write takes in one line. It never blocks and never fails.
func (a *Async) Write(p []byte) (int, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.over {
		return len(p), nil
	}
	select {
	case a.lines <- append([]byte(nil), p...):
	default:
		a.lost.Add(1)
	}
	return len(p), nil
}

// Lost is how many lines were left out.
func (a *Async) Lost() int64 { return a.lost.Load() }

// Close writes what is left, for as long as somebody reads it.
func (a *Async) Close() {
	a.mu.Lock()
	was := a.over
	a.over = true
	a.mu.Unlock()
	if was {
		return
	}
	close(a.lines)
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-a.done:
	case <-late.C:
	}
}
