package golua

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// expr translates an expression of one Lua value.
func (tr *translator) expr(e ast.Expr) string {
	if c, ok := tr.isConst(e); ok {
		return c
	}
	switch x := e.(type) {
	case *ast.ParenExpr:
		return "(" + tr.bare(x.X) + ")"
	case *ast.Ident:
		if x.Name == "nil" {
			return "nil"
		}
		return name(x.Name)
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return tr.read(e)
	case *ast.CallExpr:
		return tr.call(x)
	case *ast.BinaryExpr:
		return tr.binary(x)
	case *ast.UnaryExpr:
		return tr.unary(x)
	case *ast.CompositeLit:
		return tr.literal(x)
	case *ast.SliceExpr:
		return tr.slice(x)
	case *ast.FuncLit:
		return tr.closure(x)
	}
	tr.fail(e, "expression %T", e)
	return ""
}

// bare is expr without brackets around the whole.
func (tr *translator) bare(e ast.Expr) string { return unbracket(tr.expr(e)) }

// unbracket removes the brackets around a Lua expression.
func unbracket(s string) string {
	open := 0
	for i, c := range s {
		switch c {
		case '(':
			open++
		case ')':
			open--
		}
		if open == 0 && i < len(s)-1 {
			return s
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "("), ")")
}

// read translates reading a field, an element or through a pointer.
func (tr *translator) read(e ast.Expr) string {
	t := tr.typeOf(e)
	if composite(t) {
		return tr.fresh(e)
	}
	if s, ok := tr.readFar(e); ok {
		if isBool(t) {
			return "(" + s + " ~= 0)"
		}
		return s
	}
	s := tr.place(e).slot(0)
	if isBool(t) {
		return "(" + s + " ~= 0)"
	}
	return s
}

// readFar translates reading through a pointer with an offset that a call returns. It reports whether e does that.
func (tr *translator) readFar(e ast.Expr) (string, bool) {
	k := 0
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			sel := tr.prog.info.Selections[x]
			if sel == nil || sel.Kind() != types.FieldVal || len(sel.Index()) != 1 {
				return "", false
			}
			base := tr.typeOf(x.X)
			if el := pointee(base); el != nil {
				base = el
			}
			s, ok := base.Underlying().(*types.Struct)
			if !ok || tr.isSingle(base) {
				return "", false
			}
			k += offset(s, sel.Index()[0])
			e = x.X
		case *ast.IndexExpr:
			base := tr.typeOf(x.X)
			if el := pointee(base); el != nil {
				base = el
			}
			a, ok := base.Underlying().(*types.Array)
			c, isConst := tr.isConst(x.Index)
			if !ok || !isConst {
				return "", false
			}
			var i int
			_, _ = fmt.Sscan(c, &i)
			k += i * slots(a.Elem())
			e = x.X
		case *ast.CallExpr:
			if el := pointee(tr.typeOf(x)); el == nil || tr.isSingle(el) || !tr.isFat(el) {
				return "", false
			}
			s := tr.call(x)
			if m := tagsOf.FindStringSubmatch(s); m != nil { // the tags follow the first slot of the record
				return fmt.Sprintf("(S_names[%s] or ld(S_names, %s))[%d]", m[1], m[1], k+2), true
			}
			return fmt.Sprintf("far(%d, %s)", k+1, s), true
		default:
			return "", false
		}
	}
}

var tagsOf = regexp.MustCompile(`^F\.flat_Names_Tags\((\w+)\)$`)

// fresh translates a struct or an array to a table of its own.
func (tr *translator) fresh(e ast.Expr) string {
	e = ast.Unparen(e)
	switch x := e.(type) {
	case *ast.CompositeLit:
		return tr.literal(x)
	case *ast.CallExpr:
		return tr.call(x)
	}
	p := tr.place(e)
	return fmt.Sprintf("copy_(%s, %s, %d)", p.t, p.off(), slots(tr.typeOf(e)))
}

// place returns where the value of an expression is stored.
func (tr *translator) place(e ast.Expr) place {
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		obj := tr.prog.info.Uses[x]
		if obj == nil {
			obj = tr.prog.info.Defs[x]
		}
		t := obj.Type()
		if v, ok := obj.(*types.Var); ok && composite(t) && !tr.copied[obj] && tr.isParam(v) && tr.isFat(t) {
			return place{t: name(x.Name), o: name(x.Name) + "_o"}
		}
		return place{t: name(x.Name)}
	case *ast.SelectorExpr:
		return tr.selector(x)
	case *ast.IndexExpr:
		return tr.index(x)
	case *ast.StarExpr:
		return tr.deref(x.X)
	case *ast.CallExpr, *ast.CompositeLit:
		return place{t: "(" + tr.expr(x) + ")"}
	}
	tr.fail(e, "no place: %T", e)
	return place{}
}

func (tr *translator) isParam(v *types.Var) bool {
	return v.Kind() == types.ParamVar || v.Kind() == types.RecvVar
}

// deref returns where a pointer points.
func (tr *translator) deref(e ast.Expr) place {
	t, o := tr.pointer(e)
	return place{t: t, o: o}
}

// pointer translates a pointer: its array, and its offset if it has one.
func (tr *translator) pointer(e ast.Expr) (t, o string) {
	elem := pointee(tr.typeOf(e))
	e = ast.Unparen(e)
	if elem == nil {
		if id, ok := e.(*ast.Ident); ok && id.Name == "nil" {
			return "nil", "nil"
		}
		tr.fail(e, "not a pointer")
	}
	fat := tr.isFat(elem)
	switch x := e.(type) {
	case *ast.Ident:
		if fat {
			return name(x.Name), name(x.Name) + "_o"
		}
		return name(x.Name), ""
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			p := tr.place(x.X)
			if !fat {
				if p.o != "" || p.c != 0 {
					tr.fail(e, "points into a record: %v", elem)
				}
				return p.t, ""
			}
			return p.t, p.off()
		}
	case *ast.CallExpr:
		s := tr.call(x)
		if !fat {
			return s, ""
		}
		a := tr.temp()
		tr.hoist(e, a+", "+a+"o", s)
		return a, a + "o"
	case *ast.SelectorExpr, *ast.IndexExpr:
		if fat {
			tr.fail(e, "a pointer with an offset in a field or a list")
		}
		return tr.place(x).slot(0), ""
	}
	tr.fail(e, "pointer %T", e)
	return "", ""
}

func (tr *translator) selector(x *ast.SelectorExpr) place {
	sel := tr.prog.info.Selections[x]
	if sel == nil {
		tr.fail(x, "package variable")
	}
	return tr.field(x.X, sel.Index())
}

// field returns where the field of e is stored that index leads to, through embedded structs.
func (tr *translator) field(e ast.Expr, index []int) (p place) {
	base, single := tr.typeOf(e), false
	if el := pointee(base); el != nil {
		if base, single = el, tr.isSingle(el); !single {
			p = tr.deref(e)
		}
	} else if single = tr.isSingle(base); !single {
		p = tr.place(e)
	}
	for _, i := range index {
		if el := pointee(base); el != nil {
			base = el
		}
		s := base.Underlying().(*types.Struct)
		f := s.Field(i)
		if single {
			p, single = tr.singleField(base, f)
		} else {
			p = p.add(offset(s, i))
		}
		if base = f.Type(); isLarge(base) {
			p = place{t: p.t + "." + f.Name()}
		}
	}
	return p
}

func (tr *translator) index(x *ast.IndexExpr) place {
	base := tr.typeOf(x.X)
	var p place
	if el := pointee(base); el != nil {
		base, p = el, tr.deref(x.X)
	} else if _, ok := ast.Unparen(x.X).(*ast.SelectorExpr); ok || composite(base) {
		p = tr.place(x.X)
	}
	switch u := base.Underlying().(type) {
	case *types.Array:
		if p.t == "unscoped" {
			return place{t: fmt.Sprintf("unscoped[%s]", tr.expr(x.Index))}
		}
		if p.t == "defs" {
			i := tr.expr(x.Index)
			return place{t: fmt.Sprintf("(S_defs[%s+1] or ld(S_defs, %s+1))", i, i)}
		}
		n := slots(u.Elem())
		if c, ok := tr.isConst(x.Index); ok {
			var i int
			_, _ = fmt.Sscan(c, &i)
			return p.add(i * n)
		}
		i := tr.expr(x.Index)
		if n != 1 {
			i = fmt.Sprintf("(%s)*%d", i, n)
		} else if strings.ContainsAny(i, "<>=") {
			i = "(" + i + ")"
		}
		if p.o != "" {
			i = p.o + "+" + i
		}
		p.o = i
		return p
	case *types.Slice:
		i := tr.expr(x.Index)
		if p.t == "limits" {
			return place{t: fmt.Sprintf("(S_limits[%s+1] or ld(S_limits, %s+1))", i, i)}
		}
		list := tr.expr(x.X)
		if composite(u.Elem()) {
			return place{t: fmt.Sprintf("%s[%s+1]", list, i)}
		}
		return place{t: list, o: i}
	}
	tr.fail(x, "index of %v", base)
	return place{}
}

var operators = map[token.Token]string{
	token.ADD: "+", token.SUB: "-", token.MUL: "*", token.EQL: "==", token.NEQ: "~=", token.LSS: "<", token.LEQ: "<=",
	token.GTR: ">", token.GEQ: ">=", token.LAND: "and", token.LOR: "or",
}

func (tr *translator) binary(x *ast.BinaryExpr) string {
	t := tr.typeOf(x.X)
	if x.Op == token.EQL || x.Op == token.NEQ {
		if composite(t) {
			a, b := tr.place(x.X), tr.place(x.Y)
			not := ""
			if x.Op == token.NEQ {
				not = "not "
			}
			return fmt.Sprintf("(%ssame(%s, %s, %s, %s, %d))", not, a.t, a.off(), b.t, b.off(), slots(t))
		}
		if pointee(t) != nil || pointee(tr.typeOf(x.Y)) != nil {
			a, _ := tr.pointer(x.X)
			b, _ := tr.pointer(x.Y)
			return fmt.Sprintf("(%s %s %s)", a, operators[x.Op], b)
		}
	}
	if isNil(x.Y) { // a function or a slice, for which nil is false
		if x.Op == token.EQL {
			return "(not " + tr.expr(x.X) + ")"
		}
		return "(" + tr.expr(x.X) + " and true or false)"
	}
	a := tr.operand(x.X, x.Op, false)
	if x.Op == token.LAND || x.Op == token.LOR {
		tr.inCond++
		defer func() { tr.inCond-- }()
	}
	b := tr.operand(x.Y, x.Op, true)
	return tr.operate(x, x.Op, t, a, b)
}

// operand translates an operand of op, without brackets where op binds less. An and inside an or keeps them, to be clear.
func (tr *translator) operand(e ast.Expr, op token.Token, right bool) string {
	inner, _ := ast.Unparen(e).(*ast.BinaryExpr)
	_, isConst := tr.isConst(e)
	var plain bool
	switch {
	case isConst:
	case op == token.LAND || op == token.LOR:
		comparison := inner != nil && inner.Op.Precedence() == token.EQL.Precedence() && (!isNil(inner.Y) || pointee(tr.typeOf(inner.X)) != nil)
		plain = inner == nil || inner.Op == op || comparison
	case inner != nil && op.Precedence() == token.EQL.Precedence():
		plain = inner.Op == token.ADD || inner.Op == token.SUB || inner.Op == token.MUL
	case inner != nil && (op == token.ADD || op == token.SUB):
		plain = inner.Op == token.MUL || !right && (inner.Op == token.ADD || inner.Op == token.SUB)
	}
	if plain {
		return tr.bare(e)
	}
	return tr.expr(e)
}

// operate translates an operator on two values of a type, exactly as Go computes it, or refuses. Lua's bit operations have
// 32 bits. Its numbers are doubles, which are exact only up to 2^53, so products are checked at run time in tests.
func (tr *translator) operate(n ast.Node, op token.Token, t types.Type, a, b string) string {
	switch op {
	case token.QUO:
		if isInteger(t) {
			if simple(a) && simple(b) { // quo without a call
				return fmt.Sprintf("((%s - fmod(%s, %s)) / %s)", a, a, b, b)
			}
			return fmt.Sprintf("quo(%s, %s)", unbracket(a), unbracket(b))
		}
		return fmt.Sprintf("(%s / %s)", a, b)
	case token.REM:
		if isUnsigned(t) {
			if m := unsignedName.FindStringSubmatch(a); m != nil && isPowerOfTwo(b) {
				a = m[1] // Lua's % is never negative
			}
			return fmt.Sprintf("(%s %% %s)", a, b)
		}
		return fmt.Sprintf("fmod(%s, %s)", unbracket(a), unbracket(b)) // has the sign of a; Lua's % has that of b
	case token.MUL:
		if is64(t) && !isNumber(a) && !isNumber(b) {
			return fmt.Sprintf("mul(%s, %s)", unbracket(a), unbracket(b))
		}
	case token.SHL:
		switch {
		case isNumber(a):
			return fmt.Sprintf("(%s * 2^(%s))", a, b)
		case sizeOf(t) == 64:
			return fmt.Sprintf("mul(%s, 2^(%s))", a, b)
		case !isUnsigned(t):
			tr.refuse(n, "shifts bits of %v out to the left", t)
		}
		return fmt.Sprintf("(%s * 2^(%s) %% %d)", a, b, int64(1)<<sizeOf(t))
	case token.SHR:
		return fmt.Sprintf("floor(%s / 2^(%s))", a, b)
	case token.AND, token.OR, token.AND_NOT:
		if !tr.hasBits(op, t, a, b) {
			tr.refuse(n, "bits of %v: there are 32 in Lua, and the highest is a sign", t)
		}
		switch op {
		case token.AND:
			return fmt.Sprintf("band(%s, %s)", a, b)
		case token.OR:
			return fmt.Sprintf("bor(%s, %s)", a, b)
		}
		return fmt.Sprintf("band(%s, bnot(%s))", a, b)
	case token.ADD:
		if isString(t) {
			return fmt.Sprintf("(%s .. %s)", a, b)
		}
	}
	s, ok := operators[op]
	if !ok {
		tr.fail(n, "operator %v", op)
	}
	return fmt.Sprintf("(%s %s %s)", a, s, b)
}

var unsignedName = regexp.MustCompile(`^u64\((\w+)\)$`)

// isPowerOfTwo reports whether a Lua expression is a power of two, up to 2^32.
func isPowerOfTwo(s string) bool {
	n, err := strconv.ParseUint(s, 10, 33)
	return err == nil && bits.OnesCount64(n) == 1
}

// hasBits reports whether Lua's bit operations are exact: for up to 32 bits with a sign, 16 bits without, and for the
// lowest 31 bits of any number.
func (tr *translator) hasBits(op token.Token, t types.Type, a, b string) bool {
	b31 := func(s string) bool {
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && n >= 0 && n < 1<<31
	}
	switch size := sizeOf(t); {
	case size <= 16, size == 32 && !isUnsigned(t):
		return true
	default:
		return op == token.AND && (b31(a) || b31(b))
	}
}

// isNumber reports whether a Lua expression is a number.
func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.Trim(s, "()"), 64)
	return err == nil
}

var opposites = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
}

// negated translates the opposite of a condition.
func (tr *translator) negated(e ast.Expr) string {
	switch x := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return tr.bare(x.X)
	case *ast.BinaryExpr:
		if op, ok := opposites[x.Op]; ok {
			return unbracket(tr.binary(&ast.BinaryExpr{X: x.X, Op: op, Y: x.Y}))
		}
	}
	return unbracket(tr.unary(&ast.UnaryExpr{Op: token.NOT, X: e}))
}

func (tr *translator) unary(x *ast.UnaryExpr) string {
	switch x.Op {
	case token.NOT:
		s := tr.expr(x.X)
		if is, ok := strings.CutSuffix(s, " ~= 0)"); ok && strings.HasPrefix(is, "(") && ast.Unparen(x.X) == x.X {
			return is + " == 0)"
		}
		return "(not " + s + ")"
	case token.SUB:
		return "(-" + tr.expr(x.X) + ")"
	case token.AND:
		t, o := tr.pointer(x)
		if o != "" {
			return t + ", " + o
		}
		return t
	}
	tr.fail(x, "operator %v", x.Op)
	return ""
}

func (tr *translator) slice(x *ast.SliceExpr) string {
	t := tr.typeOf(x.X)
	if isString(t) {
		low, high := "1", "-1"
		if x.Low != nil {
			low = tr.expr(x.Low) + "+1"
		}
		if x.High != nil {
			high = tr.expr(x.High)
		}
		return fmt.Sprintf("sub(%s, %s, %s)", tr.expr(x.X), low, high)
	}
	if c, ok := tr.isConst(orNil(x.High)); ok && c == "0" {
		return "{}"
	}
	tr.fail(x, "slice of %v", t)
	return ""
}

func orNil(e ast.Expr) ast.Expr {
	if e == nil {
		return &ast.BadExpr{}
	}
	return e
}

func (tr *translator) closure(x *ast.FuncLit) string {
	saved, indent, loops, cond := tr.out.String(), tr.indent, tr.loops, tr.inCond
	sig, results := tr.curSig, tr.curResults
	defer func() { tr.curSig, tr.curResults = sig, results }()
	tr.curSig, tr.curResults = tr.typeOf(x).(*types.Signature), x.Type.Results
	tr.out.Reset()
	tr.indent, tr.loops, tr.inCond = indent+1, nil, 0
	tr.entry(x.Type.Params.List, x.Type.Results, x.Body)
	tr.block(x.Body.List)
	body := tr.out.String()
	tr.out.Reset()
	tr.out.WriteString(saved)
	tr.indent, tr.loops, tr.inCond = indent, loops, cond
	return fmt.Sprintf("function(%s)\n%s%send", tr.params(x.Type.Params.List), body, strings.Repeat(" ", indent))
}

func isNil(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && id.Name == "nil"
}
