package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// object is one entry of a log. Only its names and numbers are ever printed.
type object map[string]any

func decode(text []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		return nil, errors.New("the JSON is broken")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value is in it")
	}
	if o == nil {
		return nil, errors.New("it is null")
	}
	return o, nil
}

// has reports whether one of the fields is present.
func (o object) has(names ...string) bool {
	for _, name := range names {
		v := o[name]
		if text, ok := v.(string); v != nil && (!ok || strings.TrimSpace(text) != "") {
			return true
		}
	}
	return false
}

// text returns the first field that is present.
func (o object) text(names ...string) string {
	for _, name := range names {
		switch v := o[name].(type) {
		case string:
			if v = strings.TrimSpace(v); v != "" {
				return v
			}
		case json.Number:
			return v.String()
		}
	}
	return ""
}

// number returns the first field that is a finite number.
func (o object) number(names ...string) (float64, bool) {
	for _, name := range names {
		text := ""
		switch v := o[name].(type) {
		case string:
			text = strings.TrimSpace(v)
		case json.Number:
			text = v.String()
		}
		if text == "" {
			continue
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n, true
		}
	}
	return 0, false
}

func (o object) yes(names ...string) bool {
	for _, name := range names {
		switch v := o[name].(type) {
		case bool:
			return v
		case string:
			return strings.EqualFold(v, "true")
		}
	}
	return false
}

// inner returns a nested object, which may also be encoded as text.
func (o object) inner(name string) object {
	switch v := o[name].(type) {
	case map[string]any:
		return v
	case string:
		if in, err := decode([]byte(v)); err == nil {
			return in
		}
	}
	return nil
}

// layouts are the time formats of logs. Times without a zone are UTC.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999-07",
	"2006-01-02 15:04:05.999999999 -0700 MST", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999-0700",
}

// moment returns the first field that is a time: a text, or seconds, milliseconds, microseconds or nanoseconds since
// 1970.
func (o object) moment(names ...string) (time.Time, bool) {
	for _, name := range names {
		if n, ok := o.number(name); ok {
			for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
				if n/unit >= 1e8 && n/unit < 1e11 {
					return time.UnixMicro(int64(n / unit * 1e6)).UTC(), true
				}
			}
			continue
		}
		text := o.text(name)
		for _, layout := range layouts {
			if t, err := time.Parse(layout, text); err == nil {
				return t.UTC(), true
			}
		}
	}
	return time.Time{}, false
}
