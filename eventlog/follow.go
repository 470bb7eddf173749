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

// newProcess returns a random name that identifies the lines of this process.
func newProcess() string {
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// Tail reads what other processes write to a log from now on. Use it from one goroutine only.
type Tail struct {
	dir  string
	own  []byte // occurs in every line of this process
	in   *os.File
	at   int64
	rest []byte // start of a line that is not complete yet
	buf  []byte
	from bool // read the current file from its start
}

// Follow returns a Tail that starts at the end of the log in dir. It skips the lines of process; see [Writer.Process].
func Follow(dir, process string) *Tail {
	t := &Tail{dir: dir, own: []byte(`"process":"` + process + `"`), buf: make([]byte, 64<<10)}
	t.open()
	t.from = true
	return t
}

// open opens the current file. The first time it starts at the end.
func (t *Tail) open() bool {
	in, err := statedir.Open(fileName(t.dir, 0), os.O_RDONLY)
	if err != nil {
		return false // no process has written yet
	}
	t.in, t.at, t.rest = in, 0, nil
	if info, err := in.Stat(); err == nil && !t.from {
		t.at = info.Size()
	}
	return true
}

// Close stops following the log.
func (t *Tail) Close() {
	if t.in != nil {
		_ = t.in.Close() // opened for reading only
		t.in = nil
	}
}

// Read yields the events written since the last call. Events are lost if the log is rotated faster than it is read.
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
	t.drain(yield) // the rest of the file before it was rotated away
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
			t.rest = t.rest[:0] // too long for a line of the log
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
