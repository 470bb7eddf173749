package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file. The YAML parser's time grows with the square of its tokens, and its memory with the square of
// their nesting. So both are checked first.
const (
	MaxFile    = 256 << 10
	maxTokens  = 20_000
	maxNesting = 100
)

// Read reads a file with the given name. what describes it in messages, such as "scenario".
func Read(name, what string, r io.Reader) ([]byte, error) {
	src, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, err
	}
	return src, checkSize(name, what, src)
}

func checkSize(name, what string, src []byte) error {
	if len(src) > MaxFile {
		return &ParseError{File: name, Message: fmt.Sprintf("a %s is at most %d bytes long", what, MaxFile)}
	}
	return nil
}

// Parse parses the structure of a file. For an empty file it returns a document whose Empty reports true.
func Parse(name, what string, src []byte) (*Doc, error) {
	if err := checkSize(name, what, src); err != nil {
		return nil, err
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	d := &Doc{file: name, src: src, at: map[string]*Node{}, keys: map[string]*Entry{}}
	if line, column, ok := plainText(src); !ok {
		return nil, d.failure(line, column, "", "there is a control character here, or a byte that is not UTF-8")
	}
	if nested(src) > maxNesting {
		return nil, &ParseError{File: name, Message: "its brackets are nested too deeply"}
	}
	tokens := keepLastColon(lexer.Tokenize(string(src)))
	if len(tokens) > maxTokens {
		return nil, &ParseError{File: name, Message: fmt.Sprintf("there is too much in it: %d words and signs, at most %d", len(tokens), maxTokens)}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, d.syntax(err)
	}
	body, err := d.only(file, what)
	if err != nil || body == nil {
		return d, err
	}
	b := builder{doc: d, anchors: map[string]ast.Node{}}
	d.root = b.node(body, "", 0)
	return d, d.Err()
}

// only returns the single document of a file, or nil if the file is empty.
func (d *Doc) only(file *ast.File, what string) (ast.Node, error) {
	var body ast.Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.CommentGroupNode, *ast.DirectiveNode:
			continue
		}
		if body != nil {
			line, column := start(doc.Body)
			return nil, d.failure(line, column, "", "there is a second document in it: a file holds one "+what)
		}
		body = doc.Body
	}
	return body, nil
}

// plainText finds the first character that does not belong in a text file. It could also do harm when an excerpt is
// printed.
func plainText(src []byte) (line, column int, ok bool) {
	line, column = 1, 1
	for len(src) > 0 {
		r, size := utf8.DecodeRune(src)
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && size == 1, unicode.IsControl(r) && r != '\t' && r != '\r':
			return line, column, false
		}
		src, column = src[size:], column+1
	}
	return 0, 0, true
}

// nested returns how deeply brackets are nested. It also counts brackets in text.
func nested(src []byte) int {
	depth, most := 0, 0
	for _, c := range src {
		switch c {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}

// keepLastColon lets a value end in a colon: "store: mem:". YAML gives it no meaning, but it looks like a URL.
func keepLastColon(all token.Tokens) token.Tokens {
	kept := make(token.Tokens, 0, len(all))
	for i, tk := range all {
		colon := tk.Type == token.MappingValueType && i >= 3 &&
			all[i-1].Type == token.StringType && all[i-2].Type == token.MappingValueType &&
			all[i-3].Position.Line == tk.Position.Line && endsLine(all, i)
		if !colon {
			kept = append(kept, tk)
			continue
		}
		value := all[i-1]
		value.Value += tk.Value
		value.Origin += tk.Origin
		value.Next = tk.Next
		if tk.Next != nil {
			tk.Next.Prev = value
		}
	}
	return kept
}

// endsLine reports whether only a comment, or nothing, follows a token on its line.
func endsLine(all token.Tokens, i int) bool {
	return i+1 == len(all) || all[i+1].Type == token.CommentType || all[i+1].Position.Line > all[i].Position.Line
}

// syntax converts an error of the YAML parser into one of ours.
func (d *Doc) syntax(err error) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return &ParseError{File: d.file, Message: err.Error()}
	}
	line, column := place(ye.GetToken())
	pe := d.failure(line, column, "", ye.GetMessage())
	at := string(d.line(line))
	switch {
	case strings.HasPrefix(strings.TrimSpace(at), "*"):
		pe.Hint = `a key that begins with * needs quotes: "*"`
	case strings.Contains(at, "${"):
		pe.Hint = `inside [ ] and { } a variable needs quotes: "${NAME}"`
	case strings.HasPrefix(strings.TrimLeft(at, " "), "\t"):
		pe.Message, pe.Hint = "there is a tab at the beginning of this line", "indent with spaces"
	case strings.Contains(pe.Message, "in this context") || strings.HasPrefix(pe.Message, "unexpected key"):
		pe.Hint = "look at the indentation of this line and the one before"
	}
	return pe
}

// place returns the position of a token.
func place(tk *token.Token) (line, column int) {
	if tk == nil || tk.Position == nil {
		return 0, 0
	}
	return tk.Position.Line, tk.Position.Column
}
