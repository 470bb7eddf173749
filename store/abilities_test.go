package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/store"
)

// All optional interfaces of pools are in Abilities: a pool that wraps another would hide any others.
func TestAbilitiesAreAll(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found, want []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && strings.Contains(d.Doc.Text(), "implemented by pools") {
				found = append(found, d.Specs[0].(*ast.TypeSpec).Name.Name)
			}
			return true
		})
	}
	for i := range reflect.TypeFor[store.Abilities]().NumField() {
		want = append(want, reflect.TypeFor[store.Abilities]().Field(i).Name)
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("pools can be %v, Abilities has %v", found, want)
	}
}
