package golua

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"
)

// natives are the functions that runtime.lua and main.lua define by hand: names, indexes, lots, and hashes, which in Lua
// are the keys themselves.
var natives = map[string]bool{
	"flat_Names_Hold": true, "flat_Names_Find": true, "pool_Pool_find": true, "pool_Pool_enter": true, "pool_Pool_strikeOut": true, "flat_Names_Keep": true, "flat_Names_Drop": true, "flat_Names_Text": true,
	"flat_Names_Sole": true, "flat_Names_Tags": true, "flat_Names_Len": true, "flat_Mix": true,
	"flat_Index_Seek": true, "flat_Index_Add": true, "flat_Index_Remove": true, "flat_Index_Len": true,
	"flat_Tree_priority": true,
	"pool_idHash":        true, "pool_sessionHash": true, "pool_scopeHash": true, "order_LaneKey_hash": true,
	"order_Position_hash": true, "order_memberHash": true, "order_onHash": true,
	"store_Verdict_String":  true,
	"pool_Pool_callerNamed": true, "pool_Pool_mark": true, "pool_Pool_addLot": true, "pool_Pool_lotAt": true, "pool_Pool_dropLot": true, "pool_Pool_runOf": true, "pool_Pool_strikeLot": true,
}

// call translates a call, which may return several values.
func (tr *translator) call(x *ast.CallExpr) string {
	if tv := tr.prog.info.Types[x.Fun]; tv.IsType() {
		return tr.convert(x, tv.Type)
	}
	switch f := ast.Unparen(x.Fun).(type) {
	case *ast.Ident:
		switch obj := tr.prog.info.Uses[f].(type) {
		case *types.Builtin:
			return tr.builtin(x, f.Name)
		case *types.Func:
			if funcName(obj) == "pool_list" { // Lua's lists grow, but each time they do takes as long as a call
				return "{nil,nil,nil,nil}"
			}
			return fmt.Sprintf("%s(%s)", tr.need(obj), tr.args(x, obj.Signature(), nil))
		case *types.Var:
			return fmt.Sprintf("%s(%s)", name(f.Name), tr.args(x, obj.Type().Underlying().(*types.Signature), nil))
		}
	case *ast.SelectorExpr:
		if sel := tr.prog.info.Selections[f]; sel != nil {
			if sel.Kind() == types.FieldVal {
				return fmt.Sprintf("%s(%s)", tr.place(f).slot(0), tr.args(x, sel.Type().Underlying().(*types.Signature), nil))
			}
			return tr.method(x, f, sel)
		}
		obj := tr.prog.info.Uses[f.Sel].(*types.Func)
		if strings.HasPrefix(obj.Pkg().Path(), Module) {
			return fmt.Sprintf("%s(%s)", tr.need(obj), tr.args(x, obj.Signature(), nil))
		}
		return tr.library(x, obj.Pkg().Path()+"."+obj.Name())
	}
	tr.fail(x, "call of %T", x.Fun)
	return ""
}

func (tr *translator) method(x *ast.CallExpr, f *ast.SelectorExpr, sel *types.Selection) string {
	m := sel.Obj().(*types.Func).Origin()
	recv := m.Signature().Recv().Type()
	elem := recv
	if e := pointee(recv); e != nil {
		elem = e
	}
	full := typeName(elem) + "." + m.Name()
	switch full {
	case "flat.Slab.At":
		i := tr.bare(x.Args[0])
		s := tr.place(f.X).t
		return fmt.Sprintf("(%s[%s] or ld(%s, %s))", s, i, s, i)
	case "flat.Slab.New", "flat.Slab.Free", "flat.Slab.Recycle", "flat.Slab.Len", "flat.Slab.End":
		args := tr.place(f.X).t
		if len(x.Args) > 0 {
			args += ", " + tr.bare(x.Args[0])
		}
		return fmt.Sprintf("slab%s(%s)", m.Name(), args)
	case "flat.Index.Seek", "flat.Index.Add", "flat.Index.Remove", "flat.Index.Len":
		args := tr.place(f.X).t
		for _, a := range x.Args {
			args += ", " + tr.bare(a)
		}
		return fmt.Sprintf("index%s(%s)", m.Name(), args)
	case "time.Duration.Microseconds":
		return fmt.Sprintf("quo(%s, 1000)", tr.bare(f.X))
	case "time.Duration.Nanoseconds":
		return tr.expr(f.X)
	case "flat.Names.Find", "flat.Names.Keep": // most names are not given
		if a, none := tr.bare(x.Args[0]), map[string]string{"Find": `""`, "Keep": "0"}[m.Name()]; simple(a) {
			return fmt.Sprintf("(%s ~= %s and %s(%s) or 0)", a, none, tr.need(m), a)
		}
	case "store.Time.Sub":
		return fmt.Sprintf("((%s - %s) * 1000)", tr.expr(f.X), tr.expr(x.Args[0]))
	}
	if !strings.HasPrefix(m.Pkg().Path(), Module) {
		tr.fail(x, "method %s", full)
	}
	var lead []string
	if !tr.isSingle(elem) {
		// The receiver may be embedded in f.X.
		t, o := tr.receiver(f, sel, elem, pointee(recv) != nil)
		lead = append(lead, t)
		if tr.paramWidth(recv) == 2 {
			lead = append(lead, o)
		}
	}
	return fmt.Sprintf("%s(%s)", tr.need(m), tr.args(x, m.Signature(), lead))
}

// receiver translates the receiver of a method call.
func (tr *translator) receiver(f *ast.SelectorExpr, sel *types.Selection, elem types.Type, byPointer bool) (t, o string) {
	if !composite(elem) && !byPointer {
		return tr.expr(f.X), ""
	}
	p := tr.field(f.X, sel.Index()[:len(sel.Index())-1])
	if !tr.isFat(elem) && (p.c != 0 || p.o != "") {
		if !byPointer {
			return fmt.Sprintf("copy_(%s, %s, %d)", p.t, p.off(), slots(elem)), ""
		}
		tr.fail(f, "a method on a part of a record: %v", elem)
	}
	if p.t != "nil" && p.o == "" && p.c == 0 && tr.isFat(elem) {
		return p.t, "0"
	}
	return p.t, p.off()
}

// args translates arguments.
func (tr *translator) args(x *ast.CallExpr, sig *types.Signature, list []string) string {
	if len(x.Args) == 1 && sig.Params().Len() > 1 {
		return tr.expr(x.Args[0]) // f(g()) with several results of g
	}
	for i, a := range x.Args {
		t := sig.Params().At(i).Type()
		if sig.Variadic() && i >= sig.Params().Len()-1 {
			tr.fail(x, "variadic call")
		}
		switch {
		case tr.paramWidth(t) == 0:
		case composite(t):
			list = append(list, tr.handOver(a, t)...)
		case pointee(t) != nil && tr.isFat(pointee(t)):
			p, o := tr.pointer(a)
			list = append(list, p, o)
		case pointee(t) != nil:
			p, _ := tr.pointer(a)
			list = append(list, p)
		case isNil(a):
			list = append(list, "{}") // a slice
		default:
			list = append(list, tr.bare(a))
		}
	}
	return strings.Join(list, ", ")
}

// handOver passes a struct by reference: a function that changes it copies it first.
func (tr *translator) handOver(a ast.Expr, t types.Type) []string {
	p := tr.place(a)
	if tr.isFat(t) {
		return []string{p.t, p.off()}
	}
	if p.o != "" || p.c != 0 {
		return []string{fmt.Sprintf("copy_(%s, %s, %d)", p.t, p.off(), slots(t))}
	}
	return []string{p.t}
}

// convert translates a conversion. Narrower integers lose the same bits as in Go.
func (tr *translator) convert(x *ast.CallExpr, to types.Type) string {
	s := tr.expr(x.Args[0])
	from := tr.typeOf(x.Args[0])
	if !isInteger(to) {
		return s
	}
	if !isInteger(from) {
		if is(from, types.IsFloat) && !isWhole(s) {
			tr.refuse(x, "a float becomes an integer without math.Floor or math.Ceil")
		}
		return s
	}
	if call, ok := ast.Unparen(x.Args[0]).(*ast.CallExpr); ok && sizeOf(to) >= 32 {
		if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "len" && tr.prog.info.Uses[f] == types.Universe.Lookup("len") {
			return s // no list is that long
		}
	}
	bits, had := sizeOf(to), sizeOf(from)
	switch {
	case bits == 64 && isUnsigned(to) && !isUnsigned(from):
		return "u64(" + s + ")"
	case bits == 64, bits > had && (isUnsigned(from) || !isUnsigned(to)), bits == had && isUnsigned(from) == isUnsigned(to):
		return s
	case isUnsigned(to):
		return fmt.Sprintf("(%s %% %d)", s, int64(1)<<bits)
	}
	half := int64(1) << (bits - 1)
	return fmt.Sprintf("((%s + %d) %% %d - %d)", s, half, 2*half, half)
}

// isWhole reports whether a Lua expression is a whole number.
func isWhole(s string) bool {
	return strings.HasPrefix(s, "floor(") || strings.HasPrefix(s, "ceil(") || isNumber(s)
}

func (tr *translator) builtin(x *ast.CallExpr, fn string) string {
	switch fn {
	case "len":
		return tr.length(x.Args[0])
	case "min", "max":
		list := tr.all(x.Args)
		if len(list) == 2 && simple(list[0]) && simple(list[1]) {
			op := "<"
			if fn == "max" {
				op = ">"
			}
			return fmt.Sprintf("(%s %s %s and %s or %s)", list[0], op, list[1], list[0], list[1])
		}
		return fn + "(" + strings.Join(list, ", ") + ")"
	case "panic":
		return fmt.Sprintf("error(%q)", "sluice: broken: "+tr.source(x))
	}
	tr.fail(x, "builtin %s", fn)
	return ""
}

// simple reports whether a Lua expression is cheap enough to evaluate twice.
func simple(s string) bool {
	return len(s) < 24 && !strings.ContainsAny(s, "( ")
}

func (tr *translator) length(e ast.Expr) string {
	t := tr.typeOf(e)
	if a, ok := t.Underlying().(*types.Array); ok {
		return fmt.Sprint(a.Len())
	}
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		if s := tr.prog.info.Selections[sel]; s != nil {
			base := tr.typeOf(sel.X)
			if typeName(base) == "store.Spec" {
				return place{t: "cfg", c: tr.cfg.at("store.Spec."+sel.Sel.Name+".len", 1)}.slot(0)
			}
		}
	}
	return "#" + tr.expr(e)
}

// library translates calls of the standard library. It knows the few functions that the pool uses.
func (tr *translator) library(x *ast.CallExpr, fn string) string {
	switch fn {
	case "math/bits.Mul64":
		return fmt.Sprintf("0, (%s * %s)", tr.expr(x.Args[0]), tr.expr(x.Args[1]))
	case "fmt.Errorf", "errors.New", "fmt.Sprintf":
		return `"error"`
	case "slices.Sort":
		if s, ok := x.Args[0].(*ast.SliceExpr); ok {
			p := tr.place(s.X)
			return fmt.Sprintf("sortPart(%s, %s, %s)", p.t, p.off(), tr.expr(s.High))
		}
	}
	if inLua[fn] == "" {
		tr.fail(x, "function %s", fn)
	}
	return inLua[fn] + "(" + strings.Join(tr.all(x.Args), ", ") + ")"
}

// inLua are functions of the standard library that have a counterpart in Lua or in runtime.lua.
var inLua = map[string]string{
	"math.Floor": "floor", "math.Ceil": "ceil", "math/bits.Reverse16": "reverse16", "math/bits.Len64": "bitlen", "cmp.Compare": "compare",
	"cmp.Or": "firstOf", "slices.Sort": "sort", "slices.SortFunc": "sortBy", "slices.DeleteFunc": "without",
}

// all translates expressions of one Lua value each.
func (tr *translator) all(list []ast.Expr) (values []string) {
	for _, e := range list {
		values = append(values, tr.bare(e))
	}
	return values
}
