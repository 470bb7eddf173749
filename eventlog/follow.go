package eventlog

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/statedir"
)

// newProcess names a process by which its lines are told from those of others.
func newProcess() string {
	id := make([]byte, 6)
	_, _ = rand.Read(id) // which never fails
	return hex.EncodeToString(id)
}

// Tail reads what other processes write to a log from now on. It is for one goroutine.
type Tail struct {
	dir  string
	own  []byte // in every line of this process
	in   *os.File
	at   int64
	rest []byte // of a line that is being written
	buf  []byte
	from bool // the current file is read from its start
}

// Follow begins to follow the log of a directory, from its end on. Lines of one process are left out: see [Writer.Process].
func Follow(dir, process string) *Tail {
	t := &Tail{dir: dir, own: []byte(`"process":"` + process + `"`), buf: make([]byte, 64<<10)}
	t.open()
	t.from = true
	return t
}

// open opens the current file, at its end the first time.
func (t *Tail) open() bool {
	in, err := statedir.Open(fileName(t.dir, 0), os.O_RDONLY)
	if err != nil {
		return false // nobody has written yet
	}
	t.in, t.at, t.rest = in, 0, nil
	if info, err := in.Stat(); err == nil && !t.from {
		t.at = info.Size()
	}
	return true
}

// Close ends following.
func (t *Tail) Close() {
	if t.in != nil {
		_ = t.in.Close() // only read
		t.in = nil
	}
}

// Read hands over what was written since the last time. A log that is rotated faster than it is read loses some.
func (t *Tail) Read(yield func(inspect.Event)) {
	if t.in == nil && !t.open() {
		return
	}
	t.drain(yield)
	is, err := t.in.Stat()
	there, thereErr := os.Stat(fileName(t.dir, 0))
	if err == nil && thereErr == nil && os.SameFile(is, there) && there.Size() >= t.at {
		return
	}
	t.drain(yield) // what came before it was rotated away
	t.Close()
	if t.open() {
		t.drain(yield)
	}
}

// drain reads to the end of the file.
func (t *Tail) drain(yield func(inspect.Event)) {
	for {
		n, err := t.in.ReadAt(t.buf, t.at)
		t.at += int64(n)
		text := t.buf[:n]
		for {
			end := bytes.IndexByte(text, '\n')
			if end < 0 {
				break
			}
			line := text[:end]
			if len(t.rest) > 0 {
				line = append(t.rest, line...)
			}
			t.line(line, yield)
			t.rest, text = t.rest[:0], text[end+1:]
		}
		if len(t.rest)+len(text) <= MaxLine {
			t.rest = append(t.rest, text...)
		} else {
			t.rest = t.rest[:0] // no line of ours
		}
		if err != nil && err != io.EOF || n == 0 {
			return
		}
	}
}

func (t *Tail) line(text []byte, yield func(inspect.Event)) {
	if bytes.Contains(text, t.own) {
		return
	}
	at := bytes.LastIndex(text, lineStart)
	if at < 0 {
		return
	}
	var e inspect.Event
	if json.Unmarshal(text[at:], &e) == nil && e.Kind != "" && !e.Time.IsZero() {
		yield(e)
	}
}
