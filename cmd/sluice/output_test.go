package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Regression: a result that could not be written was reported as a usage error (64), or as a success.
func TestUnwritableOutputIsNoUsageError(t *testing.T) {
	for _, args := range [][]string{
		{"simulate"}, {"simulate", "--json"}, {"simulate", "overnight"}, {"simulate", "overnight", "--json"},
		{"version"}, {"version", "--json"},
	} {
		var stderr bytes.Buffer
		if code := run(args, fullDisk{}, &stderr); code != exitInternal || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit code %d, want %d; it said %q", args, code, exitInternal, stderr.String())
		}
	}
}

// Regression: an excerpt of a bad file was shown with its escape codes.
func TestExcerptOfBadFileSteersNoTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(file, []byte("name: x\nk\x1b]0;pwned\x07: \x9b31m\u009b31m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"simulate", file}, &stdout, &stderr); code != exitConfig {
		t.Errorf("exit code %d, want %d", code, exitConfig)
	}
	if said := stderr.String(); !utf8.ValidString(said) || strings.ContainsAny(said, "\x1b\x07\u009b") || !strings.Contains(said, "pwned") {
		t.Errorf("it said %q", said)
	}
}
