package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Fragments may use these packages without an import, and these names without a declaration. Pages introduce them in the text.
var imported = []string{
	"context", "log", "net/http", "testing", "time",
	module, module + "/config", module + "/deadletter", module + "/provider", module + "/retry", module + "/sluicehttp", module + "/store/storetest",
}

const given = `
var (
	ctx         context.Context
	gate        *sluice.Gate
	dialect     provider.Dialect
	limits      []sluice.Limit
	resources   map[string]sluice.Resource
	letters     *sluicehttp.Letters
	httpReq     *http.Request
	send        func(context.Context, sluice.Ticket) (sluice.Answer, error)

	// in CONTRIBUTING.md
	open, openMemstore func(*testing.T) storetest.Harness
)
`

// Checker checks Go code of pages against the packages of this module, as the compiler sees them.
type Checker struct {
	fset     *token.FileSet
	importer types.Importer
	packages []*types.Package // of this module, without tests and commands
}

// NewChecker reads what the compiler exports of every package, in one call of the go command.
func NewChecker() (*Checker, error) {
	graph, err := Imports()
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "context", "log", "net/http", "testing", "time"}
	var own []string
	for dir := range graph {
		if !strings.HasPrefix(dir, "cmd/") {
			own = append(own, path.Join(module, dir))
		}
	}
	slices.Sort(own)
	cmd := exec.Command("go", append(args, own...)...)
	cmd.Dir = Root
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, said.String())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[pkg] = file
	}
	c := &Checker{fset: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.fset, "gc", func(pkg string) (io.ReadCloser, error) {
		if exports[pkg] == "" {
			return nil, fmt.Errorf("package %s is neither in this module nor among those that fragments may use", pkg)
		}
		return os.Open(exports[pkg])
	})
	for _, name := range own {
		pkg, err := c.importer.Import(name)
		if err != nil {
			return nil, err
		}
		c.packages = append(c.packages, pkg)
	}
	return c, nil
}

// Check type-checks one block. A block that begins with a package clause is a whole file and has to compile as it is. Anything else
// is a fragment: imports, then declarations or statements. It may use the imported packages and given names, and need not use what it
// declares.
func (c *Checker) Check(page string, b Block) error {
	if strings.HasPrefix(b.Text, "package ") {
		file, err := parser.ParseFile(c.fset, "", fmt.Sprintf("//line %s:%d:1\n%s", page, b.Line, b.Text), parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		return c.types(false, file)
	}
	var head, body strings.Builder
	line := b.Line
	for text := range strings.Lines(b.Text) {
		if body.Len() == 0 && (strings.HasPrefix(text, "import ") || strings.TrimSpace(text) == "") {
			fmt.Fprintf(&head, "//line %s:%d:1\n%s", page, line, text)
		} else {
			body.WriteString(text)
		}
		line++
	}
	line -= strings.Count(body.String(), "\n")
	head.WriteString("\n")
	for _, pkg := range imported {
		if !strings.Contains(head.String(), `import "`+pkg+`"`) {
			fmt.Fprintf(&head, "import %q\n", pkg)
		}
	}
	before := fmt.Sprintf("package page\n%s//line %s:%d:1\n", head.String(), page, line)
	fragment, err := parser.ParseFile(c.fset, "", before+body.String(), parser.SkipObjectResolution)
	if err != nil {
		before = strings.TrimSuffix(before, fmt.Sprintf("//line %s:%d:1\n", page, line))
		fragment, err = parser.ParseFile(c.fset, "", fmt.Sprintf("%sfunc _() {\n//line %s:%d:1\n%s}\n", before, page, line, body.String()), parser.SkipObjectResolution)
	}
	if err != nil {
		return err
	}
	var names bytes.Buffer
	names.WriteString("package page\n")
	for _, pkg := range imported {
		fmt.Fprintf(&names, "import %q\n", pkg)
	}
	names.WriteString(given)
	around, err := parser.ParseFile(c.fset, "given.go", names.Bytes(), parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	return c.types(true, around, fragment)
}

// types checks the files of one package. With unused, it may declare and import what it does not use.
func (c *Checker) types(unused bool, files ...*ast.File) error {
	var all []error
	config := types.Config{Importer: c.importer, Error: func(err error) {
		if of := (types.Error{}); !unused || !errors.As(err, &of) || !of.Soft {
			all = append(all, err)
		}
	}}
	_, _ = config.Check("page", c.fset, files, nil) // Error has all of its errors
	return errors.Join(all...)
}

// Missing returns what is wrong with a name such as config.Load, Gate.Acquire or sluicehttp.Letters.Do: empty if it exists, or if it
// does not begin with a package or an exported type of this module.
func (c *Checker) Missing(name string) string {
	first, rest, _ := strings.Cut(name, ".")
	second, third, _ := strings.Cut(rest, ".")
	var known bool
	for _, pkg := range c.packages {
		var object types.Object
		if pkg.Name() == first {
			object = pkg.Scope().Lookup(second)
			if known = true; object != nil && (third == "" || has(object, third)) {
				return ""
			}
		}
		if object = pkg.Scope().Lookup(first); object != nil && object.Exported() {
			if _, is := object.(*types.TypeName); is {
				if known = true; has(object, second) {
					return ""
				}
			}
		}
	}
	if known {
		return "there is no " + name
	}
	return ""
}

// has tells whether a type has an exported field or method.
func has(typ types.Object, member string) bool {
	found, _, _ := types.LookupFieldOrMethod(typ.Type(), true, typ.Pkg(), member)
	return found != nil && found.Exported()
}
