package strictyaml

import (
	"fmt"
	"strings"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

// Kind is the kind of a node.
type Kind uint8

// The kinds of node.
const (
	Null Kind = iota // a key with nothing after it
	Scalar
	Mapping
	List
)

// Node is a value in a file.
type Node struct {
	Kind         Kind
	Line, Column int
	Text         string // for a scalar, with variables replaced
	Plain        bool   // the scalar has no quotes
	Entries      []Entry
	Items        []*Node

	source   string // for a scalar with replaced variables: its text before that
	expanded bool
}

// Entry is a key of a mapping and its value.
type Entry struct {
	Key          string
	Line, Column int // of the key
	Value        *Node
}

// Doc is the structure of a file, and the errors found in it.
type Doc struct {
	file string
	src  []byte
	root *Node // nil: the file is empty
	at   map[string]*Node
	keys map[string]*Entry // by the path of their value
	errs Errors

	hidden map[int]bool // lines that no excerpt shows
}

// Empty reports whether there is nothing in the file.
func (d *Doc) Empty() bool { return d.root == nil }

// Root returns the document's value, or nil if it is empty.
func (d *Doc) Root() *Node { return d.root }

// Has reports whether the file states the field at path.
func (d *Doc) Has(path string) bool { return d.at[path] != nil && d.at[path].Kind != Null }

// Err returns the recorded errors as [Errors], or nil.
func (d *Doc) Err() error {
	if len(d.errs) == 0 {
		return nil
	}
	told := d.errs.sorted()
	for _, e := range told {
		e.Excerpt = excerpt(d.src, e.Line, e.Column, d.hidden)
	}
	return told
}

// Secret hides the lines of all values for which is returns true.
func (d *Doc) Secret(is func(path, text string) bool) {
	for path, n := range d.at {
		if n.Kind == Scalar && is(path, n.Text) {
			d.hide(n.Line)
		}
	}
}

func (d *Doc) hide(line int) {
	if d.hidden == nil {
		d.hidden = map[int]bool{}
	}
	d.hidden[line] = true
}

// Fail records an error about the field at path. An error about a missing field is shown at its parent.
func (d *Doc) Fail(path, format string, args ...any) Note {
	line, column := d.where(path)
	return d.fail(line, column, path, fmt.Sprintf(format, args...))
}

// At returns an error about the field at path, without recording it. Its message is empty: it is for what is checked after
// the file was read.
func (d *Doc) At(path string) *ParseError {
	line, column := d.where(path)
	return &ParseError{File: d.file, Line: line, Column: column, Field: path, Excerpt: excerpt(d.src, line, column, d.hidden)}
}

// where returns the place of a field, or else of its parent.
func (d *Doc) where(path string) (line, column int) {
	for at := path; at != ""; at = parent(at) {
		if n := d.at[at]; n != nil {
			return n.Line, n.Column
		}
	}
	return 0, 0
}

// FailKey records an error about the key at path itself.
func (d *Doc) FailKey(path, format string, args ...any) Note {
	e := d.keys[path]
	if e == nil {
		return d.Fail(path, format, args...)
	}
	return d.fail(e.Line, e.Column, path, fmt.Sprintf(format, args...))
}

func (d *Doc) fail(line, column int, path, message string) Note {
	pe := &ParseError{File: d.file, Line: line, Column: column, Field: path, Message: Mask(message)}
	d.errs = append(d.errs, pe)
	return Note{pe, d}
}

// failure returns an error that ends the reading.
func (d *Doc) failure(line, column int, path, message string) *ParseError {
	return &ParseError{File: d.file, Line: line, Column: column, Field: path, Message: Mask(message), Excerpt: excerpt(d.src, line, column, nil)}
}

func (d *Doc) line(n int) []byte {
	lines := strings.SplitAfterN(string(d.src), "\n", n+1)
	if n < 1 || n > len(lines) {
		return nil
	}
	return []byte(lines[n-1])
}

// Shown quotes the text of the field at path for a message. It shows the text in the file, so that no message
// contains the value of a variable.
func (d *Doc) Shown(path, text string) string {
	if n := d.at[path]; n != nil && n.expanded {
		text = n.source
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return fmt.Sprintf("%q", text)
}

var simpleKey = lazyregexp.New(`^[A-Za-z0-9_*-]+$`)

// Join returns the path of a key in a mapping.
func Join(path, key string) string {
	if !simpleKey.MatchString(key) {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of an item in a list.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parent returns the path of the value that contains the field at path.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// Source returns the text of the field at path as it is in the file, if variables were replaced in it.
func (d *Doc) Source(path string) (string, bool) {
	n := d.at[path]
	if n == nil || !n.expanded {
		return "", false
	}
	return n.source, true
}
