package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
)

// reader collects the sends of a log.
type reader struct {
	log      *Log
	tickets  map[string]int // event log: index of the send by ticket
	entries  bool           // Lines counts entries of a JSON array
	timeless int            // first line with a status but no time, while the format is unknown; 0: none
}

// Read reads a log: a file, the directory of an event log, or in if name is "-". If format is empty, Read guesses it.
// If resource is empty, Read selects the one with the most sends.
func Read(name, format, resource string, in io.Reader) (*Log, error) {
	r := &reader{log: &Log{File: name, Format: format}, tickets: map[string]int{}}
	if err := r.open(name, in); err != nil {
		var e *Error
		if !errors.As(err, &e) {
			err = &Error{File: name, Line: 0, Message: plain(err)}
		}
		return nil, err
	}
	r.finish(resource)
	if len(r.log.Sends) == 0 {
		return nil, &Error{File: name, Message: "there is no request in it" + of(resource)}
	}
	if err := r.span(); err != nil {
		return nil, err
	}
	return r.log, nil
}

func of(resource string) string {
	if resource == "" {
		return ""
	}
	return fmt.Sprintf(" to the resource %q", resource)
}

// plain returns the text of an error without the name of the file, which the message already has.
func plain(err error) string {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func (r *reader) open(name string, in io.Reader) error {
	if name == "-" {
		return r.read(in)
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.directory(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	return r.read(f)
}

// directory reads all files of an event log.
func (r *reader) directory(name string) error {
	if r.log.Format != "" && r.log.Format != Events {
		return &Error{File: name, Message: "it is a directory, which only the format events has"}
	}
	r.log.Format = Events
	var failed error
	garbage, err := eventlog.Read(name, time.Time{}, func(e inspect.Event) bool {
		r.log.Lines++
		r.event(&e)
		failed = r.full()
		return failed == nil
	})
	r.log.Skipped += garbage
	return errors.Join(err, failed)
}

func (r *reader) full() error {
	if len(r.log.Sends) > MaxSends {
		return r.fail("more than %d requests: cut the log into parts", MaxSends)
	}
	return nil
}

// fail returns an error about the current line.
func (r *reader) fail(format string, args ...any) error {
	return r.failAt(r.log.Lines, "", format, args...)
}

// failAt returns an error about a line. Entries of an array have no line numbers.
func (r *reader) failAt(line int, hint, format string, args ...any) error {
	e := &Error{File: r.log.File, Line: line, Message: fmt.Sprintf(format, args...), Hint: hint}
	if r.entries {
		e.Line, e.Message = 0, r.place(line)+": "+e.Message
	}
	return e
}

// place names a line, or an entry of an array.
func (r *reader) place(line int) string {
	if r.entries {
		return "entry " + itoa(line)
	}
	return "line " + itoa(line)
}

// span returns an error if the log is too long for a replay.
func (r *reader) span() error {
	first, last := &r.log.Sends[0], &r.log.Sends[0]
	for i := range r.log.Sends {
		s := &r.log.Sends[i]
		if s.Wanted.Before(first.Wanted) {
			first = s
		}
		if s.End.After(last.End) {
			last = s
		}
	}
	if !last.End.After(first.Wanted.AddDate(MaxYears, 0, 0)) {
		return nil
	}
	return r.failAt(last.Line, "correct the times, or cut the log into parts", "it ends at %s, and %s begins at %s: a replay takes at most %d years",
		last.End.Format(time.RFC3339), r.place(first.Line), first.Wanted.Format(time.RFC3339), MaxYears)
}

// read reads one file line by line. JSON arrays and CSV have their own readers.
func (r *reader) read(in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	first, err := firstByte(b)
	switch {
	case errors.Is(err, io.EOF):
		return &Error{File: r.log.File, Message: "the log is empty"}
	case err != nil:
		return err
	case first == '[':
		return r.array(b)
	case first != '{':
		return r.csv(b)
	}
	for {
		line, err := readLine(b)
		if errors.Is(err, errLong) {
			r.log.Lines++
			return r.fail("the line has more than %d MB", MaxLine>>20)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if last := err != nil; len(line) > 0 {
			r.log.Lines++
			if err := r.line(line, last); err != nil {
				return err
			}
		}
		if err != nil {
			return r.known()
		}
		if err := r.full(); err != nil {
			return err
		}
	}
}

// known returns an error if the format is still unknown at the end of the file.
func (r *reader) known() error {
	if r.log.Format == "" {
		return &Error{File: r.log.File, Message: "its format is not known: no line has an event, a startTime, or a time and a status"}
	}
	return nil
}

func firstByte(b *bufio.Reader) (byte, error) {
	for {
		c, err := b.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n\xef\xbb\xbf"), rune(c)) && c < 0x80 {
			return c, b.UnreadByte()
		}
		if c >= 0x80 && c != 0xef && c != 0xbb && c != 0xbf { // not ASCII and no byte order mark: binary data
			return c, b.UnreadByte()
		}
	}
}

var errLong = errors.New("a line is too long")

// readLine returns the next line without its line break.
func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		if line = append(line, part...); len(line) > MaxLine {
			return nil, errLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// line reads one line of JSON. The last line may be incomplete, because another process may still write it.
func (r *reader) line(text []byte, last bool) error {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil
	}
	if r.log.Format == Events {
		var e inspect.Event
		if json.Unmarshal(text, &e) != nil || e.Kind == "" {
			r.log.Skipped++ // a full disk leaves incomplete lines
			return nil
		}
		r.event(&e)
		return nil
	}
	o, err := decode(text)
	if err != nil {
		if last {
			r.log.Skipped++
			return nil
		}
		return r.fail("it is not a JSON object: %v", err)
	}
	if r.log.Format == "" {
		if r.log.Format = guess(o); r.log.Format == "" {
			r.log.Skipped++ // another kind of line; a later one may reveal the format
			if _, _, ok := outcome(o.text(statusFields...)); ok && r.timeless == 0 {
				r.timeless = r.log.Lines
			}
			return nil
		}
		if r.log.Format == Access && r.timeless > 0 {
			return r.failAt(r.timeless, "", noTime, startFields[0])
		}
		return r.line(text, last)
	}
	return r.object(o)
}

// guess returns the format of an object, or "" if it fits no format.
func guess(o object) string {
	switch {
	case o.has("event") && o.has("time") && !o.has("status", "msg"):
		return Events
	case o.has("event") && o.has("ticket"):
		return Events
	case o.has("startTime"):
		return LiteLLM
	case o.has(startFields...) && o.has(statusFields...):
		return Access
	}
	return ""
}

func (r *reader) object(o object) error {
	if r.log.Format == LiteLLM {
		return r.spend(o)
	}
	return r.access(o)
}

func (r *reader) add(s Send) {
	s.Line = r.log.Lines
	s.Caller, s.User, s.Class, s.Model, s.Named = cut(s.Caller), cut(s.User), cut(s.Class), cut(s.Model), cut(s.Named)
	if s.Named == "" {
		s.Named = s.Model
	}
	if s.End.Before(s.Start) {
		s.End = s.Start
	}
	if s.First.Before(s.Start) || s.First.After(s.End) {
		s.First = s.End
	}
	if s.Wanted.IsZero() || s.Wanted.After(s.Start) {
		s.Wanted = s.Start
	}
	r.log.Sends = append(r.log.Sends, s)
}

func cut(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// finish keeps the sends of one resource, sorted by time.
func (r *reader) finish(resource string) {
	l := r.log
	l.Sends = slices.DeleteFunc(l.Sends, func(s Send) bool { return s.Start.IsZero() }) // cancelled
	n := map[string]int{}
	for i := range l.Sends {
		n[l.Sends[i].Resource]++
	}
	if l.Resource = resource; resource == "" {
		for _, name := range slices.Sorted(maps.Keys(n)) {
			if n[name] > n[l.Resource] || len(n) == 1 {
				l.Resource = name
			}
		}
	}
	named := len(n) > 1 || n[""] == 0
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if name != l.Resource && named {
			l.Others = append(l.Others, name)
		}
	}
	l.Sends = slices.DeleteFunc(l.Sends, func(s Send) bool { return named && s.Resource != l.Resource })
	// Of sends with the same logged time, the accepted ones come first: there was room for them.
	late := func(s *Send) int {
		if s.Refused {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(l.Sends, func(a, b Send) int { return cmp.Or(a.Start.Compare(b.Start), late(&a)-late(&b)) })
	l.fold()
}

// fold combines all callers beyond the bound into one.
func (l *Log) fold() {
	n := map[string]int{}
	for i := range l.Sends {
		n[l.Sends[i].Caller]++
	}
	if len(n) <= MaxCallers {
		return
	}
	names := slices.SortedFunc(maps.Keys(n), func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	for _, name := range names[:MaxCallers-1] {
		n[name] = 0
	}
	for i := range l.Sends {
		if s := &l.Sends[i]; n[s.Caller] > 0 {
			s.Caller = Others
		}
	}
}
