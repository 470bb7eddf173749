// Package golua translates the state machine of a pool from Go to Lua, so that the same code decides in Redis and
// everywhere else. It knows the part of Go that this code is written in, and refuses the rest.
//
// A record becomes an array of numbers: the fields of a struct in order, those of embedded structs first, with arrays and
// structs inside it laid out flat. A pointer is such an array and an offset into it; the offset is left out for types that
// always begin at 0. All numbers are doubles, which hold the integers that this code uses exactly. Booleans in a record
// are 1 and 0.
//
// [Generate] drives the translation. The files expr.go, call.go and literal.go translate expressions, stmt.go and
// control.go statements. layout.go decides where fields are, and file.go makes the output shorter.
package golua

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the path of the module whose packages are translated.
const Module = "github.com/sluicehq/sluice"

// program is the loaded packages with their types.
type program struct {
	fset  *token.FileSet
	info  *types.Info
	pkgs  map[string]*types.Package
	funcs map[*types.Func]*ast.FuncDecl
	std   types.Importer
	root  string
}

// load parses and checks packages of the module in root, and those that they import.
func load(root string, paths ...string) (*program, error) {
	p := &program{
		fset: token.NewFileSet(), pkgs: map[string]*types.Package{}, funcs: map[*types.Func]*ast.FuncDecl{}, root: root,
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}, Implicits: map[ast.Node]types.Object{},
		},
	}
	if build.Default.GOROOT == "" { // the test was built with -trimpath
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, err
		}
		build.Default.GOROOT = strings.TrimSpace(string(out))
	}
	p.std = importer.ForCompiler(p.fset, "source", nil)
	for _, path := range paths {
		if _, err := p.Import(Module + "/" + path); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Import implements [types.Importer].
func (p *program) Import(path string) (*types.Package, error) {
	if pkg := p.pkgs[path]; pkg != nil {
		return pkg, nil
	}
	rel, ours := strings.CutPrefix(path, Module+"/")
	if !ours {
		return p.std.Import(path)
	}
	names, err := filepath.Glob(filepath.Join(p.root, filepath.FromSlash(rel), "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: p, Sizes: types.SizesFor("gc", "amd64")}
	pkg, err := conf.Check(path, p.fset, files, p.info)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p.pkgs[path] = pkg
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				p.funcs[p.info.Defs[fn.Name].(*types.Func)] = fn
			}
		}
	}
	return pkg, nil
}

// lookup returns the package-level object "path.Name".
func (p *program) lookup(name string) types.Object {
	i := strings.LastIndex(name, ".")
	return p.pkgs[Module+"/"+name[:i]].Scope().Lookup(name[i+1:])
}
