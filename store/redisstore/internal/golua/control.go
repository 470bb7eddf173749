package golua

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// results returns the result types of the function being translated.
func (tr *translator) results() *types.Tuple { return tr.curSig.Results() }

func (tr *translator) ifStmt(x *ast.IfStmt) {
	if x.Init != nil {
		tr.line("do")
		tr.indent++
		tr.stmt(x.Init, false)
		defer func() {
			tr.indent--
			tr.line("end")
		}()
	}
	tr.line("if %s then", tr.expr(x.Cond))
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
			tr.line("elseif %s then", tr.expr(e.Cond))
			tr.nested(e.Body.List)
			x = e
		}
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
	l := &loop{wraps: branches(b, token.CONTINUE)}
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
	if post != nil && !l.wraps && tr.needsBlock(b.List, post) {
		tr.line("do")
		tr.nested(b.List)
		tr.line("end")
	} else {
		tr.block(b.List)
	}
	if l.wraps {
		tr.indent--
		tr.line("until true")
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
	tr.line("do")
	tr.indent++
	if x.Init != nil {
		tr.stmt(x.Init, false)
	}
	switch {
	case x.Cond == nil:
		tr.line("while true do")
	case tr.hoists(x.Cond):
		tr.fail(x, "a condition that needs something computed")
	default:
		tr.line("while %s do", tr.expr(x.Cond))
	}
	tr.body(x.Body, nil, x.Post)
	tr.line("end")
	tr.indent--
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
	tr.line("do")
	tr.indent++
	defer func() {
		tr.indent--
		tr.line("end")
	}()
	if x.Init != nil {
		tr.stmt(x.Init, false)
	}
	tag := ""
	if x.Tag != nil {
		tag = tr.temp()
		tr.line("local %s = %s", tag, tr.expr(x.Tag))
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
		cond := ""
		for k, e := range cc.List {
			if k > 0 {
				cond += " or "
			}
			if tag == "" {
				cond += tr.expr(e)
			} else {
				cond += tag + " == " + tr.expr(e)
			}
		}
		tr.line("%s %s then", word, cond)
		tr.nested(cc.Body)
		word = "elseif"
	}
	if deflt != nil {
		if word == "if" {
			tr.block(deflt.Body)
		} else {
			tr.line("else")
			tr.nested(deflt.Body)
		}
	}
	if word != "if" {
		tr.line("end")
	}
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
