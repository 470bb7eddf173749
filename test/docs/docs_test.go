package docs

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/config"
)

var update = flag.Bool("update", false, "write the picture of the layers")

func pages(t *testing.T) []Page {
	t.Helper()
	all, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("only %d pages", len(all))
	}
	return all
}

// files are all of the repository, relative to it, with directories.
func files(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(Root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(Root, file)
		all[filepath.ToSlash(rel)] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.Path] = p.Anchors()
	}
	seen := 0
	for _, p := range all {
		prose, _ := p.Split()
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			target, anchor, _ := strings.Cut(m[1], "#")
			to := p.Path
			if target != "" {
				to = path.Join(path.Dir(p.Path), target)
				if _, err := os.Stat(filepath.Join(Root, to)); err != nil {
					t.Errorf("%s: the link %s leads nowhere", p.Path, m[1])
					continue
				}
			}
			if names, ok := anchors[to]; anchor != "" && (!ok || !names[anchor]) {
				t.Errorf("%s: the link %s: %s has no such heading", p.Path, m[1], to)
			}
		}
	}
	if seen < 200 {
		t.Errorf("only %d links were found", seen)
	}
}

// The pages of the clients are shown by package registries, where links to other files of the repository are dead.
func TestPagesOfPackagesStandAlone(t *testing.T) {
	seen := 0
	for _, p := range pages(t) {
		if dir, _ := filepath.Split(p.Path); !strings.HasPrefix(dir, "clients/") {
			continue
		}
		seen++
		for _, m := range link.FindAllStringSubmatch(p.Text, -1) {
			if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "#") {
				t.Errorf("%s: the link %s is dead outside of the repository", p.Path, m[1])
			}
		}
		const home = "https://github.com/sluicehq/sluice/blob/main/"
		for _, m := range link.FindAllStringSubmatch(p.Text, -1) {
			if at, ours := strings.CutPrefix(m[1], home); ours && !files(t)[at] {
				t.Errorf("%s: the link %s leads nowhere", p.Path, m[1])
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d pages of clients", seen)
	}
}

// Comments and hints of the program name pages too.
func TestPagesThatTheCodeNamesExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`\bdocs/[a-z-]+\.md(#[a-z0-9-]+)?`)
	all := map[string]Page{}
	for _, p := range pages(t) {
		all[p.Path] = p
	}
	seen := 0
	for file := range files(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasPrefix(file, "test/docs/") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(Root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(source, []byte("docs/")) {
			continue
		}
		for _, name := range named.FindAllString(string(source), -1) {
			seen++
			name, anchor, _ := strings.Cut(name, "#")
			if p, ok := all[name]; !ok || anchor != "" && !p.Anchors()[anchor] {
				t.Errorf("%s names %s#%s, which is not there", file, name, anchor)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d pages are named", seen)
	}
}

var (
	inTree = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.*-]+)+/?$`)
	goFile = regexp.MustCompile(`^[a-z0-9_]+\.(go|txtar|lua)$`)
)

// ofOthers are paths in other places that begin like ours.
var ofOthers = []string{"docs.yaml"}

func TestPathsExist(t *testing.T) {
	t.Parallel()
	tree, seen := files(t), 0
	names := map[string]bool{}
	for file := range tree {
		names[path.Base(file)] = true
	}
	top := map[string]bool{}
	for file := range tree {
		if first, _, below := strings.Cut(file, "/"); below {
			top[first] = true
		}
	}
	for _, p := range pages(t) {
		prose, _ := p.Split()
		for _, s := range Spans(prose) {
			s = strings.TrimPrefix(s, "./")
			first, _, _ := strings.Cut(s, "/")
			switch {
			case slices.Contains(ofOthers, s) || first == "bin" || first == "dist":
			case goFile.MatchString(s):
				seen++
				if !names[s] {
					t.Errorf("%s: there is no file %s", p.Path, s)
				}
			case inTree.MatchString(s) && top[first]:
				seen++
				if !exists(tree, s) {
					t.Errorf("%s: there is no %s", p.Path, s)
				}
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d paths were found", seen)
	}
}

// exists finds a path, also one with a star, one below internal of its store, and a transcript.
func exists(tree map[string]bool, s string) bool {
	s = strings.TrimSuffix(s, "/")
	for _, before := range []string{"", "store/redisstore/", "cmd/sluice/testdata/"} {
		if tree[before+s] {
			return true
		}
	}
	for file := range tree {
		if ok, err := path.Match(s, file); ok && err == nil {
			return true
		}
	}
	return false
}

var testName = regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)[A-Z]\w*$`)

var declared = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)`)

// functions are the names of all functions and methods, by file, and whether there are any.
func functions(t *testing.T) (byFile map[string]map[string]bool, all map[string]bool) {
	t.Helper()
	byFile, all = map[string]map[string]bool{}, map[string]bool{}
	for file := range files(t) {
		if !strings.HasSuffix(file, ".go") {
			continue
		}
		source, err := os.ReadFile(filepath.Join(Root, file))
		if err != nil {
			t.Fatal(err)
		}
		byFile[file] = map[string]bool{}
		for line := range strings.Lines(string(source)) {
			if !strings.HasPrefix(line, "func ") {
				continue
			}
			if m := declared.FindStringSubmatch(line); m != nil {
				byFile[file][m[1]], all[m[1]] = true, true
			}
		}
	}
	return byFile, all
}

func TestFunctionsExist(t *testing.T) {
	t.Parallel()
	byFile, all := functions(t)
	seen := 0
	for _, p := range pages(t) {
		prose, _ := p.Split()
		for _, s := range Spans(prose) {
			if testName.MatchString(s) {
				seen++
				if !all[s] {
					t.Errorf("%s: there is no %s", p.Path, s)
				}
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d tests were found", seen)
	}
	// `file.go`: `function`, `function`
	step := regexp.MustCompile("`([A-Za-z0-9_/]+\\.go)`: ((?:`[A-Za-z0-9_]+`(?:, )?)+)")
	seen = 0
	for _, p := range pages(t) {
		for _, m := range step.FindAllStringSubmatch(p.Text, -1) {
			for _, name := range Spans(m[2]) {
				seen++
				if !byFile[m[1]][name] {
					t.Errorf("%s: %s has no function %s", p.Path, m[1], name)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d functions were found", seen)
	}
}

// Blocks of YAML all of whose keys are fields of the configuration are configurations that can be used.
func TestConfigurationsAreRight(t *testing.T) {
	t.Parallel()
	known := fields(reflect.TypeFor[config.File]())
	env := func(string) (string, bool) { return "https://example.com", true }
	key := regexp.MustCompile(`(?m)^([A-Za-z_]+):`)
	seen := 0
	for _, p := range pages(t) {
		_, blocks := p.Split()
		for _, b := range blocks {
			keys := key.FindAllStringSubmatch(b.Text, -1)
			if b.Language != "yaml" || len(keys) == 0 || slices.ContainsFunc(keys, func(m []string) bool { return !known[m[1]] }) {
				continue
			}
			seen++
			text := regexp.MustCompile(`hash: [0-9a-f]+\.\.\.`).ReplaceAllString(b.Text, "hash: "+strings.Repeat("ab", 32))
			if strings.Contains(text, "routes:") && !strings.Contains(text, "resources:") {
				text += "resources:\n  anthropic: {provider: anthropic}\n  gemini: {provider: gemini, limits: [{name: minute, size: 60/min}]}\n"
			}
			if _, err := config.Parse(p.Path, []byte(text), env); err != nil {
				t.Errorf("%s:%d: %v", p.Path, b.Line, err)
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d configurations were found", seen)
	}
}

// fields are the names of a struct's fields in YAML.
func fields(typ reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		names[name] = true
	}
	delete(names, "")
	return names
}

// Fields of the configuration that prose names, such as `leases: expire` and `backoff.cap`, are there.
func TestFieldsExist(t *testing.T) {
	t.Parallel()
	all := map[string]bool{}
	collect(reflect.TypeFor[config.File](), all, map[reflect.Type]bool{})
	whole := fields(reflect.TypeFor[config.File]())
	setting := regexp.MustCompile(`^([a-z_]+): `)
	dotted := regexp.MustCompile(`^([a-z_]+)((?:\.(?:[a-z_]+|NAME))+)$`)
	others := []string{"error", "hint", "file", "limit"} // words of errors and bodies, and the one price that is none
	seen := 0
	for _, p := range pages(t) {
		if p.Path == "docs/glossary.md" || p.Path == "docs/scenarios.md" || p.Path == "docs/keda.md" || p.Path == "docs/kubernetes.md" {
			continue
		}
		prose, _ := p.Split()
		for _, s := range Spans(prose) {
			if m := setting.FindStringSubmatch(s); m != nil && !slices.Contains(others, m[1]) {
				seen++
				if !all[m[1]] {
					t.Errorf("%s: `%s`: the configuration has no field %s", p.Path, s, m[1])
				}
			}
			if m := dotted.FindStringSubmatch(s); m != nil && whole[m[1]] || m != nil && m[1] == "backoff" {
				seen++
				for _, name := range strings.Split(m[2], ".")[1:] {
					if name != "NAME" && !all[name] && !slices.Contains([]string{"go", "md", "json", "jsonl"}, name) {
						t.Errorf("%s: `%s`: the configuration has no field %s", p.Path, s, name)
					}
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d fields were found", seen)
	}
}

func collect(typ reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || seen[typ] {
		return
	}
	seen[typ] = true
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		if name != "" {
			names[name] = true
		}
		collect(typ.Field(i).Type, names, seen)
	}
}

// docs/acquire.md shows the layers as they are. -update writes them.
func TestLayersAreDrawn(t *testing.T) {
	graph, err := Imports()
	if err != nil {
		t.Fatal(err)
	}
	if len(graph) < 40 {
		t.Fatalf("only %d packages", len(graph))
	}
	file := filepath.Join(Root, "docs", "acquire.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(page, []byte("<!-- layers -->\n"))
	_, after, ok2 := bytes.Cut(rest, []byte("<!-- /layers -->\n"))
	if !ok || !ok2 {
		t.Fatal("docs/acquire.md has no place for the layers")
	}
	want := slices.Concat(before, []byte("<!-- layers -->\n```\n"+Layers(graph)+"```\n<!-- /layers -->\n"), after)
	if bytes.Equal(page, want) {
		return
	}
	if !*update {
		t.Fatalf("the picture of the layers in docs/acquire.md is not current: go test ./test/docs -run Layers -update\n%s", Layers(graph))
	}
	if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // a page is for everyone
		t.Fatal(err)
	}
}
