// Package purity checks that the code which decides stays free of clocks and I/O.
// It reads import declarations and selectors only, so it is quick enough to run
// with every test.
package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Module is the path that this repository's packages begin with.
const Module = "github.com/sluicehq/sluice"

// Rule is what a directory may do.
type Rule struct {
	// Dir is relative to the repository, without its subdirectories; "." is the root.
	Dir string
	// Only lists the imports allowed besides the standard library; nil allows any.
	Only []string
	// Never lists imports that are refused, with everything below them.
	Never []string
	// NoClock refuses the functions of package time that read or wait for the clock.
	NoClock bool
}

var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// Check returns what one file does against the rule, as "line: complaint".
func (r Rule) Check(name string, source any) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	complain := func(at token.Pos, format string, args ...any) {
		found = append(found, fmt.Sprintf("%d: ", files.Position(at).Line)+fmt.Sprintf(format, args...))
	}
	clockName := ""
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if !r.allows(path) {
			complain(spec.Pos(), "imports %s", path)
		}
		if path == "time" {
			clockName = "time"
			if spec.Name != nil {
				clockName = spec.Name.Name
			}
		}
	}
	if !r.NoClock || clockName == "" {
		return found, nil
	}
	if clockName == "." {
		complain(file.Name.Pos(), "imports time with a dot, which hides the clock")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		left, ok := selector.X.(*ast.Ident)
		if ok && left.Name == clockName && slices.Contains(clock, selector.Sel.Name) {
			complain(selector.Pos(), "uses time.%s", selector.Sel.Name)
		}
		return true
	})
	return found, nil
}

func (r Rule) allows(path string) bool {
	for _, never := range r.Never {
		if path == never || strings.HasPrefix(path, never+"/") {
			return false
		}
	}
	first, _, _ := strings.Cut(path, "/")
	standard := !strings.Contains(first, ".")
	return standard || r.Only == nil || slices.Contains(r.Only, path)
}
