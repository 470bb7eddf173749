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

// Errors is everything that is wrong with a file, in the order of the file.
type Errors []*ParseError

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, pe := range e {
		lines[i] = pe.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each of them visible to errors.As, the first one first.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, pe := range e {
		all[i] = pe
	}
	return all
}

// Note is a mistake that was noted, to say more about it.
type Note struct {
	mistake *ParseError
	doc     *Doc
}

// Hint says what to do about it.
func (n Note) Hint(text string) { n.mistake.Hint = text }

// Hide keeps its line from being shown, here and with every other mistake: there may be a secret
// in it.
func (n Note) Hide() Note {
	n.doc.hide(n.mistake.Line)
	return n
}

// maxErrors is how many mistakes are told at once: a file with more of them is something
// else altogether.
const maxErrors = 20

// sorted brings errors into the order of the file, which is the order in which one
// corrects them.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *ParseError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e[:min(len(e), maxErrors)]
}
