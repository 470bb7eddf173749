package eventlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/internal/leaktest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("EVENTLOG_TEST_CHILD"); dir != "" {
		child(dir)
		return
	}
	leaktest.Main(m)
}

var start = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// send returns the n-th event of an agent.
func send(agent string, n int) inspect.Event {
	return inspect.Event{
		Time: start.Add(time.Duration(n) * time.Millisecond), Kind: inspect.EventSend, Resource: "api", Ticket: fmt.Sprintf("api.1-%x", n+1), Agent: agent,
		Units: map[string]int64{"requests": 1},
	}
}

func all(tb testing.TB, dir string) (events []inspect.Event, garbage int) {
	tb.Helper()
	garbage, err := Read(dir, time.Time{}, func(e inspect.Event) bool {
		events = append(events, e)
		return true
	})
	if err != nil {
		tb.Fatal(err)
	}
	return events, garbage
}

// shut ends a writer and waits until all is written. It does not use Close, which waits two seconds: a busy machine can
// be slower. Tests of Close itself run in virtual time, which passes only while the writer sleeps or is stuck.
func shut(tb testing.TB, w *Writer) {
	tb.Helper()
	if w.stop() {
		<-w.done
	}
	if err := w.Err(); err != nil {
		tb.Error(err)
	}
}

func TestEventsComeBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	w := Open(dir)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("opening alone makes the directory")
	}
	for i := range 3 {
		w.Add(send("a", i))
	}
	shut(t, w)
	shut(t, w)
	w.Add(send("a", 4)) // too late, and no harm
	got, garbage := all(t, dir)
	if len(got) != 3 || garbage != 0 || got[2].Ticket != "api.1-3" || !got[2].Time.Equal(start.Add(2*time.Millisecond)) {
		t.Errorf("got %+v and %d lines of garbage", got, garbage)
	}
	for name, want := range map[string]fs.FileMode{dir: 0o700, fileName(dir, 0): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want && runtime.GOOS != "windows" { // there it is an access list
			t.Errorf("%s has mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestUnusedWriterLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	shut(t, Open(dir))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("there is a directory")
	}
}

func TestLinesAreShort(t *testing.T) {
	long := strings.Repeat("ü\x00\"", 2000)
	units := map[string]int64{}
	for i := range 16 {
		units[fmt.Sprintf("%d%s", i, long[:200])] = 1
	}
	for name, e := range map[string]inspect.Event{
		"an error":  {Kind: "x", Error: long},
		"a state":   {Kind: "x", State: long, Was: long, Reason: long},
		"a machine": {Kind: "x", Agent: long, Machine: long, FromMachine: long},
		"units":     {Kind: "x", Units: units},
		"all names": {Kind: long, Resource: long, Ticket: long, Agent: long, User: long, Class: long, Model: long, Tool: long, Verdict: long, Reason: long, Limit: long, Scope: long, Error: long, Units: units},
	} {
		e.Time = start
		text := line(e)
		if len(text) == 0 || len(text) > MaxLine || !utf8.Valid(text) || strings.Count(string(text), "\n") != 1 {
			t.Errorf("%s: a line of %d bytes", name, len(text))
		}
		if got, ok := parse(text); !ok || got.Kind == "" {
			t.Errorf("%s: it cannot be read again", name)
		}
	}
	if line(inspect.Event{Time: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}) != nil {
		t.Error("a time that JSON cannot hold is written")
	}
}

// small is a writer whose files are full after a few lines.
func small(dir string, max int64) *Writer {
	f := newFiles(dir)
	f.max = max
	return newWriter(f)
}

func TestRotationBoundsTheWhole(t *testing.T) {
	dir := t.TempDir()
	w := small(dir, 2000)
	for i := range 500 {
		w.Add(send("a", i))
	}
	shut(t, w)
	var size int64
	for i := range Files + 1 {
		info, err := os.Stat(fileName(dir, i))
		if (err == nil) != (i < Files) {
			t.Fatalf("file %d: %v", i, err)
		}
		if err == nil {
			size += info.Size()
		}
	}
	if size > Files*2000 {
		t.Errorf("the log has %d bytes, want at most %d", size, Files*2000)
	}
	got, _ := all(t, dir)
	for i, e := range got { // the newest, without a gap, oldest first
		if want := fmt.Sprintf("api.1-%x", 500-len(got)+i+1); e.Ticket != want {
			t.Fatalf("event %d is %s, want %s", i, e.Ticket, want)
		}
	}
	if len(got) < 40 {
		t.Errorf("only %d events are left", len(got))
	}
}

// Writers that share a directory and rotate all the time lose nothing.
func TestManyWritersRotating(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 8, 200
	synctest.Test(t, func(t *testing.T) { // a writer that waits for the lock does not give up while the one that holds it works
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				// Room for all of them: what is rotated away at the end would be lost by design.
				w := small(dir, 100_000)
				for n := range each {
					w.Add(send(fmt.Sprint("a", i), n))
				}
				shut(t, w)
			})
		}
		all.Wait()
	})
	newCollector(dir).check(t, writers, each)
}

// collector knows what a log should contain.
type collector struct{ dir string }

func newCollector(dir string) *collector { return &collector{dir} }

func (c *collector) check(tb testing.TB, writers, each int) {
	tb.Helper()
	got, garbage := all(tb, c.dir)
	next := map[string]int{}
	for _, e := range got {
		if want := fmt.Sprintf("api.1-%x", next[e.Agent]+1); e.Ticket != want {
			tb.Fatalf("%s: ticket %s, want %s", e.Agent, e.Ticket, want)
		}
		next[e.Agent]++
	}
	if len(got) != writers*each || garbage != 0 {
		tb.Errorf("%d events and %d lines of garbage, want %d and 0", len(got), garbage, writers*each)
	}
	if _, err := os.Stat(fileName(c.dir, 1)); err != nil {
		tb.Errorf("nothing was rotated: %v", err)
	}
}

// disk is a file on a disk that can be full or stuck.
type disk struct {
	*os.File
	room  *int64
	stuck <-chan struct{}
}

var errNoSpace = errors.New("no space left on device")

func (d disk) Write(p []byte) (int, error) {
	if d.stuck != nil {
		<-d.stuck
	}
	if d.room == nil {
		return d.File.Write(p)
	}
	n, err := d.File.Write(p[:min(int64(len(p)), *d.room)])
	if *d.room -= int64(n); err == nil && n < len(p) {
		err = errNoSpace
	}
	return n, err
}

func (d disk) opener(name string) (file, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	d.File = f
	return d, err
}

// A full disk fails no caller. When there is room again, lines are whole, and the number of lost events is written.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	room := int64(len(line(send("a", 0))) * 5 / 2)
	f := newFiles(dir)
	f.open = disk{room: &room}.opener
	w := newWriter(f)
	// The goroutine is not started: each step is seen by itself.
	for i := range 4 {
		w.write(send("a", i))
	}
	if err := w.Err(); !errors.Is(err, errNoSpace) {
		t.Errorf("error is %v", err)
	}
	if err := w.Err(); err != nil {
		t.Errorf("it is told twice: %v", err)
	}
	w.tellDropped(start)
	room = 1 << 20
	w.write(send("a", 4))
	w.tellDropped(start)
	f.close()
	got, garbage := all(t, dir)
	if len(got) != 4 || garbage != 1 || got[2].Ticket != "api.1-5" || got[3].Kind != inspect.EventDropped || got[3].Count != 2 {
		t.Errorf("got %+v and %d lines of garbage", got, garbage)
	}
}

// A disk that hangs delays no caller: events are dropped, and Close returns.
func TestStuckDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := newFiles(dir)
		f.open = disk{stuck: release}.opener
		w := newWriter(f)
		for i := range queueSize + 100 {
			w.Add(send("a", i))
		}
		if err := w.Close(); !errors.Is(err, errSlow) {
			t.Errorf("closing: %v", err)
		}
		close(release)
		<-w.done
	})
	got, _ := all(t, dir)
	dropped := int64(0)
	for _, e := range got {
		dropped += e.Count
	}
	if int64(len(got)) < queueSize || dropped < 90 || dropped > 100 {
		t.Errorf("%d events, %d dropped", len(got), dropped)
	}
}

func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", filepath.Join(file, "below")} {
		synctest.Test(t, func(t *testing.T) {
			w := Open(dir)
			w.Add(send("a", 0))
			if err := w.Close(); err == nil || errors.Is(err, errSlow) {
				t.Errorf("%q: closing: %v", dir, err)
			}
		})
	}
}

// A process that was stopped while rotating keeps the lock. Other processes drop lines but do not block callers.
func TestLockThatIsNeverFree(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := Open(dir)
		w.Add(send("a", 0))
		shut(t, w)
		l, err := os.OpenFile(filepath.Join(dir, lock), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := filelock.Try(l, true); err != nil {
			t.Fatal(err)
		}
		w = Open(dir)
		w.Add(send("a", 1))
		if err := w.Close(); !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("closing: %v", err)
		}
	})
	if got, _ := all(t, dir); len(got) != 1 {
		t.Errorf("%d events can be read, want 1", len(got))
	}
}

// A reader delays the rotation, not the writing.
func TestReaderKeepsFileFromRotating(t *testing.T) {
	dir := t.TempDir()
	f := newFiles(dir)
	f.max = 500
	if err := f.append(line(send("a", 0))); err != nil {
		t.Fatal(err)
	}
	l, err := os.Open(filepath.Join(dir, lock))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := filelock.Try(l, false); err != nil {
		t.Fatal(err)
	}
	n := 1
	for ; err == nil && n < 100; n++ {
		err = f.append(line(send("a", n)))
	}
	if !errors.Is(err, errFull) {
		t.Errorf("the file grows and grows: %v", err)
	}
	filelock.Unlock(l)
	if err := f.append(line(send("a", n))); err != nil {
		t.Error(err)
	}
	f.close()
	if _, err := os.Stat(fileName(dir, 1)); err != nil {
		t.Errorf("not rotated: %v", err)
	}
}
