package docs

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/sluicehq/sluice"

// Imports returns which packages of this module each of its packages imports. Tests, examples, what only builds or tests the
// module, and nested modules are left out. The root is ".".
func Imports() (map[string][]string, error) {
	graph := map[string][]string{}
	err := filepath.WalkDir(Root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(Root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(file, "go.mod"))
			if rel != "." && (nested == nil || strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"test", "testdata", "scripts", "bin", "dist", "node_modules"}, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := path.Dir(rel)
		graph[from] = append(graph[from], nil...)
		for _, spec := range parsed.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			switch {
			case to == module:
				graph[from] = append(graph[from], ".")
			case strings.HasPrefix(to, module+"/"):
				graph[from] = append(graph[from], strings.TrimPrefix(to, module+"/"))
			}
		}
		return nil
	})
	for from := range graph {
		slices.Sort(graph[from])
		graph[from] = slices.Compact(graph[from])
	}
	return graph, err
}

// Layers draws the graph: every package on the lowest level that is above all of its imports.
func Layers(graph map[string][]string) string {
	levels := map[string]int{}
	var level func(pkg string) int
	level = func(pkg string) int {
		if n, ok := levels[pkg]; ok {
			return n
		}
		n := 1
		for _, to := range graph[pkg] {
			n = max(n, level(to)+1)
		}
		levels[pkg] = n
		return n
	}
	rows := map[int][]string{}
	highest := 0
	for pkg := range graph {
		n := level(pkg)
		highest = max(highest, n)
		if pkg == "." {
			pkg = "sluice (root)"
		}
		rows[n] = append(rows[n], pkg)
	}
	var b strings.Builder
	for n := highest; n > 0; n-- {
		slices.Sort(rows[n])
		line := fmt.Sprintf("%2d ", n)
		for i, pkg := range rows[n] {
			if i > 0 {
				pkg = ", " + pkg
			}
			if len(line)+len(pkg) > 100 {
				b.WriteString(line + ",\n")
				line, pkg = "   ", strings.TrimPrefix(pkg, ", ")
			}
			if line == "   " || i == 0 {
				line += " "
			}
			line += pkg
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
