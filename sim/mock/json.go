package mock

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// obj is a JSON object whose fields keep their order, so that answers are the same byte for byte.
type obj []field

type field struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o obj) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(f.name))
		b.WriteByte(':')
		b.Write(encode(f.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode is the compact JSON of a value, with < and > as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("mock: %v", err)) // every value is made here, or was read as JSON before
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// compact is JSON text without the white space that means nothing.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
