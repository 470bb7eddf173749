package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The first transcript of the README shows what happens when its lines are typed into a shell.
func TestReadmeTranscript(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```console\n")
	block, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the README has no transcript")
	}
	steps := typed(block)
	if len(steps) < 5 {
		t.Fatalf("%d commands in the README's transcript", len(steps))
	}
	unhurry(t, steps)
	dir := t.TempDir()
	var script strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&script, "{ %s\n} > out%d 2>&1\n", s.command, i)
	}
	archive := "env LANG=C.UTF-8\nenv XDG_STATE_HOME=$WORK/state\nenv SLUICE_CONFIG=\nenv SLUICE_STORE=\nexec bash session.sh\n"
	for i := range steps {
		archive += fmt.Sprintf("cp out%d %s\n", i, filepath.Join(dir, fmt.Sprint(i)))
	}
	archive += "-- session.sh --\n" + script.String()
	file := filepath.Join(dir, "readme.txtar")
	if err := os.WriteFile(file, []byte(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("session", func(t *testing.T) {
		testscript.Run(t, testscript.Params{Files: []string{file}, Deadline: time.Now().Add(scriptsWithin)})
	})
	for i, s := range steps {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		got = bytes.ReplaceAll(got, []byte("reading the store takes long\n"), nil) // on a busy machine
		if !pattern(s.output).Match(got) {
			t.Errorf("$ %s\nprints\n%s\nThe README says\n%s", s.command, got, s.output)
		}
	}
}

// unhurry makes the transcript independent of how fast the machine starts processes: half as many ask, at a tenth of
// the rate, and the session continues when enough of them wait.
func unhurry(t *testing.T, steps []step) {
	t.Helper()
	changes := []string{
		"size: 5/s,", "size: 5/10s,",
		"$(seq 20)", "$(seq 10)",
		"sluice acquire search-api", "sluice acquire search-api --wait 10m",
		"done; done; sleep 1", `done; done; until [ "$(sluice why --json | grep -c '"ticket":')" -ge 6 ]; do sleep 0.1; done`,
	}
	found := 0
	for i := range steps {
		for k := 0; k < len(changes); k += 2 {
			found += strings.Count(steps[i].command, changes[k])
		}
		steps[i].command = strings.NewReplacer(changes...).Replace(steps[i].command)
	}
	if 2*found != len(changes) {
		t.Fatalf("the README's transcript is another one: %d of %d parts are there", found, len(changes)/2)
	}
}

// step is a command and what it prints.
type step struct{ command, output string }

// typed reads a transcript: "$ " begins a command, "> " continues it until output follows.
func typed(block string) (steps []step) {
	for line := range strings.Lines(block) {
		last := len(steps) - 1
		switch {
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, step{command: strings.TrimSuffix(line[2:], "\n")})
		case strings.HasPrefix(line, "> ") && last >= 0 && steps[last].output == "":
			steps[last].command += "\n" + strings.TrimSuffix(line[2:], "\n")
		case last >= 0:
			steps[last].output += line
		}
	}
	return steps
}

var number = regexp.MustCompile(`[0-9]+`)

// pattern matches an output in which numbers, tickets, bars and the width of columns may differ, and
// "..." stands for more lines.
func pattern(output string) *regexp.Regexp {
	var words []string
	// Which of the two has used more is chance, and on a slow machine one of them may have taken all there was.
	output = strings.ReplaceAll(output, "a, b", "HOLDERS")
	// An agent that has waited for a second is limited.
	output = strings.ReplaceAll(output, "p2     waiting", "p2     WAITS")
	for _, word := range strings.Fields(output) {
		switch {
		case word == "HOLDERS":
			word = `[ab](,\s+[ab])?`
		case word == "WAITS":
			word = "(waiting|limited)"
		case word == "...":
			word = `[\s\S]*`
		case strings.ContainsAny(word, "█░▏▎▍▌▋▊▉"), strings.HasPrefix(word, "file:"), strings.HasPrefix(word, "search-api."):
			word = `\S+`
		case word == "a" || word == "b":
			word = "[ab]"
		default:
			word = number.ReplaceAllString(regexp.QuoteMeta(word), `[0-9]+`)
		}
		words = append(words, word)
	}
	return regexp.MustCompile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
}
