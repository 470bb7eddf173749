package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ParseError says where a file is wrong.
type ParseError struct {
	File         string
	Line, Column int    // from 1; 0: the file as a whole
	Field        string // such as agents[2].class; may be empty
	Message      string
	Hint         string // what to do about it; may be empty
	Excerpt      string // the lines around it with a mark; may be empty
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Errors has all errors in a file, in the order of the file.
type Errors []*ParseError

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, pe := range e {
		lines[i] = pe.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each error visible to errors.As, the first one first.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, pe := range e {
		all[i] = pe
	}
	return all
}

// Note is a recorded error, to which details can be added.
type Note struct {
	mistake *ParseError
	doc     *Doc
}

// Hint adds what to do about it.
func (n Note) Hint(text string) { n.mistake.Hint = text }

// Hide keeps its line out of all excerpts, because the line may contain a secret.
func (n Note) Hide() Note {
	n.doc.hide(n.mistake.Line)
	return n
}

// maxErrors is how many errors are reported at once. A file with more is probably not of this kind at all.
const maxErrors = 20

// sorted sorts errors in the order of the file, in which people correct them.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *ParseError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e[:min(len(e), maxErrors)]
}
