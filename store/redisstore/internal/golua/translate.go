package golua

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// translator translates the roots and all functions that they call.
type translator struct {
	prog   *program
	inner  map[*types.TypeName]bool // see findInner
	todo   []*types.Func
	seen   map[*types.Func]bool
	cfg    cfgLayout
	slabs  map[string]types.Type // the record types, by the name of the slab
	single map[string]types.Type // the types of records that a pool has one of
	kinds  map[string]byte       // the kinds of results, by function

	out        bytes.Buffer
	indent     int
	fn         *types.Func
	curSig     *types.Signature
	curResults *ast.FieldList
	temps      int
	copied     map[types.Object]bool // struct parameters that the function has copied
	loops      []*loop
	inCond     int // inside the right side of and/or, which may not be evaluated
	refused    []error
}

type loop struct {
	wraps bool   // the body is a repeat ... until true, which continue leaves
	brk   string // the variable that break sets in such a body

	inSwitch bool // inside a switch in the loop: break would leave the switch
}

func (tr *translator) fail(n ast.Node, format string, args ...any) {
	panic(fmt.Errorf("%s: %s", tr.prog.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

// refuse records that something would not be exact in Lua. All such places are reported together at the end.
func (tr *translator) refuse(n ast.Node, format string, args ...any) {
	if err := fmt.Errorf("%s: %s", tr.prog.fset.Position(n.Pos()), fmt.Sprintf(format, args...)); !slices.ContainsFunc(tr.refused, func(e error) bool { return e.Error() == err.Error() }) {
		tr.refused = append(tr.refused, err)
	}
}

// source returns the position of a node in the Go source.
func (tr *translator) source(n ast.Node) string {
	at := tr.prog.fset.Position(n.Pos())
	if rel, err := filepath.Rel(tr.prog.root, at.Filename); err == nil {
		at.Filename = filepath.ToSlash(rel)
	}
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

func (tr *translator) line(format string, args ...any) {
	tr.out.WriteString(strings.Repeat(" ", tr.indent))
	fmt.Fprintf(&tr.out, format, args...)
	tr.out.WriteByte('\n')
}

func (tr *translator) temp() string {
	tr.temps++
	return fmt.Sprintf("t%d_", tr.temps)
}

// hoist computes expr into new variables before the current statement.
func (tr *translator) hoist(n ast.Node, names, expr string) {
	if tr.inCond > 0 {
		tr.fail(n, "would be computed although it may not be needed")
	}
	tr.line("local %s = %s", names, expr)
}

func (tr *translator) typeOf(e ast.Expr) types.Type { return tr.prog.info.Types[e].Type }

// place is where a value is stored: its slot k is t[o+c+k+1].
type place struct {
	t, o string
	c    int
}

func (p place) slot(k int) string {
	if p.o == "" {
		return fmt.Sprintf("%s[%d]", p.t, p.c+k+1)
	}
	return fmt.Sprintf("%s[%s+%d]", p.t, p.o, p.c+k+1)
}

func (p place) off() string {
	switch {
	case p.o == "":
		return fmt.Sprint(p.c)
	case p.c == 0:
		return p.o
	default:
		return fmt.Sprintf("%s+%d", p.o, p.c)
	}
}

func (p place) add(c int) place { p.c += c; return p }

var keywords = map[string]bool{"in": true, "end": true, "repeat": true, "until": true, "then": true, "local": true, "function": true,
	"nil": true, "not": true, "and": true, "or": true, "do": true, "while": true, "elseif": true, "true": true, "false": true,
	"min": true, "max": true, "floor": true, "once": true, "counts": true, "sum": true, "past": true, "cfg": true, "call": true, "copy": true, "bit": true,
	"struct": true, "step": true, "quo": true, "next": true, "type": true, "string": true, "table": true, "math": true, "pairs": true, "select": true, "unpack": true, "now": true}

func name(s string) string {
	if keywords[s] {
		return s + "_"
	}
	return s
}

// translate translates the roots and all functions that they call.
func (tr *translator) translate(roots ...*types.Func) {
	for _, f := range roots {
		tr.need(f)
	}
	for len(tr.todo) > 0 {
		f := tr.todo[0]
		tr.todo = tr.todo[1:]
		tr.function(f)
	}
}

func (tr *translator) need(f *types.Func) string {
	f = f.Origin()
	n := funcName(f)
	if _, isNative := natives[n]; !isNative && !tr.seen[f] {
		tr.seen[f] = true
		tr.todo = append(tr.todo, f)
	}
	return "F." + n
}

// funcName names a function by its package, type and name.
func funcName(f *types.Func) string {
	n := f.Pkg().Name() + "_"
	if recv := f.Signature().Recv(); recv != nil {
		t := recv.Type()
		if e := pointee(t); e != nil {
			t = e
		}
		n += types.Unalias(t).(*types.Named).Obj().Name() + "_"
	}
	return n + f.Name()
}

func (tr *translator) function(f *types.Func) {
	decl := tr.prog.funcs[f]
	if decl == nil || decl.Body == nil {
		panic(fmt.Errorf("%v cannot be translated and is not built in", f.FullName()))
	}
	tr.fn, tr.temps = f, 0
	tr.curSig, tr.curResults = f.Signature(), decl.Type.Results
	var fields []*ast.Field
	if decl.Recv != nil {
		fields = append(fields, decl.Recv.List...)
	}
	fields = append(fields, decl.Type.Params.List...)
	tr.kinds[funcName(f)] = tr.resultKind(f.Signature())
	tr.line("F.%s = function(%s) -- %s", funcName(f), tr.params(fields), tr.source(decl))
	tr.indent++
	tr.entry(fields, decl.Type.Results, decl.Body)
	tr.block(decl.Body.List)
	if tr.namedResults(decl.Type.Results) && !endsInReturn(decl.Body.List) {
		tr.line("return %s", tr.resultNames(decl.Type.Results))
	}
	tr.indent--
	tr.line("end")
}

func (tr *translator) params(fields []*ast.Field) string {
	var names []string
	for _, f := range fields {
		t := tr.typeOf(f.Type)
		if len(f.Names) == 0 && tr.paramWidth(t) > 0 {
			names = append(names, tr.temp())
		}
		for _, id := range f.Names {
			n := name(id.Name)
			switch tr.paramWidth(t) {
			case 1:
				names = append(names, n)
			case 2:
				names = append(names, n, n+"_o")
			}
		}
	}
	return strings.Join(names, ", ")
}

// paramWidth is width for a parameter: structs are passed by reference, with an offset where one is needed.
func (tr *translator) paramWidth(t types.Type) int {
	if composite(t) && !tr.isSingle(t) {
		if tr.isFat(t) {
			return 2
		}
		return 1
	}
	return tr.width(t)
}

// entry copies struct parameters that the function changes, and declares named results.
func (tr *translator) entry(fields []*ast.Field, results *ast.FieldList, body *ast.BlockStmt) {
	if tr.copied == nil {
		tr.copied = map[types.Object]bool{}
	}
	for _, f := range fields {
		t := tr.typeOf(f.Type)
		if !composite(t) || tr.isSingle(t) {
			continue
		}
		for _, id := range f.Names {
			if obj := tr.prog.info.Defs[id]; tr.isChanged(obj, body) {
				n := name(id.Name)
				o := "0"
				if tr.isFat(t) {
					o = n + "_o"
				}
				tr.line("%s = copy_(%s, %s, %d)", n, n, o, slots(t))
				tr.copied[obj] = true
			}
		}
	}
	if results == nil {
		return
	}
	for _, f := range results.List {
		for _, id := range f.Names {
			if id.Name != "_" {
				tr.declareZero(name(id.Name), tr.typeOf(f.Type))
			}
		}
	}
}

// isChanged reports whether a function assigns to a parameter or to parts of it.
func (tr *translator) isChanged(obj types.Object, body *ast.BlockStmt) (changed bool) {
	base := func(e ast.Expr) types.Object {
		for {
			switch x := e.(type) {
			case *ast.SelectorExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.Ident:
				return tr.prog.info.Uses[x]
			default:
				return nil
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for _, l := range x.Lhs {
				changed = changed || base(l) == obj
			}
		case *ast.IncDecStmt:
			changed = changed || base(x.X) == obj
		}
		return true
	})
	return changed
}

func (tr *translator) namedResults(r *ast.FieldList) bool {
	return r != nil && len(r.List) > 0 && len(r.List[0].Names) > 0
}

func (tr *translator) resultNames(r *ast.FieldList) string {
	var list []string
	for _, f := range r.List {
		t := tr.typeOf(f.Type)
		for _, id := range f.Names {
			list = append(list, name(id.Name))
			if tr.width(t) == 2 && !composite(t) {
				list = append(list, name(id.Name)+"_o")
			}
		}
	}
	return strings.Join(list, ", ")
}

func (tr *translator) declareZero(n string, t types.Type) {
	if tr.width(t) == 2 && !composite(t) {
		tr.line("local %s, %s_o", n, n)
	} else {
		tr.line("local %s = %s", n, tr.zero(t))
	}
}

func (tr *translator) zero(t types.Type) string {
	switch {
	case composite(t):
		n := slots(t)
		if n > 60 {
			return fmt.Sprintf("zeros(%d)", n)
		}
		vals := make([]string, n)
		tr.zeros(t, vals)
		return "{" + strings.Join(vals, ",") + "}"
	case isBool(t):
		return "false"
	case isString(t):
		return `""`
	}
	switch t.Underlying().(type) {
	case *types.Basic:
		return "0"
	case *types.Slice:
		return "{}"
	}
	return "nil"
}

func endsInReturn(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	_, ok := list[len(list)-1].(*ast.ReturnStmt)
	return ok
}

// constantOf returns a constant as Lua.
func constantOf(v constant.Value) string {
	switch v.Kind() {
	case constant.Bool:
		return v.String()
	case constant.String:
		return fmt.Sprintf("%q", constant.StringVal(v))
	}
	if i, ok := constant.Int64Val(constant.ToInt(v)); ok && i > -1<<53 && i < 1<<53 {
		return fmt.Sprint(i)
	}
	f, _ := constant.Float64Val(v)
	return fmt.Sprintf("%.17g", f)
}

func (tr *translator) isConst(e ast.Expr) (string, bool) {
	if tv := tr.prog.info.Types[e]; tv.Value != nil {
		s := constantOf(tv.Value)
		if strings.HasPrefix(s, "-") {
			s = "(" + s + ")"
		}
		return s, true
	}
	return "", false
}
