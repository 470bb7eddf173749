package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/internal/statedir"
)

// Read yields the events of a directory since a moment, oldest file first, until yield returns false. The events of one
// file are in the order in which they were written, which is nearly that of time. Read returns how many lines it could
// not parse: lines written only in part, and foreign text. A line that is still being written does not count. A
// directory without events is not an error.
//
// Writers are not blocked meanwhile. A file that is rotated away during Read is read to the end. Lines written after
// Read has begun are not read.
func Read(dir string, since time.Time, yield func(inspect.Event) bool) (garbage int, err error) {
	return read(dir, since, nil, yield)
}

// ReadKinds is [Read] for some kinds of events. It is many times faster if these are rare.
func ReadKinds(dir string, since time.Time, kinds []string, yield func(inspect.Event) bool) error {
	var marks [][]byte
	for _, kind := range kinds {
		marks = append(marks, []byte(`"event":"`+kind+`"`))
	}
	_, err := read(dir, since, marks, func(e inspect.Event) bool { return !slices.Contains(kinds, e.Kind) || yield(e) })
	return err
}

// IsOf reports whether an event belongs to one of the stores, which are labels as given to [OpenFor]. Every event does if
// there are none. An event without a label belongs to every store: earlier versions wrote no labels.
func IsOf(e *inspect.Event, stores []string) bool {
	return len(stores) == 0 || e.Store == "" || slices.Contains(stores, e.Store)
}

// read is Read for lines that contain one of the marks, or for all lines if there are no marks.
func read(dir string, since time.Time, marks [][]byte, yield func(inspect.Event) bool) (garbage int, err error) {
	open, err := openAll(dir)
	defer func() {
		for _, f := range open {
			_ = f.Close() // opened for reading only
		}
	}()
	if err != nil {
		return 0, err
	}
	more := true
	for _, f := range open {
		if f.changed.Before(since) {
			continue // all its events are older
		}
		n, err := readLines(io.LimitReader(f, f.size), marks, func(e inspect.Event) bool {
			more = e.Time.Before(since) || yield(e)
			return more
		})
		garbage += n
		if err != nil || !more {
			return garbage, err
		}
	}
	return garbage, nil
}

// part is one file of a log, with its size and time when it was opened.
type part struct {
	*os.File
	size    int64
	changed time.Time
}

// openAll opens all files of a log, oldest first. The shared lock keeps rotation out meanwhile.
func openAll(dir string) (open []part, err error) {
	if dir == "" {
		return nil, nil
	}
	l, err := statedir.Open(filepath.Join(dir, lock), os.O_RDONLY)
	if err == nil {
		defer func() { _ = l.Close() }() // closing unlocks
		if _, err := known(l); err != nil {
			return nil, err
		}
		for i := 0; filelock.Try(l, false) != nil && i < lockTries; i++ {
			time.Sleep(lockPause) // if the lock is never free, the rotating process is stuck and renames nothing
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i := Files - 1; i >= 0; i-- {
		f, err := statedir.Open(fileName(dir, i), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return open, err
		}
		open = append(open, part{File: f})
		info, err := f.Stat()
		if err != nil {
			return open, err
		}
		open[len(open)-1] = part{f, info.Size(), info.ModTime()}
	}
	return open, nil
}

// readLines yields the events of lines that contain one of the marks, or of all lines. It counts the lines that are not
// events.
func readLines(r io.Reader, marks [][]byte, yield func(inspect.Event) bool) (garbage int, err error) {
	in := bufio.NewReaderSize(r, MaxLine+1)
	for {
		text, err := in.ReadSlice('\n')
		whole, long := err == nil, false
		for errors.Is(err, bufio.ErrBufferFull) { // too long for a line of the log, but an event may be at its end
			long = true
			before := bytes.Clone(text[len(text)-MaxLine:])
			text, err = in.ReadSlice('\n')
			text = append(before, text...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return garbage, err
		}
		text = bytes.TrimSpace(text)
		skip := len(marks) > 0 && !slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(text, m) })
		var e inspect.Event
		ok := false
		if !skip {
			e, ok = parse(text)
		}
		switch {
		case skip:
		case ok:
			if torn := bytes.LastIndex(text, lineStart); torn > 0 || long {
				garbage++ // the text before the event
			}
			if !yield(e) {
				return garbage, nil
			}
		case len(text) > 0 && whole || long:
			garbage++
		}
		if err != nil {
			return garbage, nil
		}
	}
}

// lineStart is the start of every line. It cannot occur inside a field, where quotes are escaped.
var lineStart = []byte(`{"time":"`)

// parse reads an event from a line. If a write was cut short, for example by a full disk, the next event is on the same
// line: parse reads the last one.
func parse(text []byte) (e inspect.Event, ok bool) {
	at := bytes.LastIndex(text, lineStart)
	if at < 0 {
		return e, false
	}
	err := json.Unmarshal(text[at:], &e)
	return e, err == nil && e.Kind != "" && !e.Time.IsZero()
}
