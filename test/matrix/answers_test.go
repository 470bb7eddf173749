//go:build linux

package matrix_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// says is the answer of every model. A client that shows less of it has lost something.
const says = "Nineteen grey herons crossed the flooded meadow before noon, and none of them looked back at the broken weir."

// check judges what a client's program printed.
func (b *bench) check(out string) error {
	want := says
	if b.want != "" {
		want = b.want
	}
	if b.agent {
		if !strings.Contains(letters(out), letters(want)) {
			return fmt.Errorf("%s does not print the answer but\n%s", b.name, tail(out))
		}
		return nil
	}
	answers := map[string]int{}
	for line := range strings.Lines(out) {
		var a struct{ Kind, Text string }
		if json.Unmarshal([]byte(line), &a) != nil || a.Kind == "" {
			continue // a library may print lines of its own
		}
		if a.Text != want {
			return fmt.Errorf("%s: an answer, %s, is %q", b.name, a.Kind, a.Text)
		}
		answers[a.Kind]++
	}
	calls := callsAtOnce
	if b.kind == inHeld {
		calls = 1
	}
	if answers["whole"] != calls || !b.whole && answers["streamed"] != calls {
		return fmt.Errorf("%s has the answers %v, %d of each kind were to come", b.name, answers, calls)
	}
	return nil
}

// colors matches what programs send to terminals.
var colors = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// letters are those of a text: agents break lines and add marks.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, colors.ReplaceAllString(text, ""))
}
