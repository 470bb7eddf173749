// Package eventlog keeps what happens at the gates of one machine: lines of JSON in a directory
// that many processes write to at once, rotated by size, so that it never grows beyond a bound.
//
// Writing is off the callers' way: events are queued, and one goroutine writes them. A disk that
// is full, slow or gone delays nobody; what could not be written is counted, and the count is
// itself an event. docs/events.md describes the lines.
package eventlog

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/sluicehq/sluice/inspect"
)

// Bounds of the log.
const (
	MaxFile = 8 << 20 // bytes of a file, about, before the next is begun
	Files   = 5       // the current one and those rotated away
	MaxLine = 4096    // bytes of a line, its end included

	maxText  = 256 // bytes of a field
	fewBytes = 32  // of a field of a line that is too long with more
)

// current is the file that is written to; lock is what rotation is done under.
const (
	current = "events.jsonl"
	lock    = "events.lock"
)

// fileName names the i-th file of a directory: 0 is the current one, higher ones are older.
func fileName(dir string, i int) string {
	if i == 0 {
		return filepath.Join(dir, current)
	}
	return filepath.Join(dir, "events."+strconv.Itoa(i)+".jsonl")
}

// line is an event as it is written, or nil if there is no way to keep it short enough.
func line(e inspect.Event) []byte {
	for _, most := range [...]int{maxText, fewBytes} {
		shorten(&e, most)
		text, err := json.Marshal(e)
		if err != nil {
			return nil // a time out of range
		}
		if len(text) < MaxLine {
			return append(text, '\n')
		}
		e.Units = nil
	}
	return nil
}

// shorten cuts fields to a number of bytes.
func shorten(e *inspect.Event, most int) {
	for _, s := range [...]*string{
		&e.Kind, &e.Resource, &e.Ticket, &e.Agent, &e.User, &e.Class, &e.Model, &e.Requested, &e.Tool, &e.Verdict, &e.Reason, &e.Limit, &e.Scope, &e.Mode, &e.Error,
	} {
		*s = cut(*s, most)
	}
}

// cut shortens a text without cutting a character in two.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
