// Package golua translates a pool's state machine from Go to Lua, so that the script that decides
// in Redis is the code that decides everywhere else. It knows the part of Go that this code is
// written in and refuses the rest.
//
// Records become arrays of numbers: a struct's fields, those of embedded structs first, one after
// the other, arrays and structs within it laid out flat. A pointer is such an array and where in
// it something begins; where that is always the beginning, the array alone. All numbers are
// doubles, which hold the integers that this code allows itself; true and false in a record are 1 and 0.
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

// program is the packages with their types.
type program struct {
	fset  *token.FileSet
	info  *types.Info
	pkgs  map[string]*types.Package
	funcs map[*types.Func]*ast.FuncDecl
	std   types.Importer
	root  string
}

// load reads the packages of the module in root, each after those that it imports.
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

// Import makes the program an importer of its own packages.
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

// lookup returns a package-level object by "path.Name".
func (p *program) lookup(name string) types.Object {
	i := strings.LastIndex(name, ".")
	return p.pkgs[Module+"/"+name[:i]].Scope().Lookup(name[i+1:])
}
