package strictyaml

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// FuzzDecode reads arbitrary texts. An error says what is wrong and where, and contains no variable. A decoded value
// is printed so that it reads the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"text: a\nwhole: 1_000\npart: .inf\ntruth: true\nlist: [a, 5]\npair: [1, 2]\n", "map: {a: &x {text: t}, b: *x}\n", "text: |\n  a\n  b\n", "text: mem:\n",
		"whole: 1.9\n", "whole: 1\nwhole: 2\n", "a: 1\n---\nb: 2\n", "text: ${NAME}\n", "whole: ${NAME}\n", "\ttext: a\n", "map:\n  <<: *x\n", "text: \"\\u00e9\\x07\"\n", "{", "? a\n: b\n",
		"map: {\"*\": {text: \"${NAME:-x}\"}}",
	} {
		f.Add(s)
	}
	const secret = "s3cr3t-value"
	f.Fuzz(func(t *testing.T, src string) {
		began := time.Now()
		v, err := decode(src, func(name string) (string, bool) { return secret, name == "NAME" })
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("took %v", took)
		}
		if err != nil {
			if !strings.Contains(src, secret) && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a variable: %v", err)
			}
			checkError(t, src, err)
			return
		}
		text := Encode(&v, func(string, string) (string, bool) { return "", false })
		var again thing
		d, err := Parse("x.yaml", "thing", text)
		if err != nil {
			t.Fatalf("%q is printed as %q, and that: %v", src, text, err)
		}
		d.Expand(func(string) (string, bool) { return "", false })
		d.Decode(&again)
		if err := d.Err(); err != nil || !same(v, again) {
			t.Errorf("%q is printed as %q, which reads %+v, was %+v, %v", src, text, again, v, err)
		}
	})
}

// same compares what was read: an empty list is as good as none, and NaN is NaN.
func same(a, b thing) bool {
	return bytes.Equal(Encode(&a, func(string, string) (string, bool) { return "", false }), Encode(&b, func(string, string) (string, bool) { return "", false })) ||
		reflect.DeepEqual(a, b)
}

// checkError looks at all that is wrong with a text.
func checkError(t *testing.T, src string, err error) {
	t.Helper()
	var list Errors
	var one *ParseError
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = Errors{one}
	default:
		t.Fatalf("an error of another kind: %v", err)
	}
	lines := strings.Count(strings.ReplaceAll(src, "\r", "\n"), "\n") + 2
	for _, e := range list {
		if e.Message == "" || e.Line < 0 || e.Line > lines || e.Column < 0 {
			t.Errorf("%q: %+v", src, e)
		}
	}
}

// Infinite numbers were printed as text, which is not a number.
func TestEndlessNumbersReadTheSame(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e300, -0.5} {
		text := Encode(&thing{Part: f}, func(string, string) (string, bool) { return "", false })
		v, err := decode(string(text), nil)
		if err != nil || v.Part != f && !(math.IsNaN(f) && math.IsNaN(v.Part)) {
			t.Errorf("%v is printed as %q, which reads %v, %v", f, text, v.Part, err)
		}
	}
}
