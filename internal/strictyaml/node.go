package strictyaml

import (
	"fmt"
	"regexp"
	"strings"
)

// Kind is what a node is.
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
	Text         string // of a scalar, variables replaced
	Plain        bool   // the scalar stands without quotes
	Entries      []Entry
	Items        []*Node

	source   string // of a scalar whose variables were replaced: its text before that
	expanded bool
}

// Entry is a key of a mapping and its value.
type Entry struct {
	Key          string
	Line, Column int // of the key
	Value        *Node
}

// Doc is a file's structure, and what was found to be wrong with it.
type Doc struct {
	file string
	src  []byte
	root *Node // nil: there is nothing in the file
	at   map[string]*Node
	keys map[string]*Entry // by the path of their value
	errs Errors

	hidden map[int]bool // lines that no excerpt shows
}

// Empty reports whether there is nothing in the file.
func (d *Doc) Empty() bool { return d.root == nil }

// Root is the document's value; nil if there is none.
func (d *Doc) Root() *Node { return d.root }

// Has reports whether the file states the field at path.
func (d *Doc) Has(path string) bool { return d.at[path] != nil && d.at[path].Kind != Null }

// Err returns what is wrong, as [Errors]; nil if nothing is.
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

// Secret hides the lines of all values that may be secret, as is tells by path and text.
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

// Fail notes that the field at path is wrong. A field that is not there is shown where it
// belongs.
func (d *Doc) Fail(path, format string, args ...any) Note {
	line, column := 0, 0
	for at := path; at != ""; at = parent(at) {
		if n := d.at[at]; n != nil {
			line, column = n.Line, n.Column
			break
		}
	}
	return d.fail(line, column, path, fmt.Sprintf(format, args...))
}

// FailKey notes that the key at path is wrong itself.
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

// failure is a mistake that ends the reading.
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

// Shown quotes the text of the field at path for a message: as it stands in the file, so
// that no message holds what a variable does.
func (d *Doc) Shown(path, text string) string {
	if n := d.at[path]; n != nil && n.expanded {
		text = n.source
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return fmt.Sprintf("%q", text)
}

var simpleKey = regexp.MustCompile(`^[A-Za-z0-9_*-]+$`)

// Join is the path of a mapping's key.
func Join(path, key string) string {
	if !simpleKey.MatchString(key) {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index is the path of a list's item.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parent is the path of what contains the field at path.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// Source returns the text of the field at path as it stands in the file, if variables were
// replaced in it.
func (d *Doc) Source(path string) (string, bool) {
	n := d.at[path]
	if n == nil || !n.expanded {
		return "", false
	}
	return n.source, true
}
