package golua

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// literal translates the literal of a struct or an array.
func (tr *translator) literal(x *ast.CompositeLit) string {
	t := tr.typeOf(x)
	n := slots(t)
	if _, isSlice := t.Underlying().(*types.Slice); isSlice {
		tr.fail(x, "slice literal")
	}
	vals := make([]string, n)
	tr.zeros(t, vals)
	tr.fill(x, t, vals)
	if n > 60 {
		if len(x.Elts) > 0 {
			tr.fail(x, "large literal")
		}
		return fmt.Sprintf("zeros(%d)", n)
	}
	return "{" + strings.Join(vals, ",") + "}"
}

// zeros sets vals to the zero value of a type.
func (tr *translator) zeros(t types.Type, vals []string) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); f.Name() != "_" {
				at := offset(u, i)
				tr.zeros(f.Type(), vals[at:at+slots(f.Type())])
			}
		}
	case *types.Array:
		n := slots(u.Elem())
		for i := range int(u.Len()) {
			tr.zeros(u.Elem(), vals[i*n:(i+1)*n])
		}
	case *types.Basic:
		vals[0] = "0"
		if u.Info()&types.IsString != 0 {
			vals[0] = `""`
		}
	default:
		vals[0] = "false" // not nil, which would leave a hole in the array
	}
}

func (tr *translator) fill(x *ast.CompositeLit, t types.Type, vals []string) {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for k, e := range x.Elts {
			i := k
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
				for i = 0; u.Field(i).Name() != kv.Key.(*ast.Ident).Name; i++ {
				}
			}
			f := u.Field(i)
			at := offset(u, i)
			tr.fillOne(e, f.Type(), vals[at:at+slots(f.Type())])
		}
	case *types.Array:
		n := slots(u.Elem())
		for i, e := range x.Elts {
			tr.fillOne(e, u.Elem(), vals[i*n:(i+1)*n])
		}
	}
}

func (tr *translator) fillOne(e ast.Expr, t types.Type, vals []string) {
	switch {
	case composite(t):
		if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
			tr.fill(lit, t, vals)
			return
		}
		p := tr.place(e)
		if _, isCall := ast.Unparen(e).(*ast.CallExpr); isCall {
			a := tr.temp()
			tr.hoist(e, a, p.t)
			p = place{t: a}
		}
		for k := range vals {
			vals[k] = p.slot(k)
		}
	case isBool(t):
		vals[0] = tr.toSlot(e)
	case pointee(t) != nil && tr.isFat(pointee(t)):
		tr.fail(e, "a pointer with an offset in a struct")
	default:
		vals[0] = tr.bare(e)
	}
}

// toSlot translates a boolean as it is stored in an array.
func (tr *translator) toSlot(e ast.Expr) string {
	switch s := tr.expr(e); s {
	case "true":
		return "1"
	case "false":
		return "0"
	default:
		return "(" + s + " and 1 or 0)"
	}
}
