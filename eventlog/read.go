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

// Read hands over the events of a directory since a moment, oldest file first, until yield returns
// false. Events of one file are in the order in which they were written, which is nearly that of
// time. It returns how many lines it could not read: torn ones, and others' text. A line that is being
// written is none of them. A directory without events is no error.
//
// Nobody is kept from writing meanwhile. What is rotated away while it is read is read to the end;
// what is written after Read has begun is not.
func Read(dir string, since time.Time, yield func(inspect.Event) bool) (garbage int, err error) {
	return read(dir, since, nil, yield)
}

// ReadKinds is [Read] for events of some kinds. It is many times faster where these are rare.
func ReadKinds(dir string, since time.Time, kinds []string, yield func(inspect.Event) bool) error {
	var marks [][]byte
	for _, kind := range kinds {
		marks = append(marks, []byte(`"event":"`+kind+`"`))
	}
	_, err := read(dir, since, marks, func(e inspect.Event) bool { return !slices.Contains(kinds, e.Kind) || yield(e) })
	return err
}

// read is Read for lines that contain one of several marks, or for all.
func read(dir string, since time.Time, marks [][]byte, yield func(inspect.Event) bool) (garbage int, err error) {
	open, err := openAll(dir)
	defer func() {
		for _, f := range open {
			_ = f.Close() // only read
		}
	}()
	if err != nil {
		return 0, err
	}
	more := true
	for _, f := range open {
		if f.changed.Before(since) {
			continue // nothing in it is as new as that
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

// part is one file of a log, as it was when it was opened.
type part struct {
	*os.File
	size    int64
	changed time.Time
}

// openAll opens all files of a log, oldest first, at one moment between rotations.
func openAll(dir string) (open []part, err error) {
	if dir == "" {
		return nil, nil
	}
	l, err := statedir.Open(filepath.Join(dir, lock), os.O_RDONLY)
	if err == nil {
		defer func() { _ = l.Close() }() // which unlocks
		if _, err := known(l); err != nil {
			return nil, err
		}
		for i := 0; filelock.Try(l, false) != nil && i < lockTries; i++ {
			time.Sleep(lockPause) // if it is never free, nobody is rotating who could get on
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

// readLines reads events from lines with one of several marks, or from all, and counts those that are none.
func readLines(r io.Reader, marks [][]byte, yield func(inspect.Event) bool) (garbage int, err error) {
	in := bufio.NewReaderSize(r, MaxLine+1)
	for {
		text, err := in.ReadSlice('\n')
		whole, long := err == nil, false
		for errors.Is(err, bufio.ErrBufferFull) { // no line of ours, but one may be at its end
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
				garbage++ // what stood before it
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

// lineStart is how every line begins. In the text of a field its quotes would be escaped.
var lineStart = []byte(`{"time":"`)

// parse reads an event from a line. A line that was torn, by a full disk say, may have the next one
// behind it.
func parse(text []byte) (e inspect.Event, ok bool) {
	at := bytes.LastIndex(text, lineStart)
	if at < 0 {
		return e, false
	}
	err := json.Unmarshal(text[at:], &e)
	return e, err == nil && e.Kind != "" && !e.Time.IsZero()
}
