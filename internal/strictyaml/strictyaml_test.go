package strictyaml

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

type thing struct {
	Text  string           `yaml:"text,omitempty"`
	Whole int              `yaml:"whole,omitempty"`
	Part  float64          `yaml:"part,omitempty"`
	Truth *bool            `yaml:"truth,omitempty"`
	List  []string         `yaml:"list,omitempty"`
	Pair  [2]int64         `yaml:"pair,omitempty"`
	Map   map[string]thing `yaml:"map,omitempty"`
	Ours  int              `yaml:"-"`
}

func decode(src string, env func(string) (string, bool)) (thing, error) {
	var v thing
	d, err := Parse("x.yaml", "thing", []byte(src))
	if err != nil {
		return v, err
	}
	if env != nil {
		d.Expand(env)
	}
	d.Decode(&v)
	return v, d.Err()
}

func TestDecode(t *testing.T) {
	t.Parallel()
	yes := true
	for src, want := range map[string]thing{
		"":                                  {},
		"# nothing\n":                       {},
		"%YAML 1.2\n---\ntext: a\n":         {Text: "a"},
		"text: 1.10\n":                      {Text: "1.10"},
		"text: mem:\n":                      {Text: "mem:"},
		"text: mem:  # a comment\nwhole: 1": {Text: "mem:", Whole: 1},
		"text: 'it''s'\n":                   {Text: "it's"},
		"text: |\n  a\n  b\n":               {Text: "a\nb\n"},
		"whole: 1_000\n":                    {Whole: 1000},
		"whole: -5\n":                       {Whole: -5},
		"part: 1e3\n":                       {Part: 1000},
		"part: -.inf\n":                     {Part: math.Inf(-1)},
		"part: 3\n":                         {Part: 3},
		"truth: true\n":                     {Truth: &yes},
		"pair: [1, 2]\n":                    {Pair: [2]int64{1, 2}},
		"list: [a, 5]\n":                    {List: []string{"a", "5"}},
		"list:\nmap: ~\n":                   {},
		"list: []\nmap: {}\n":               {List: []string{}, Map: map[string]thing{}},
		"map: {a.b: {text: x}, \"*\": }\n":  {Map: map[string]thing{"a.b": {Text: "x"}, "*": {}}},
		"map: {a: &x {text: t}, b: *x}\n":   {Map: map[string]thing{"a": {Text: "t"}, "b": {Text: "t"}}},
	} {
		got, err := decode(src, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", src, got, err, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"whole: 1.9":                   `1:8: whole: this has to be a whole number`,
		"whole: 3.0":                   `1:8: whole: this has to be a whole number`,
		"whole: 1e3":                   `1:8: whole: this has to be a whole number`,
		"whole: 0x10":                  `1:8: whole: this has to be a whole number`,
		"whole: 010":                   `1:8: whole: this has to be a whole number`,
		"whole: \"1\"":                 `1:8: whole: this has to be a whole number; remove the quotes`,
		"whole: true":                  `1:8: whole: this has to be a whole number`,
		"whole: 9223372036854775808":   `1:8: whole: this number is too large`,
		"part: .5.5":                   `1:7: part: this has to be a number`,
		"part: 0x1p4":                  `1:7: part: this has to be a number`,
		"part: 1e999":                  `1:7: part: this has to be a number`,
		"truth: yes":                   `1:8: truth: this has to be true or false`,
		"text: true":                   `1:7: text: this has to be text; put it in quotes`,
		"text:":                        `1:1: text: there is no value; give it one, or remove the line`,
		"text: {}":                     `1:7: text: this has to be text`,
		"list: a":                      `1:7: list: this has to be a list; put it in [ ]`,
		"pair: [1]":                    `1:7: pair: this has to be a list of 2`,
		"map: [a]":                     `1:6: map: this has to be a mapping by name`,
		"map: {a: 5}":                  `1:10: map.a: this has to be a mapping of fields`,
		"map: {a.b: {whole: x}}":       `1:20: map["a.b"].whole: this has to be a whole number`,
		"whoel: 1":                     `1:1: unknown field "whoel"; did you mean "whole"?`,
		"Ours: 1":                      `1:1: unknown field "Ours"; the fields here are text, whole, part, truth, list, pair, map`,
		"text: a\ntext: b":             `2:1: text: this is there already, on line 1`,
		"text: a\n'text': b":           `2:1: text: this is there already, on line 1`,
		"map: {a: {<<: {text: b}}}":    `1:11: map.a: merge keys (<<) have no meaning here: write the fields out`,
		"text: !!str 5":                `1:7: text: tags such as !!str have no meaning here`,
		"text: *a":                     `1:7: text: there is no anchor &a before this`,
		"list: &a [*a]":                `1:11: list[0]: there is no anchor &a before this`,
		"text: a\n---\ntext: b":        `3:1: there is a second document in it: a file holds one thing`,
		"text: a: b":                   `1:7: mapping value is not allowed in this context; look at the indentation of this line and the one before`,
		"a":                            `1:1: this has to be a mapping of fields`,
		"text: \x1b[31m":               `1:7: there is a control character here, or a byte that is not UTF-8`,
		"whole: a\npart: b\ntext: [a]": "1:8: whole: this has to be a whole number\nx.yaml:2:7: part: this has to be a number\nx.yaml:3:7: text: this has to be text",
	} {
		_, err := decode(src, nil)
		if err == nil || err.Error() != "x.yaml:"+want {
			t.Errorf("%q:\ngot  %v\nwant x.yaml:%s", src, err, want)
		}
		var pe *ParseError
		if !errors.As(err, &pe) {
			t.Errorf("%q: %T is no ParseError", src, err)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) {
		value, set := map[string]string{"A": "alpha", "N": "7", "EMPTY": "", "D": "$A ${A} $$"}[name]
		return value, set
	}
	for src, want := range map[string]thing{
		"text: ${A}":                  {Text: "alpha"},
		"text: x${A}y${A}":            {Text: "xalphayalpha"},
		"text: $${A}":                 {Text: "${A}"},
		"text: $$$${A}":               {Text: "$${A}"},
		"text: $$${A}":                {Text: "$alpha"},
		"text: ${B:-beta}":            {Text: "beta"},
		"text: x${B:-}":               {Text: "x"},
		"text: x${EMPTY}":             {Text: "x"},
		"text: ${EMPTY:-$}":           {Text: "$"},
		"text: '${A}' # ${B}":         {Text: "alpha"},
		"text: ${D}":                  {Text: "$A ${A} $$"},
		"whole: ${N}":                 {Whole: 7},
		"whole: '${N}'":               {Whole: 7},
		"list: ['${A}']":              {List: []string{"alpha"}},
		"map: {'${A}': {whole: 1}}":   {Map: map[string]thing{"${A}": {Whole: 1}}},
		"list: [&a '$$${A}', *a, *a]": {List: []string{"$alpha", "$alpha", "$alpha"}},
	} {
		got, err := decode(src, env)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", src, got, err, want)
		}
	}
	for src, want := range map[string]string{
		"text: ${B}":    "the variable B is not set; set it, or give it a default: ${B:-...}",
		"text: $A":      "a lone $",
		"text: a$":      "a lone $",
		"text: ${A":     "a lone $",
		"text: ${A-b}":  "a lone $",
		"text: ${}":     "a lone $",
		"text: ${1}":    "a lone $",
		"whole: ${A}":   "this has to be a whole number; this is about what the variable holds",
		"list: ${A}":    "this has to be a list; this is about what the variable holds",
		"map: '${A}'":   "this has to be a mapping by name; this is about what the variable holds",
		"whole: ${N}.9": "this has to be a whole number; this is about what the variable holds",
	} {
		if _, err := decode(src, env); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "alpha") {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	no := false
	v := thing{
		Text: "a: ${b} # \"c\"\n", Part: 0.1, Truth: &no, List: []string{"true", "5", "", "x y", "- a", "ü", "\u2028", "null", "1e3", "mem:", "a:b", "~"},
		Map: map[string]thing{"b": {}, "a.c": {List: []string{}, Map: map[string]thing{}}, "*": {Pair: [2]int64{1, -2}}, "true": {Text: "x"}},
	}
	printed := Encode(&v, func(string, string) (string, bool) { return "", false })
	got, err := decode(string(printed), func(string) (string, bool) { return "", false })
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%s\nreads as %+v, %v", printed, got, err)
	}
	if printed := Encode(&thing{}, nil); string(printed) != "{}\n" {
		t.Errorf("got %s", printed)
	}
}

// Input that would make the YAML parser slow is refused first, or is small enough.
func TestNothingTakesLong(t *testing.T) {
	t.Parallel()
	const n = MaxFile / 4
	var keys strings.Builder
	for i := 0; keys.Len() < n-20; i++ {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	for what, src := range map[string]string{
		"dashes": strings.Repeat("- ", n/2), "few dashes": strings.Repeat("- ", maxTokens/2), "questions": strings.Repeat("? ", n/2),
		"anchors": "a: " + strings.Repeat("&a ", n/4), "tags": "a: " + strings.Repeat("!a ", n/4), "colons": strings.Repeat("a: ", n/3),
		"same keys": strings.Repeat("a:\n", n/3), "keys": keys.String(), "commas": "a: [" + strings.Repeat(",", n-5) + "]",
		"brackets": strings.Repeat("[", n), "closed brackets": strings.Repeat("[", n/2) + strings.Repeat("]", n/2), "braces": strings.Repeat("{}", n/2),
		"lists": strings.Repeat("[] ", n/3), "flow": "a: {" + strings.Repeat("b,", n/2-4) + "}", "quotes": strings.Repeat("'", n), "spaces": strings.Repeat(" ", n),
		"one line": "text: " + strings.Repeat("x", n-10), "comments": strings.Repeat("#\n", n/2), "documents": strings.Repeat("---\n", n/4),
		"dollars": "text: '" + strings.Repeat("$$", n/2-10) + "'", "variables": "text: '" + strings.Repeat("${A}", n/4-10) + "'",
		"too much": strings.Repeat("x", MaxFile+1), "as much as can be": strings.Repeat("a: ", MaxFile/3),
	} {
		began := time.Now()
		_, err := decode(src, func(string) (string, bool) { return strings.Repeat("y", 100), true })
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: took %v (%.80v)", what, took, err)
		}
		if err != nil && len(err.Error()) > 10_000 {
			t.Errorf("%s: the message has %d bytes", what, len(err.Error()))
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		2 * time.Minute: "2m", 90 * time.Minute: "1h30m", time.Hour: "1h", 48 * time.Hour: "2d", 10 * time.Second: "10s", 1500 * time.Millisecond: "1.5s",
		10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s", 25 * time.Hour: "25h", 0: "0s",
	} {
		got := FormatDuration(d)
		if again, err := ParseDuration(got); got != want || err != nil || again != d {
			t.Errorf("%v: got %s, which reads as %v, %v; want %s", d, got, again, err, want)
		}
	}
}
