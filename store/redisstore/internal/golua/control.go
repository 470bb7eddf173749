package golua

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// results returns the result types of the function being translated.
func (tr *translator) results() *types.Tuple { return tr.curSig.Results() }

func (tr *translator) ifStmt(x *ast.IfStmt) {
	defer tr.init(x.Init)()
	tr.line("if %s then", tr.bare(x.Cond))
	tr.nested(x.Body.List)
	for {
		switch e := x.Else.(type) {
		case nil:
			tr.line("end")
			return
		case *ast.BlockStmt:
			tr.line("else")
			tr.nested(e.List)
			tr.line("end")
			return
		case *ast.IfStmt:
			if e.Init != nil || tr.hoists(e.Cond) {
				tr.line("else")
				tr.indent++
				tr.ifStmt(e)
				tr.indent--
				tr.line("end")
				return
			}
			tr.line("elseif %s then", tr.bare(e.Cond))
			tr.nested(e.Body.List)
			x = e
		}
	}
}

// init translates the first part of an if, for or switch in a block of its own. It returns what ends the block.
func (tr *translator) init(s ast.Stmt) (end func()) {
	if s == nil {
		return func() {}
	}
	tr.line("do")
	tr.indent++
	tr.stmt(s, false)
	return func() {
		tr.indent--
		tr.line("end")
	}
}

// hoists reports whether translating an expression calls hoist.
func (tr *translator) hoists(e ast.Expr) bool {
	saved, temps := tr.out.String(), tr.temps
	tr.out.Reset()
	tr.expr(e)
	did := tr.out.Len() > 0
	tr.out.Reset()
	tr.out.WriteString(saved)
	tr.temps = temps
	return did
}

// branches reports whether the body of a loop contains a break or continue (tok) of this loop.
func branches(body *ast.BlockStmt, tok token.Token) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return false
		case *ast.BranchStmt:
			found = found || x.Tok == tok
		}
		return true
	})
	return found
}

// body translates the body of a loop. head runs at the start of every round, post at its end.
func (tr *translator) body(b *ast.BlockStmt, head func(), post ast.Stmt) {
	l := &loop{wraps: slices.ContainsFunc(b.List, func(s ast.Stmt) bool { return guard(s) == nil && continues(s) })}
	breaks := l.wraps && branches(b, token.BREAK)
	tr.loops = append(tr.loops, l)
	tr.indent++
	if breaks {
		l.brk = tr.temp()
		tr.line("local %s = false", l.brk)
	}
	if l.wraps {
		tr.line("repeat")
		tr.indent++
	}
	if head != nil {
		head()
	}
	switch {
	case l.wraps:
		tr.block(b.List)
		tr.indent--
		tr.line("until true")
	case post != nil && tr.needsBlock(b.List, post):
		tr.line("do")
		tr.indent++
		tr.guarded(b.List)
		tr.indent--
		tr.line("end")
	default:
		tr.guarded(b.List)
	}
	if breaks {
		tr.line("if %s then break end", l.brk)
	}
	tr.loops = tr.loops[:len(tr.loops)-1]
	if post != nil {
		tr.stmt(post, false)
	}
	tr.indent--
}

// guard returns s if it is an if that only ends in continue, else nil.
func guard(s ast.Stmt) *ast.IfStmt {
	x, ok := s.(*ast.IfStmt)
	if !ok || x.Init != nil || x.Else != nil || len(x.Body.List) == 0 {
		return nil
	}
	last, ok := x.Body.List[len(x.Body.List)-1].(*ast.BranchStmt)
	if !ok || last.Tok != token.CONTINUE || slices.ContainsFunc(x.Body.List[:len(x.Body.List)-1], continues) {
		return nil
	}
	return x
}

func continues(s ast.Stmt) bool { return branches(&ast.BlockStmt{List: []ast.Stmt{s}}, token.CONTINUE) }

// guarded translates the body of a loop. Lua has no continue: what follows an if that ends in one becomes its else.
func (tr *translator) guarded(list []ast.Stmt) {
	i := slices.IndexFunc(list, func(s ast.Stmt) bool { return guard(s) != nil })
	if i < 0 {
		tr.block(list)
		return
	}
	tr.block(list[:i])
	x := guard(list[i])
	if then := x.Body.List[:len(x.Body.List)-1]; len(then) > 0 {
		tr.line("if %s then", tr.bare(x.Cond))
		tr.nested(then)
		tr.line("else")
	} else {
		tr.line("if %s then", tr.negated(x.Cond))
	}
	tr.indent++
	tr.guarded(list[i+1:])
	tr.indent--
	tr.line("end")
}

// needsBlock reports whether statements need a block of their own before another statement. In Lua nothing may follow a
// return or a break in a block, and a variable declared in the list would hide one that next uses.
func (tr *translator) needsBlock(list []ast.Stmt, next ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch list[len(list)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	used := map[string]bool{}
	ast.Inspect(next, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			used[id.Name] = true
		}
		return true
	})
	for _, s := range list {
		var hides bool
		switch x := s.(type) {
		case *ast.AssignStmt:
			hides = x.Tok == token.DEFINE && slices.ContainsFunc(x.Lhs, func(e ast.Expr) bool { return used[e.(*ast.Ident).Name] })
		case *ast.DeclStmt:
			hides = true
		}
		if hides {
			return true
		}
	}
	return false
}

func (tr *translator) forStmt(x *ast.ForStmt) {
	defer tr.init(x.Init)()
	switch {
	case x.Cond == nil:
		tr.line("while true do")
	case tr.hoists(x.Cond):
		tr.fail(x, "a condition that needs something computed")
	default:
		tr.line("while %s do", tr.bare(x.Cond))
	}
	tr.body(x.Body, nil, x.Post)
	tr.line("end")
}

func (tr *translator) rangeStmt(x *ast.RangeStmt) {
	t := tr.typeOf(x.X)
	i := tr.temp()
	if id, ok := x.Key.(*ast.Ident); ok && id.Name != "_" {
		i = name(id.Name)
	}
	count := ""
	var head func()
	elem := func(t types.Type, at place) {
		id, ok := x.Value.(*ast.Ident)
		if !ok || id.Name == "_" {
			return
		}
		head = func() {
			switch {
			case composite(t):
				tr.line("local %s = copy_(%s, %s, %d)", name(id.Name), at.t, at.off(), slots(t))
			case isBool(t):
				tr.line("local %s = %s ~= 0", name(id.Name), at.slot(0))
			default:
				tr.line("local %s = %s", name(id.Name), at.slot(0))
			}
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		count = tr.expr(x.X)
	case *types.Array:
		count = fmt.Sprint(u.Len())
		if x.Value != nil {
			p := tr.place(x.X)
			o := i
			if n := slots(u.Elem()); n > 1 {
				o = fmt.Sprintf("%s*%d", i, n)
			}
			if p.o != "" {
				o = p.o + "+" + o
			}
			elem(u.Elem(), place{p.t, o, p.c})
		}
	case *types.Slice:
		if x.Value == nil {
			count = tr.length(x.X)
			break
		}
		list := tr.temp()
		tr.line("local %s = %s", list, tr.expr(x.X))
		count = "#" + list
		if composite(u.Elem()) {
			elem(u.Elem(), place{t: fmt.Sprintf("%s[%s+1]", list, i)})
		} else {
			elem(u.Elem(), place{t: list, o: i})
		}
	default:
		tr.fail(x, "range over %v", t)
	}
	tr.line("for %s = 0, %s - 1 do", i, count)
	tr.body(x.Body, head, nil)
	tr.line("end")
}

func (tr *translator) switchStmt(x *ast.SwitchStmt) {
	defer tr.init(x.Init)()
	tag := ""
	if x.Tag != nil {
		tag = tr.temp()
		tr.line("local %s = %s", tag, tr.bare(x.Tag))
	}
	var deflt *ast.CaseClause
	word := "if"
	closers := 0
	tr.loops = append(tr.loops, tr.inSwitch())
	for _, c := range x.Body.List {
		cc := c.(*ast.CaseClause)
		if cc.List == nil {
			deflt = cc
			continue
		}
		if word == "elseif" {
			for _, e := range cc.List {
				if tag == "" && tr.hoists(e) {
					tr.line("else")
					tr.indent++
					closers++
					word = "if"
					break
				}
			}
		}
		var conds []string
		for _, e := range cc.List {
			if tag == "" {
				conds = append(conds, tr.operand(e, token.LOR, false))
			} else {
				conds = append(conds, tag+" == "+tr.expr(e))
			}
		}
		tr.line("%s %s then", word, strings.Join(conds, " or "))
		tr.nested(cc.Body)
		word = "elseif"
	}
	if deflt != nil {
		if word == "if" {
			tr.fail(x, "a switch without cases")
		}
		tr.line("else")
		tr.nested(deflt.Body)
	}
	tr.line("end")
	for range closers {
		tr.indent--
		tr.line("end")
	}
	tr.loops = tr.loops[:len(tr.loops)-1]
}

// inSwitch returns the loop around a switch, marked so that continue works and break is refused.
func (tr *translator) inSwitch() *loop {
	if len(tr.loops) == 0 || tr.loops[len(tr.loops)-1] == nil {
		return nil
	}
	l := *tr.loops[len(tr.loops)-1]
	l.inSwitch = true
	return &l
}
