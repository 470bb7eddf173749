package eventlog

import (
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

const (
	queueSize   = 4096            // events waiting to be written
	flushWithin = 2 * time.Second // how long Close waits for a slow disk
)

// Writer appends events to the log of a directory. All methods are safe for concurrent use.
type Writer struct {
	files   *files
	process string
	store   string // label of the gate's store; see OpenFor

	mu      sync.Mutex
	queue   chan inspect.Event // made with the first event
	closed  bool
	dropped int64 // since the last dropped event
	err     error // the first since the last call of Err
	done    chan struct{}
}

// Open returns a writer for the log in dir. It creates nothing before the first event.
func Open(dir string) *Writer { return newWriter(newFiles(dir)) }

// OpenFor is [Open] for a gate whose store has a label, so that readers can tell its events from those of other stores
// in the same log. The label is in the field store of every line. It must not contain a password.
func OpenFor(dir, store string) *Writer {
	w := Open(dir)
	w.store = store
	return w
}

func newWriter(f *files) *Writer {
	return &Writer{files: f, process: newProcess(), done: make(chan struct{})}
}

// Process returns the random name in the process field of this writer's lines.
func (w *Writer) Process() string { return w.process }

// Add queues an event. It never blocks: if the disk cannot keep up, the event is dropped and counted.
func (w *Writer) Add(e inspect.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.queue == nil {
		w.queue = make(chan inspect.Event, queueSize)
		go w.run(w.queue)
	}
	select {
	case w.queue <- e:
	default:
		w.dropped++
	}
}

// Err returns the first error since the last call, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	w.err = nil
	return err
}

// errSlow is returned by Close when it gives up waiting.
var errSlow = errors.New("events were not written in time and may be lost")

// Close writes the queued events and ends the writer. It gives up after two seconds. It may be called twice.
func (w *Writer) Close() error {
	if w.stop() {
		late := time.NewTimer(flushWithin)
		defer late.Stop()
		select {
		case <-w.done:
		case <-late.C:
			return errSlow
		}
	}
	return w.Err()
}

// stop ends the queue. It reports whether there were any events; then done is closed once all are written.
func (w *Writer) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := w.queue != nil
	if begun && !w.closed {
		close(w.queue)
	}
	w.closed = true
	return begun
}

// run writes events until the queue is closed.
func (w *Writer) run(queue <-chan inspect.Event) {
	defer close(w.done)
	defer w.files.close()
	for e := range queue {
		w.write(e)
		w.tellDropped(e.Time)
	}
	w.tellDropped(time.Now())
}

// write writes one event, or counts it as dropped.
func (w *Writer) write(e inspect.Event) bool {
	e.Process, e.Store = w.process, w.store
	text := line(e)
	err := errTooLong
	if text != nil {
		err = w.files.append(text)
	}
	if err == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped++
	if w.err == nil {
		w.err = err
	}
	return false
}

var errTooLong = errors.New("an event was too long to be written")

// tellDropped writes an event with the number of dropped events, if there are any.
func (w *Writer) tellDropped(at time.Time) {
	w.mu.Lock()
	n := w.dropped
	w.dropped = 0
	w.mu.Unlock()
	if n > 0 && !w.write(inspect.Event{Time: at, Kind: inspect.EventDropped, Count: n}) {
		w.mu.Lock()
		w.dropped += n - 1 // do not count the dropped event itself
		w.mu.Unlock()
	}
}
