//go:build linux

package matrix_test

import (
	"fmt"
	"strings"
	"testing"
)

// A wrong, empty or missing answer fails the suite.
func TestAWrongAnswerFails(t *testing.T) {
	t.Parallel()
	line := func(kind, text string) string { return fmt.Sprintf("{\"kind\":%q,\"text\":%q}\n", kind, text) }
	half := says[:len(says)/2]
	all := strings.Repeat(line("whole", says)+line("streamed", says), callsAtOnce)
	for name, test := range map[string]struct {
		agent bool
		out   string
		good  bool
	}{
		"all answers":      {out: "a line of its own\n" + all, good: true},
		"an empty answer":  {out: strings.Replace(all, says, "", 1)},
		"half an answer":   {out: strings.Replace(all, says, half, 1)},
		"no stream":        {out: strings.Repeat(line("whole", says), callsAtOnce)},
		"one too few":      {out: strings.Replace(all, line("whole", says), "", 1)},
		"nothing":          {},
		"an agent":         {agent: true, out: "\x1b[1m> " + strings.ReplaceAll(says, " ", "\n ") + "\x1b[0m", good: true},
		"half of an agent": {agent: true, out: half},
		"a silent agent":   {agent: true, out: "done\n"},
	} {
		b := &bench{setup: &setup{name: name, agent: test.agent}, kind: inRun}
		if err := b.check(test.out); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
