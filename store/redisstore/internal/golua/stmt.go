package golua

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

func (tr *translator) block(list []ast.Stmt) {
	for i, s := range list {
		last := i == len(list)-1
		tr.stmt(s, last)
	}
}

func (tr *translator) nested(list []ast.Stmt) {
	tr.indent++
	tr.block(list)
	tr.indent--
}

func (tr *translator) stmt(s ast.Stmt, last bool) {
	switch x := s.(type) {
	case *ast.ExprStmt:
		tr.exprStmt(x)
	case *ast.AssignStmt:
		tr.assign(x)
	case *ast.IncDecStmt:
		op := token.ADD
		if x.Tok == token.DEC {
			op = token.SUB
		}
		tr.update(x.X, op, "1")
	case *ast.DeclStmt:
		tr.decl(x)
	case *ast.IfStmt:
		tr.ifStmt(x)
	case *ast.ForStmt:
		tr.forStmt(x)
	case *ast.RangeStmt:
		tr.rangeStmt(x)
	case *ast.SwitchStmt:
		tr.switchStmt(x)
	case *ast.ReturnStmt:
		tr.returnStmt(x, last)
	case *ast.BranchStmt:
		tr.branch(x, last)
	case *ast.BlockStmt:
		tr.line("do")
		tr.nested(x.List)
		tr.line("end")
	case *ast.EmptyStmt:
	default:
		tr.fail(s, "statement %T", s)
	}
}

func (tr *translator) exprStmt(x *ast.ExprStmt) {
	s := tr.expr(x.X)
	if strings.HasPrefix(s, "(") || strings.HasPrefix(s, "\"") { // not a call, which alone can be a statement in Lua
		tr.line("local _ = %s", s)
		return
	}
	if m := dropOf.FindStringSubmatch(s); m != nil && simple(m[1]) { // most names are not given
		tr.line("if %s ~= 0 then", m[1])
		tr.line(" %s", s)
		tr.line("end")
		return
	}
	tr.line("%s", s)
}

var dropOf = regexp.MustCompile(`^F\.flat_Names_Drop\((.*)\)$`)

func (tr *translator) decl(x *ast.DeclStmt) {
	g := x.Decl.(*ast.GenDecl)
	if g.Tok != token.VAR {
		return // constants and types need no code
	}
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i, id := range v.Names {
			t := tr.prog.info.Defs[id].Type()
			if i < len(v.Values) {
				tr.define(id, t, v.Values[i])
				continue
			}
			tr.declareZero(name(id.Name), t)
		}
	}
}

// define declares a variable with a value.
func (tr *translator) define(id *ast.Ident, t types.Type, value ast.Expr) {
	if names := tr.names(id, t); len(names) > 0 {
		tr.line("local %s = %s", strings.Join(names, ", "), strings.Join(tr.values(value, t, true), ", "))
	}
}

// names returns the Lua variables that stand for a Go variable.
func (tr *translator) names(id *ast.Ident, t types.Type) []string {
	n := name(id.Name)
	return []string{n, n + "_o"}[:tr.retWidth(t)]
}

// values returns the Lua values of an expression of type t. With last, a call may stand for several of them.
func (tr *translator) values(e ast.Expr, t types.Type, last bool) []string {
	_, isCall := ast.Unparen(e).(*ast.CallExpr)
	switch {
	case tr.retWidth(t) == 0:
		return nil
	case composite(t):
		return []string{tr.fresh(e)}
	case pointee(t) == nil || isCall && last:
		return []string{tr.bare(e)}
	}
	p, o := tr.pointer(e)
	return []string{p, o}[:tr.width(t)]
}

func (tr *translator) assign(x *ast.AssignStmt) {
	switch {
	case x.Tok == token.DEFINE:
		tr.defineAll(x)
	case x.Tok != token.ASSIGN:
		tr.update(x.Lhs[0], assignOps[x.Tok], tr.operand(x.Rhs[0], assignOps[x.Tok], true))
	case len(x.Rhs) == 1 && len(x.Lhs) > 1:
		tr.assignCall(x.Lhs, x.Rhs[0].(*ast.CallExpr))
	case len(x.Lhs) == 1:
		tr.assignOne(x.Lhs[0], x.Rhs[0])
	default:
		tr.assignMany(x)
	}
}

var assignOps = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
	token.OR_ASSIGN: token.OR, token.AND_ASSIGN: token.AND, token.AND_NOT_ASSIGN: token.AND_NOT, token.REM_ASSIGN: token.REM,
}

func (tr *translator) defineAll(x *ast.AssignStmt) {
	if len(x.Rhs) == 1 && len(x.Lhs) > 1 {
		call := x.Rhs[0].(*ast.CallExpr)
		var names, late []string
		sig := tr.typeOf(call).(*types.Tuple)
		for i, l := range x.Lhs {
			id := l.(*ast.Ident)
			t := sig.At(i).Type()
			n := name(id.Name)
			if tr.prog.info.Defs[id] == nil && id.Name != "_" { // this one exists already
				late = append(late, fmt.Sprintf("%s = n_%s", n, n))
				n = "n_" + n
				if tr.retWidth(t) == 2 {
					late = append(late, fmt.Sprintf("%s_o = %s_o", name(id.Name), n))
				}
			}
			switch tr.retWidth(t) {
			case 1:
				names = append(names, n)
			case 2:
				names = append(names, n, n+"_o")
			}
		}
		tr.line("local %s = %s", strings.Join(names, ", "), tr.call(call))
		for _, l := range late {
			tr.line("%s", l)
		}
		return
	}
	if len(x.Lhs) == 1 {
		id := x.Lhs[0].(*ast.Ident)
		tr.define(id, tr.varType(id), x.Rhs[0])
		return
	}
	// One local statement: Lua computes all values before it declares the variables, as Go does.
	var names, values []string
	for i, l := range x.Lhs {
		id := l.(*ast.Ident)
		t := tr.varType(id)
		if tr.prog.info.Defs[id] == nil && id.Name != "_" {
			tr.fail(x, "some are new, some are not")
		}
		names, values = append(names, tr.names(id, t)...), append(values, tr.values(x.Rhs[i], t, false)...)
	}
	tr.line("local %s = %s", strings.Join(names, ", "), strings.Join(values, ", "))
}

// retWidth is width for a result: a struct is returned as a table of its own.
func (tr *translator) retWidth(t types.Type) int {
	if composite(t) {
		return 1
	}
	return tr.width(t)
}

func (tr *translator) varType(id *ast.Ident) types.Type {
	if obj := tr.prog.info.Defs[id]; obj != nil {
		return obj.Type()
	}
	return tr.prog.info.Uses[id].Type()
}

// assignCall assigns the results of a call.
func (tr *translator) assignCall(lhs []ast.Expr, call *ast.CallExpr) {
	sig := tr.typeOf(call).(*types.Tuple)
	if names := tr.variables(lhs, sig); len(names) > 0 {
		tr.line("%s = %s", strings.Join(names, ", "), tr.call(call))
		return
	}
	var names []string
	for i := range lhs {
		n := tr.temp()
		switch tr.retWidth(sig.At(i).Type()) {
		case 1:
			names = append(names, n)
		case 2:
			names = append(names, n, n+"o")
		default:
			tr.fail(call, "returns what there is one of")
		}
	}
	tr.line("local %s = %s", strings.Join(names, ", "), tr.call(call))
	k := 0
	for i, l := range lhs {
		t := sig.At(i).Type()
		if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
			k += tr.retWidth(t)
			continue
		}
		switch {
		case composite(t):
			p := tr.place(l)
			tr.line("move(%s, %s, %s, 0, %d)", p.t, p.off(), names[k], slots(t))
		case tr.width(t) == 2:
			id := l.(*ast.Ident)
			tr.line("%s, %s_o = %s, %s", name(id.Name), name(id.Name), names[k], names[k+1])
		default:
			tr.store(l, names[k], isBool(t))
		}
		k += tr.retWidth(t)
	}
}

// variables returns the Lua variables that stand for lhs, without blanks at the end. It returns nil if there is anything else.
func (tr *translator) variables(lhs []ast.Expr, sig *types.Tuple) (names []string) {
	isBlank := func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return ok && id.Name == "_" }
	for len(lhs) > 0 && isBlank(lhs[len(lhs)-1]) {
		lhs = lhs[:len(lhs)-1]
	}
	for i, l := range lhs {
		id, ok := l.(*ast.Ident)
		if !ok || isBlank(l) || composite(sig.At(i).Type()) {
			return nil
		}
		names = append(names, tr.names(id, sig.At(i).Type())...)
	}
	return names
}

// store assigns a Lua value to l. truth reports that the value is a boolean.
func (tr *translator) store(l ast.Expr, value string, truth bool) {
	if id, ok := ast.Unparen(l).(*ast.Ident); ok {
		tr.line("%s = %s", name(id.Name), value)
		return
	}
	if truth {
		switch value {
		case "true":
			value = "1"
		case "false":
			value = "0"
		default:
			value = "(" + value + ") and 1 or 0"
		}
	}
	tr.line("%s = %s", tr.target(l), value)
}

// target returns the slot that an assignment to l writes.
func (tr *translator) target(l ast.Expr) string {
	s := tr.place(l).slot(0)
	if strings.HasPrefix(s, "(") { // Lua would parse it as a call of the line before
		a := tr.temp()
		p := tr.place(l)
		tr.line("local %s = %s", a, p.t)
		p.t = a
		return p.slot(0)
	}
	return s
}

func (tr *translator) assignOne(l, r ast.Expr) {
	if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
		tr.line("local _ = %s", tr.expr(r))
		return
	}
	t := tr.typeOf(l)
	switch {
	case composite(t):
		tr.assignStruct(l, r, t)
	case pointee(t) != nil:
		id, isID := l.(*ast.Ident)
		p, o := tr.pointer(r)
		switch {
		case isID && tr.width(t) == 2:
			tr.line("%s, %s_o = %s, %s", name(id.Name), name(id.Name), p, o)
		case isID:
			tr.line("%s = %s", name(id.Name), p)
		default:
			tr.line("%s = %s", tr.target(l), p)
		}
	case isAppend(r):
		call := r.(*ast.CallExpr)
		list := tr.temp()
		tr.line("local %s = %s", list, tr.expr(l))
		v := ""
		if composite(tr.typeOf(call.Args[1])) {
			v = tr.fresh(call.Args[1])
		} else {
			v = tr.bare(call.Args[1])
		}
		tr.line("%s[#%s+1] = %s", list, list, v)
	default:
		tr.store(l, tr.bare(r), isBool(t))
	}
}

func isAppend(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "append" && len(call.Args) == 2 && !call.Ellipsis.IsValid()
}

func (tr *translator) assignStruct(l, r ast.Expr, t types.Type) {
	n := slots(t)
	if id, ok := ast.Unparen(l).(*ast.Ident); ok {
		tr.line("%s = %s", name(id.Name), tr.fresh(r))
		return
	}
	to := tr.place(l)
	if strings.HasPrefix(to.t, "(") {
		a := tr.temp()
		tr.line("local %s = %s", a, to.t)
		to.t = a
	}
	if lit, ok := ast.Unparen(r).(*ast.CompositeLit); ok {
		if len(lit.Elts) == 0 || n > 24 {
			tr.line("clear_(%s, %s, %d)", to.t, to.off(), n)
			if len(lit.Elts) == 0 {
				return
			}
			vals := make([]string, n)
			tr.fill(lit, t, vals)
			for k, v := range vals {
				if v != "" {
					tr.line("%s = %s", to.slot(k), v)
				}
			}
			return
		}
		vals := make([]string, n)
		tr.zeros(t, vals)
		tr.fill(lit, t, vals)
		var slotsOf []string
		for k := range vals {
			slotsOf = append(slotsOf, to.slot(k))
		}
		tr.line("%s = %s", strings.Join(slotsOf, ", "), strings.Join(vals, ", "))
		return
	}
	from := tr.place(r)
	tr.line("move(%s, %s, %s, %s, %d)", to.t, to.off(), from.t, from.off(), n)
}

func (tr *translator) assignMany(x *ast.AssignStmt) {
	simpleOnes := true
	for _, l := range x.Lhs {
		if t := tr.typeOf(l); composite(t) || tr.width(t) == 2 {
			simpleOnes = false
		}
	}
	if !simpleOnes { // one after the other, which is right only because none reads what another writes
		for i := range x.Lhs {
			tr.assignOne(x.Lhs[i], x.Rhs[i])
		}
		return
	}
	var targets, values []string
	for i, l := range x.Lhs {
		t := tr.typeOf(l)
		if id, ok := l.(*ast.Ident); ok {
			targets = append(targets, name(id.Name))
			values = append(values, tr.bare(x.Rhs[i]))
			continue
		}
		targets = append(targets, tr.target(l))
		if isBool(t) {
			values = append(values, tr.toSlot(x.Rhs[i]))
		} else {
			values = append(values, tr.bare(x.Rhs[i]))
		}
	}
	tr.line("%s = %s", strings.Join(targets, ", "), strings.Join(values, ", "))
}

// update assigns the result of an operator, as += does.
func (tr *translator) update(l ast.Expr, op token.Token, by string) {
	t := tr.typeOf(l)
	if id, ok := ast.Unparen(l).(*ast.Ident); ok {
		tr.line("%s = %s", name(id.Name), unbracket(tr.operate(l, op, t, name(id.Name), by)))
		return
	}
	p := tr.place(l)
	if strings.ContainsAny(p.t, "(") {
		a := tr.temp()
		tr.line("local %s = %s", a, p.t)
		p.t = a
	}
	if strings.ContainsAny(p.o, "([") {
		a := tr.temp()
		tr.line("local %s = %s", a, p.o)
		p.o = a
	}
	tr.line("%s = %s", p.slot(0), unbracket(tr.operate(l, op, t, p.slot(0), by)))
}

func (tr *translator) returnStmt(x *ast.ReturnStmt, last bool) {
	results := tr.results()
	var vals []string
	switch {
	case len(x.Results) == 0:
		if tr.curResults != nil && tr.namedResults(tr.curResults) {
			vals = append(vals, tr.resultNames(tr.curResults))
		}
	case len(x.Results) == 1 && results.Len() > 1:
		vals = append(vals, tr.expr(x.Results[0]))
	default:
		for i, r := range x.Results {
			vals = append(vals, tr.values(r, results.At(i).Type(), i == len(x.Results)-1)...)
		}
	}
	if last {
		tr.line("return %s", strings.Join(vals, ", "))
	} else {
		tr.line("do return %s end", strings.Join(vals, ", "))
	}
}

func (tr *translator) branch(x *ast.BranchStmt, last bool) {
	if x.Label != nil || len(tr.loops) == 0 {
		tr.fail(x, "branch")
	}
	l := tr.loops[len(tr.loops)-1]
	stmt := "break"
	switch {
	case l == nil, l.inSwitch && x.Tok == token.BREAK:
		tr.fail(x, "leaves a switch")
	case x.Tok == token.BREAK && l.wraps:
		tr.line("%s = true", l.brk)
	case x.Tok == token.BREAK, x.Tok == token.CONTINUE && l.wraps:
	default:
		tr.fail(x, "branch")
	}
	if last {
		tr.line("%s", stmt)
	} else {
		tr.line("do %s end", stmt)
	}
}
