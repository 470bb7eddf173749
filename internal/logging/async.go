package logging

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// closeWithin bounds how long Close waits for a blocked writer.
const closeWithin = time.Second

// Async writes lines to another writer without blocking the caller. It drops and counts lines that come faster than
// they can be written.
type Async struct {
	w     io.Writer
	mu    sync.RWMutex // writers hold it for reading, so that none writes after Close
	over  bool
	lines chan []byte
	lost  atomic.Int64
	done  chan struct{}
}

// NewAsync returns a writer that buffers up to lines lines.
func NewAsync(w io.Writer, lines int) *Async {
	a := &Async{w: w, lines: make(chan []byte, lines), done: make(chan struct{})}
	go a.run()
	return a
}

func (a *Async) run() {
	defer close(a.done)
	for line := range a.lines {
		_, _ = a.w.Write(line) // the error has no receiver
	}
}

// Write queues one line. It never blocks and never fails.
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

// Lost returns how many lines were dropped.
func (a *Async) Lost() int64 { return a.lost.Load() }

// Close writes the queued lines, for at most closeWithin.
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
