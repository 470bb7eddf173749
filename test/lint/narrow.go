package main

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// narrowed is a check that says nothing of tests, which look at errors as they are and drop those of what they set up, and of lines that
// end with `//nolint:NAME // reason`, as golangci-lint has it.
func narrowed(a *analysis.Analyzer) *analysis.Analyzer {
	b := *a
	b.Run = func(pass *analysis.Pass) (any, error) {
		silent := silenced(pass, a.Name)
		inner := *pass
		inner.Report = func(d analysis.Diagnostic) {
			at := pass.Fset.Position(d.Pos)
			if !strings.HasSuffix(at.Filename, "_test.go") && !silent[lineOf(at)] {
				pass.Report(d)
			}
		}
		return a.Run(&inner)
	}
	return &b
}

type line struct {
	file string
	n    int
}

func lineOf(p token.Position) line { return line{p.Filename, p.Line} }

// silenced are the lines on which a check is silent.
func silenced(pass *analysis.Pass, name string) map[line]bool {
	lines := map[line]bool{}
	for _, f := range pass.Files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				names, ok := strings.CutPrefix(c.Text, "//nolint:")
				if !ok {
					continue
				}
				names, _, _ = strings.Cut(names, " ")
				for n := range strings.SplitSeq(names, ",") {
					if n == name {
						lines[lineOf(pass.Fset.Position(c.Pos()))] = true
					}
				}
			}
		}
	}
	return lines
}
