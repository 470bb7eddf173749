package mock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// obj is a JSON object whose fields keep their order, so that responses are deterministic.
type obj []field

type field struct {
	name  string
	value any
}

// encode returns the compact JSON of a value. It does not escape < and >.
func encode(v any) []byte { return appendJSON(nil, v) }

// appendJSON appends the JSON of a value. The types used in responses need no reflection.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case json.RawMessage:
		return append(b, compact(v)...)
	case obj:
		b = append(b, '{')
		for i, f := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, f.name)
			b = append(b, ':')
			b = appendJSON(b, f.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, one)
		}
		return append(b, ']')
	case string:
		if plain(v) {
			b = append(b, '"')
			b = append(b, v...)
			return append(b, '"')
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("mock: %v", err)) // every value is made in this package or was parsed as JSON before
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// plain reports whether a string needs no JSON escapes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// compact returns JSON text without insignificant white space.
func compact(raw json.RawMessage) []byte {
	if bytes.IndexFunc(raw, func(c rune) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }) < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
