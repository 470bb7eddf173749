package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

// Ordered is a mapping whose order matters. It is implemented by its pointer type.
type Ordered interface {
	// Append adds an entry and returns a pointer to its value.
	Append(key string) any
	// Entry returns the i-th key and its value.
	Entry(i int) (key string, value any)
	Len() int
}

// Expecting is implemented by types that are written as text and can describe that text.
type Expecting interface {
	Expected() string // such as "a time such as 30s"
}

// Decode reads the document into v, a pointer to a struct with yaml tags. It records what does not fit; see Err.
//
// A type with UnmarshalText is read from a scalar. If it is a struct with yaml fields as well, it may also be a
// mapping. Null stands for an empty mapping or list, as if the key were missing.
func (d *Doc) Decode(v any) {
	if d.root != nil {
		d.decode(d.root, "", reflect.ValueOf(v).Elem())
	}
}

func (d *Doc) decode(n *Node, path string, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, path, v.Elem())
		return
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok && (n.Kind == Scalar || !hasFields(v.Type())) {
		d.decodeText(n, path, text, v)
		return
	}
	if ordered, ok := v.Addr().Interface().(Ordered); ok {
		d.decodeEntries(n, path, v, func(key string) reflect.Value { return reflect.ValueOf(ordered.Append(key)).Elem() }, func(string, reflect.Value) {})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.decodeStruct(n, path, v)
	case reflect.Map:
		if n.Kind == Mapping {
			v.Set(reflect.MakeMap(v.Type()))
		}
		d.decodeEntries(n, path, v, func(string) reflect.Value { return reflect.New(v.Type().Elem()).Elem() },
			func(key string, value reflect.Value) { v.SetMapIndex(reflect.ValueOf(key), value) })
	case reflect.Slice, reflect.Array:
		d.decodeList(n, path, v)
	default:
		d.decodeScalar(n, path, v)
	}
}

func (d *Doc) decodeStruct(n *Node, path string, v reflect.Value) {
	if n.Kind == Null {
		return
	}
	if n.Kind != Mapping {
		d.mismatch(n, path, v)
		return
	}
	names := fields(v.Type())
	for _, e := range n.Entries {
		i := slices.IndexFunc(names, func(f field) bool { return f.name == e.Key })
		if i < 0 {
			d.fail(e.Line, e.Column, path, fmt.Sprintf("unknown field %.80q", e.Key)).Hint(suggest(e.Key, names))
			continue
		}
		d.decode(e.Value, Join(path, e.Key), v.Field(names[i].index))
	}
}

func (d *Doc) decodeEntries(n *Node, path string, v reflect.Value, add func(string) reflect.Value, put func(string, reflect.Value)) {
	if n.Kind != Mapping && n.Kind != Null {
		d.mismatch(n, path, v)
	}
	for _, e := range n.Entries {
		value := add(e.Key)
		d.decode(e.Value, Join(path, e.Key), value)
		put(e.Key, value)
	}
}

func (d *Doc) decodeList(n *Node, path string, v reflect.Value) {
	if n.Kind == Null {
		return
	}
	if n.Kind != List || v.Kind() == reflect.Array && len(n.Items) != v.Len() {
		d.mismatch(n, path, v)
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	}
	for i, item := range n.Items {
		d.decode(item, Index(path, i), v.Index(i))
	}
}

// decodeText reads a type with UnmarshalText. If variables were replaced, the error quotes the text in the file,
// because the values of variables may be secret.
func (d *Doc) decodeText(n *Node, path string, text encoding.TextUnmarshaler, v reflect.Value) {
	if n.Kind != Scalar {
		d.mismatch(n, path, v)
		return
	}
	err := text.UnmarshalText([]byte(n.Text))
	if err == nil {
		return
	}
	hint := ""
	if n.expanded {
		hint = heldBack
		if err = text.UnmarshalText([]byte(n.source)); err == nil {
			v.SetZero()
			err = errors.New(d.Shown(path, "") + " does not fit here")
		}
	}
	message := err.Error()
	if mistake, ok := errors.AsType[*Mistake](err); ok {
		message, hint = mistake.Message, mistake.Hint
	}
	d.fail(n.Line, n.Column, path, message).Hint(hint)
}

// Mistake is an error about a text that comes with a hint.
type Mistake struct{ Message, Hint string }

func (m *Mistake) Error() string { return m.Message + "; " + m.Hint }

var (
	wholeNumber   = lazyregexp.New(`^[-+]?(0|[1-9][0-9_]*)$`)
	decimalNumber = lazyregexp.New(`^[-+]?[0-9][0-9_]*(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

func (d *Doc) decodeScalar(n *Node, path string, v reflect.Value) {
	if n.Kind == Null {
		d.fail(n.Line, n.Column, path, "there is no value").Hint("give it one, or remove the line")
		return
	}
	bare := n.Plain || n.expanded
	text := n.Text
	if n.Kind != Scalar || v.Kind() != reflect.String && !bare {
		d.mismatch(n, path, v)
		return
	}
	switch v.Kind() {
	case reflect.String:
		if n.Plain && !n.expanded && isBool(text) {
			d.mismatch(n, path, v)
			return
		}
		v.SetString(text)
	case reflect.Bool:
		if !isBool(text) {
			d.mismatch(n, path, v)
			return
		}
		v.SetBool(strings.EqualFold(text, "true"))
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		switch {
		case !wholeNumber.MatchString(text):
			d.mismatch(n, path, v)
		case err != nil || v.OverflowInt(i):
			d.fail(n.Line, n.Column, path, "this number is too large")
		default:
			v.SetInt(i)
		}
	case reflect.Float64:
		f, ok := parseFloat(text)
		if !ok {
			d.mismatch(n, path, v)
			return
		}
		v.SetFloat(f)
	default:
		panic("strictyaml: cannot decode into " + v.Type().String())
	}
}

func isBool(s string) bool {
	return slices.Contains([]string{"true", "True", "TRUE", "false", "False", "FALSE"}, s)
}

func parseFloat(s string) (float64, bool) {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".nan":
		return math.NaN(), true
	case ".inf":
		return math.Inf(1 - 2*strings.Count(s[:1], "-")), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil && decimalNumber.MatchString(s)
}

// mismatch records that a node is not of the kind that v needs.
func (d *Doc) mismatch(n *Node, path string, v reflect.Value) {
	hint := ""
	switch {
	case n.expanded:
		hint = heldBack
	case n.Kind != Scalar:
	case v.Kind() == reflect.String && isBool(n.Text):
		hint = "put it in quotes"
	case v.Kind() == reflect.Slice && expected(v) == "a list":
		hint = "put it in [ ]"
	case !n.Plain && v.Kind() != reflect.String && decimalNumber.MatchString(n.Text):
		hint = "remove the quotes"
	}
	d.fail(n.Line, n.Column, path, "this has to be "+expected(v)).Hint(hint)
}

const heldBack = "this is about what the variable holds, which is not shown"

// expected describes what v holds, without Go's terms.
func expected(v reflect.Value) string {
	if e, ok := v.Addr().Interface().(Expecting); ok {
		return e.Expected()
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		if _, ordered := v.Addr().Interface().(Ordered); !ordered {
			return "a list"
		}
		return "a mapping by name"
	case reflect.Array:
		return fmt.Sprintf("a list of %d", v.Len())
	case reflect.Map:
		return "a mapping by name"
	}
	return "a mapping of fields"
}
