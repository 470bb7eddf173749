package purity

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// No rule ran Codex, the stream that is held for three minutes, or the demo: a test with the tag slow runs only if a rule asks for it.
func TestSlowTestsAreRunByARule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]*regexp.Regexp{} // by package: the tests that rules run of it
	run := regexp.MustCompile(`-run ('[^']*'|\S+)`)
	for _, line := range regexp.MustCompile(`(?m)^\t.* test .*-tags slow.*$`).FindAllString(string(text), -1) {
		which := regexp.MustCompile("")
		if m := run.FindStringSubmatch(line); m != nil {
			which = regexp.MustCompile(strings.Trim(m[1], "'"))
		}
		for word := range strings.FieldsSeq(line) {
			if strings.HasPrefix(word, "./") {
				rules[word] = append(rules[word], which)
			}
		}
	}
	seen := 0
	err = fs.WalkDir(os.DirFS("../.."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || p == "bin" || p == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		file := filepath.Join("../..", p)
		if !strings.HasSuffix(p, "_test.go") || compiled(t, file) || !compiled(t, file, "slow") {
			return nil
		}
		for _, name := range tests(t, file) {
			seen++
			if !slices.ContainsFunc(rules["./"+path.Dir(p)], func(r *regexp.Regexp) bool { return r.MatchString(name) }) {
				t.Errorf("%s of %s never runs: no rule of the Makefile asks for it", name, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d tests with the tag slow", seen)
	}
}
