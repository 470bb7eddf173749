// Command systems type-checks Go code, tests included, for other systems than this one:
//
//	systems windows/amd64,darwin/arm64 ./...
//
// It compiles nothing: a compiler would need all of Go's library for each system first, which takes a minute.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "error: systems and packages are needed\nhint: systems windows/amd64,darwin/arm64 ./...")
		os.Exit(2)
	}
	failed := false
	for system := range strings.SplitSeq(os.Args[1], ",") {
		said, err := check(system, os.Args[2:])
		if err != nil {
			said = append(said, err.Error())
		}
		for _, text := range said {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %s\n", system, text)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the errors of packages on a system.
func check(system string, patterns []string) (said []string, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	goos, arch, _ := strings.Cut(system, "/")
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(set *token.FileSet, name string, src []byte) (*ast.File, error) {
			if strings.HasPrefix(name, here+string(filepath.Separator)) {
				return parser.ParseFile(set, name, src, parser.AllErrors)
			}
			f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
			if f != nil {
				hollow(f)
			}
			return f, err
		},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, p := range loaded {
		if strings.HasSuffix(p.ID, ".test") { // go test makes its program itself
			continue
		}
		for _, e := range p.Errors {
			if text := e.Error(); !seen[text] {
				seen[text] = true
				said = append(said, text)
			}
		}
	}
	return said, nil
}

// hollow takes the bodies out of functions of others: what they are called with is all that matters.
func hollow(f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			fn.Body = nil
		}
	}
}
