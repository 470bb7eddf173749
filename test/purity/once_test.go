package purity

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make test runs a test of the core once: under the race detector, or, if the Makefile counts it to ALONE, without it in one of the packages
// of APART. So a test that the detector leaves out must be one of ALONE, and every package with such a test one of APART.
func TestTestsOfTheCoreRunOnce(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	makefile := string(text)
	alone := regexp.MustCompile(strings.ReplaceAll(strings.ReplaceAll(variable(t, makefile, "ALONE"), "/($(POOLONLY))", ""), "$$", "$"))
	apart := strings.Fields(variable(t, makefile, "APART"))
	for _, use := range []string{"-run '$(ALONE)'", "-race -skip '$(ALONE)' $(CORE)"} {
		if strings.Count(makefile, use) != 1 {
			t.Errorf("the Makefile has %q %d times, want once", use, strings.Count(makefile, use))
		}
	}
	found := map[string]bool{}
	for _, dir := range directories(t, strings.Fields(variable(t, makefile, "CORE"))) {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			plain, raced := compiled(t, file), compiled(t, file, "race")
			for _, name := range tests(t, file) {
				switch {
				case !alone.MatchString(name):
					if plain && !raced {
						t.Errorf("%s of %s never runs: the race detector leaves its file out, and ALONE in the Makefile does not match it", name, dir)
					}
				case raced && !plain:
					t.Errorf("%s of %s never runs: only the race detector has its file, but ALONE in the Makefile matches it", name, dir)
				case plain && !slices.Contains(apart, dir):
					t.Errorf("%s of %s never runs: ALONE in the Makefile matches it, but APART lacks its package", name, dir)
				case plain:
					found[dir] = true
				}
			}
		}
	}
	for _, dir := range apart {
		if !found[dir] {
			t.Errorf("APART in the Makefile has %s, which is not in CORE or has no test of ALONE", dir)
		}
	}
}

// variable is the text of one in a Makefile.
func variable(t *testing.T, makefile, name string) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + name + ` *:= *((?:.*\\\n)*.*)$`).FindStringSubmatch(makefile)
	if line == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.ReplaceAll(line[1], "\\\n", " ")
}

// directories has those that package patterns mean, each as ./dir.
func directories(t *testing.T, patterns []string) []string {
	t.Helper()
	var dirs []string
	for _, pattern := range patterns {
		top, all := strings.CutSuffix(pattern, "/...")
		if !all {
			dirs = append(dirs, pattern)
			continue
		}
		err := fs.WalkDir(os.DirFS("../.."), path.Clean(top), func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() != "testdata" {
				dirs = append(dirs, "./"+p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// tests has the names of what go test runs of a file.
func tests(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name != "TestMain" && isTest.MatchString(f.Name.Name) {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

var isTest = regexp.MustCompile(`^(Test|Example|Fuzz)([^a-z]|$)`)

// compiled tells whether a file is, with tags.
func compiled(t *testing.T, file string, tags ...string) bool {
	t.Helper()
	with := build.Default
	with.BuildTags = tags
	yes, err := with.MatchFile(filepath.Split(file))
	if err != nil {
		t.Fatal(err)
	}
	return yes
}
