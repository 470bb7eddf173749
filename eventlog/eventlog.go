// Package eventlog records what happens at the gates of one machine, as lines of JSON in a directory. Many processes
// can write to it at once. The files are rotated by size, so the log never grows beyond a bound.
//
// Writing does not delay callers: events are queued, and one goroutine writes them. Events that a full, slow or missing
// disk cannot take are counted, and the count is written as an event. docs/events.md describes the lines.
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
	MaxFile = 8 << 20 // approximate bytes of a file before rotation
	Files   = 5       // including the current one
	MaxLine = 4096    // bytes of a line, including the newline

	maxText  = 256 // bytes of a field
	fewBytes = 32  // bytes of a field in a line that would otherwise be too long
)

// current is the file that is written to. Rotation locks the file called lock.
const (
	current = "events.jsonl"
	lock    = "events.lock"
)

// fileName returns the name of the i-th file of a directory. 0 is the current one; higher numbers are older.
func fileName(dir string, i int) string {
	if i == 0 {
		return filepath.Join(dir, current)
	}
	return filepath.Join(dir, "events."+strconv.Itoa(i)+".jsonl")
}

// line encodes an event as a line. It returns nil if the event cannot be made short enough.
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

// shorten cuts each text field to at most the given number of bytes.
func shorten(e *inspect.Event, most int) {
	for _, s := range [...]*string{
		&e.Kind, &e.Resource, &e.Ticket, &e.Agent, &e.User, &e.Class, &e.Model, &e.Requested, &e.Tool, &e.Verdict, &e.Reason, &e.Limit, &e.Scope, &e.Mode, &e.Error,
		&e.State, &e.Was, &e.Machine, &e.FromMachine, &e.Behind, &e.Store, &e.Host,
	} {
		*s = cut(*s, most)
	}
}

// cut shortens a text without splitting a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
