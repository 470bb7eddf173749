package strictyaml

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Encode prints v, a pointer to a struct with yaml tags, so that [Doc.Decode] reads the same value from it. If shown
// returns another text for a path, such as one with variables, Encode prints that instead.
func Encode(v any, shown func(path, text string) (string, bool)) []byte {
	e := encoder{shown: shown}
	return e.value(reflect.ValueOf(v).Elem(), "").print()
}

type encoder struct {
	shown func(path, text string) (string, bool)
}

func (e *encoder) value(v reflect.Value, path string) *Node {
	if v.Kind() == reflect.Pointer {
		return e.value(v.Elem(), path)
	}
	if text, ok := scalar(v); ok {
		n := &Node{Kind: Scalar, Text: escape(text), Plain: v.Kind() != reflect.String}
		if s, ok := e.shown(path, text); ok {
			n.Text = s
		}
		return n
	}
	if ordered, ok := addressable(v).Interface().(Ordered); ok {
		return e.entries(ordered.Len(), path, func(i int) (string, reflect.Value) {
			key, value := ordered.Entry(i)
			return key, reflect.ValueOf(value)
		})
	}
	switch v.Kind() {
	case reflect.Struct:
		set := slices.DeleteFunc(fields(v.Type()), func(f field) bool { return f.omit && empty(v.Field(f.index)) })
		return e.entries(len(set), path, func(i int) (string, reflect.Value) { return set[i].name, v.Field(set[i].index) })
	case reflect.Map:
		values := map[string]reflect.Value{}
		for _, key := range v.MapKeys() {
			values[key.String()] = v.MapIndex(key)
		}
		keys := slices.Sorted(maps.Keys(values))
		return e.entries(len(keys), path, func(i int) (string, reflect.Value) { return keys[i], values[keys[i]] })
	case reflect.Slice, reflect.Array:
		n := &Node{Kind: List}
		for i := range v.Len() {
			n.Items = append(n.Items, e.value(v.Index(i), Index(path, i)))
		}
		return n
	}
	panic("strictyaml: cannot encode " + v.Type().String())
}

func (e *encoder) entries(n int, path string, entry func(int) (string, reflect.Value)) *Node {
	out := &Node{Kind: Mapping}
	for i := range n {
		key, value := entry(i)
		out.Entries = append(out.Entries, Entry{Key: key, Value: e.value(value, Join(path, key))})
	}
	return out
}

// addressable returns a pointer to v, or to a copy of it.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v.Addr()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

// empty reports whether a value is missing. An empty map or list is not missing.
func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice || v.Kind() == reflect.Pointer {
		return v.IsNil()
	}
	return v.IsZero()
}

// scalar returns the text of a value that is written as a scalar.
func scalar(v reflect.Value) (string, bool) {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("strictyaml: %T: %v", v.Interface(), err))
		}
		if len(text) > 0 || !hasFields(v.Type()) {
			return string(text), true
		}
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), true
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Float64:
		return formatFloat(v.Float()), true
	}
	return "", false
}

// formatFloat formats a number for YAML.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
