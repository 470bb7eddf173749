// Package history keeps what a daemon has seen, minute by minute, for a week: figures by resource, model and agent,
// notable events, and the last requests. It stores no keys and no bodies.
//
// Memory and files are bounded, however many names callers use. docs/history.md has the bounds and the format.
package history

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/latest"
	"github.com/sluicehq/sluice/internal/statedir"
)

// Other is the name under which figures are counted that have no room of their own.
const Other = "(other)"

// Bounds of what is kept.
const (
	// Days is how many days files are kept, in addition to today's.
	Days = 7
	// MaxMinute is how many bytes the figures of one minute take in a file.
	MaxMinute = 16 << 10
	// MaxEventsDay is how many bytes the events of one day take in a file.
	MaxEventsDay = 4 << 20

	maxResources = 256  // names in one minute
	maxModels    = 512  // resource and model, in one minute
	maxAgents    = 2048 // names in one minute
	maxClasses   = 16
	maxName      = 128     // bytes of a name
	maxTickets   = 1 << 15 // open tickets that are remembered
	maxMemory    = 24 * 60 // minutes that are kept without files
)

// Options describe a history.
type Options struct {
	// Dir is the state directory. If it is empty, nothing outlives the process. Files go into its subdirectory Name,
	// which is "history" if it is empty.
	Dir, Name string
	// Log is the directory of the machine's event log, in which other processes write their events. Process is the
	// signature of this process's lines, which are skipped because it reports its own events directly. If Log is
	// empty, events of other processes are not read.
	Log, Process string
	// Ours reports whether an event in the log belongs to this history. Nil means that all do.
	Ours func(*inspect.Event) bool
	// Failed is called with write errors, the first time and then once an hour. It may be nil.
	Failed func(error)
}

// Book is a history. It is safe for concurrent use. Close writes the last minute.
type Book struct {
	failed func(error)

	mu      sync.Mutex
	now     *minute   // being counted
	over    []*minute // to be written
	live    live
	tickets latest.Map[*ticket]
	recent  recent
	kept    [][]byte // minutes without files, each encoded with its own names; oldest first
	alarms  alarms
	told    time.Time // when the last failure was reported

	files *files // nil: history is kept in memory
	gate  atomic.Pointer[sluice.Gate]
	tail  *eventlog.Tail // nil: events of other processes are not read
	ours  func(*inspect.Event) bool
	other elsewhere
	write sync.Mutex
	wake  chan struct{} // signals that events are to be written
	stop  chan struct{}
	done  chan struct{}
	look  lookup
}

// Open starts a history. If files cannot be used, it does not fail and only calls Failed.
func Open(o Options) *Book {
	b := &Book{failed: o.Failed, ours: o.Ours, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if b.failed == nil {
		b.failed = func(error) {}
	}
	if b.ours == nil {
		b.ours = func(*inspect.Event) bool { return true }
	}
	b.now = newMinute(minuteOf(time.Now()))
	if o.Dir != "" {
		f, err := openFiles(filepath.Join(o.Dir, cmp.Or(o.Name, "history")))
		if err != nil {
			b.failed(err)
		}
		b.files = f
	}
	if o.Log != "" {
		b.tail = eventlog.Follow(o.Log, o.Process)
	}
	go b.run()
	return b
}

// listenEvery is how often the log of other processes is read. askAfter is how long after a minute the store is
// asked what others sent in it.
const (
	listenEvery = time.Second
	askAfter    = 5 * time.Second
)

// run ends minutes, reads events of other processes, and writes events.
func (b *Book) run() {
	defer close(b.done)
	asked := minuteOf(time.Now())
	for {
		timer := time.NewTimer(b.next(time.Now()))
		select {
		case now := <-timer.C:
			if b.tail != nil {
				b.listen()
			}
			b.flush(now)
			if at := minuteOf(now.Add(-askAfter)); at > asked {
				asked = at
				b.ask(at - 1)
			}
		case <-b.wake:
			b.writeEvents()
		case <-b.stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// next returns how long run can sleep.
func (b *Book) next(now time.Time) time.Duration {
	if b.tail != nil {
		return listenEvery
	}
	into := now.Sub(now.Truncate(time.Minute))
	if into < askAfter {
		return askAfter - into
	}
	return time.Minute - into
}

// Close writes the last minute and ends the book.
func (b *Book) Close() error {
	close(b.stop)
	<-b.done
	if b.tail != nil {
		b.listen()
		b.tail.Close()
	}
	b.flush(time.Time{})
	if b.files == nil {
		return nil
	}
	return b.files.close()
}

// turn begins a new minute if at is not the current one.
func (b *Book) turn(at int64) {
	if at == b.now.at {
		return
	}
	if !b.now.empty() {
		b.over = append(b.over, b.now)
	}
	b.now = newMinute(at)
}

// flush writes the finished minutes. With the zero time it also writes the current one.
func (b *Book) flush(now time.Time) {
	b.write.Lock()
	defer b.write.Unlock()
	b.mu.Lock()
	if now.IsZero() {
		b.turn(-1)
		now = time.Now()
	}
	b.turn(minuteOf(now))
	over := b.over
	b.over = nil
	if len(over) > 0 {
		for _, e := range b.alarms.lost(now) {
			b.keep(e)
		}
	}
	if b.files == nil {
		for _, m := range over {
			b.keepInMemory(m)
		}
	}
	b.mu.Unlock()
	if b.files == nil {
		return
	}
	for _, m := range over {
		b.report(b.files.add(m))
	}
	b.writePending()
}

// keepInMemory keeps a minute without files. Encoded it takes as little room as in a file: a minute of thousands of
// agents would take megabytes otherwise. The caller holds mu.
func (b *Book) keepInMemory(m *minute) {
	b.kept = append(b.kept, encode(m, newNames()))
	b.kept = slices.Delete(b.kept, 0, max(0, len(b.kept)-maxMemory))
}

// writeEvents writes the pending events.
func (b *Book) writeEvents() {
	b.write.Lock()
	defer b.write.Unlock()
	b.writePending()
}

func (b *Book) writePending() {
	b.mu.Lock()
	events := b.alarms.pending
	b.alarms.pending = nil
	b.mu.Unlock()
	for i := range events {
		b.report(b.files.event(&events[i]))
	}
}

// keep stores an event: soon in a file, or in memory without files.
func (b *Book) keep(e inspect.Event) {
	if b.files == nil {
		b.alarms.keep(&b.alarms.kept, e)
		return
	}
	b.alarms.keep(&b.alarms.pending, e)
	select {
	case b.wake <- struct{}{}:
	default: // already signalled
	}
}

// report passes a write error to Failed, at most once an hour.
func (b *Book) report(err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	again := b.told.IsZero() || time.Since(b.told) > time.Hour
	if again {
		b.told = time.Now()
	}
	b.mu.Unlock()
	if again {
		b.failed(err)
	}
}

// listen counts what other processes have written to the log since the last call.
func (b *Book) listen() {
	b.tail.Read(func(e inspect.Event) {
		if b.ours(&e) {
			b.Event(e)
		}
	})
}

// Event counts an event of a gate. It does not block.
func (b *Book) Event(e inspect.Event) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(&e, now)
	if notable(e.Kind) && b.alarms.admit(&e, now) {
		b.keep(e)
	}
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

func timeOf(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

// openDir creates the directory of the files, for its user alone.
func openDir(dir string) error {
	if err := statedir.MakeInside(dir); err != nil {
		return err
	}
	if err := statedir.Check(dir); err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return nil
}
