package golua

import (
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// A call costs Lua as much as a dozen other steps. So a call of a short function becomes the value that it returns, where
// that is the same: the arguments are plain, and nothing is computed that the function would not compute.

// widestInline is the length of the longest expression that takes the place of a call.
const widestInline = 140

// inlineRounds is how many calls inside each other are replaced.
const inlineRounds = 3

// kinds of results, as far as Lua's and/or care.
const (
	truthyResult  = 'n' // a number or a text: always true
	booleanResult = 'b'
	pointerResult = 'p' // may be nil
)

// resultKind returns the kind of the only result of a function, or 0.
func (tr *translator) resultKind(sig *types.Signature) byte {
	if sig.Results().Len() != 1 {
		return 0
	}
	switch t := sig.Results().At(0).Type(); {
	case composite(t) || tr.retWidth(t) != 1:
		return 0
	case isBool(t):
		return booleanResult
	case pointee(t) != nil:
		return pointerResult
	case isInteger(t) || isString(t):
		return truthyResult
	}
	return 0
}

// short is a function whose calls can be replaced.
type short struct {
	params []string
	value  string
	free   map[string]bool // the names in value that are not parameters
	counts map[string]int  // how often value uses each parameter
	calls  bool            // value calls functions
}

var (
	header     = regexp.MustCompile(`^F\.(\w+) = function\((.*)\) -- `)
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	plainArg   = regexp.MustCompile(`^([A-Za-z_]\w*|\d+)$`)
	slotArg    = regexp.MustCompile(`^[A-Za-z_]\w*\[([A-Za-z_]\w*\+)?\d+\]$`)
	usedName   = regexp.MustCompile(`\bF\.(\w+)`)
	callOf     = regexp.MustCompile(`F\.(\w+)\(`)
	localNames = regexp.MustCompile(`\blocal ([\w, ]+)|\bfor (\w+) =|\bfunction\(([\w, ]*)\)`)
)

// inline replaces calls of short functions. Each function begins and ends at the start of a line.
func inline(lua string, kinds map[string]byte) string {
	for range inlineRounds {
		functions := strings.SplitAfter(lua, "\nend\n")
		shorts := map[string]*short{}
		for _, f := range functions {
			if m := header.FindStringSubmatch(f); m != nil {
				if s := shortOf(m[1], f, kinds[m[1]]); s != nil {
					shorts[m[1]] = s
				}
			}
		}
		for i, f := range functions {
			if m := header.FindStringSubmatch(f); m != nil {
				functions[i] = inlineIn(m[1], f, shorts)
			}
		}
		lua = strings.Join(functions, "")
	}
	return strings.ReplaceAll(lua, stays, "")
}

// dropUnused leaves out functions that neither the others nor callers use any more.
func dropUnused(lua, callers string) string {
	functions := strings.SplitAfter(lua, "\nend\n")
	for {
		used := map[string]int{}
		for _, text := range append(functions, callers) {
			for _, m := range usedName.FindAllStringSubmatch(text, -1) {
				used[m[1]]++
			}
		}
		n := len(functions)
		functions = slices.DeleteFunc(functions, func(f string) bool {
			m := header.FindStringSubmatch(f)
			return m != nil && used[m[1]] == 1 // by its definition
		})
		if len(functions) == n {
			return strings.Join(functions, "")
		}
	}
}

// stays marks a call that is not replaced again.
const stays = "\x00"

// shortOf returns a function as an expression, nil if it is none.
func shortOf(name, text string, kind byte) *short {
	lines := strings.Split(strings.TrimSuffix(text, "\nend\n"), "\n")
	value := valueOf(name, lines[1:], kind)
	m := header.FindStringSubmatch(lines[0])
	if value == "" || len(value) > widestInline || strings.ContainsAny(value, "\"{}") || strings.Contains(value, "function(") {
		return nil
	}
	s := &short{value: value, free: map[string]bool{}, counts: map[string]int{}, calls: strings.Contains(value, "F.")}
	if m[2] != "" {
		s.params = strings.Split(m[2], ", ")
	}
	replaceNames(value, func(id string) string {
		if slices.Contains(s.params, id) {
			s.counts[id]++
		} else {
			s.free[id] = true
		}
		return id
	})
	for _, p := range s.params {
		if strings.Contains(value, p+"(") { // it calls a function that it is given
			return nil
		}
	}
	return s
}

// valueOf returns what a function body returns as one expression, or "". A function that is longer, but returns a record at
// once in the usual case, is called only in the other cases.
func valueOf(name string, body []string, kind byte) string {
	if len(body) == 1 {
		value, ok := strings.CutPrefix(body[0], " return ")
		if !ok || kind == 0 || strings.Contains(value, "F."+name+"(") {
			return ""
		}
		return value
	}
	if len(body) < 4 || body[2] != " end" {
		return ""
	}
	cond, isIf := strings.CutPrefix(body[0], " if ")
	first, returns := strings.CutPrefix(body[1], "  return ")
	if !isIf || !returns {
		return ""
	}
	cond = "(" + strings.TrimSuffix(cond, " then") + ")"
	rest := "F." + name + stays + "()" // short.with adds the arguments
	if len(body) == 4 {
		var ok bool
		if rest, ok = strings.CutPrefix(body[3], " return "); !ok {
			return ""
		}
	} else if !isRecord(first) {
		return ""
	}
	switch {
	case kind == truthyResult, kind == pointerResult && isRecord(first):
		return cond + " and " + first + " or " + rest
	case kind == pointerResult && first == "nil":
		return "not " + cond + " and (" + rest + ") or nil"
	case kind == booleanResult && first == "true":
		return cond + " or " + rest
	case kind == booleanResult && first == "false":
		return "not " + cond + " and (" + rest + ")"
	}
	return ""
}

// isRecord reports whether an expression is a record of a slab, which is never nil.
func isRecord(s string) bool {
	return strings.HasPrefix(unbracket(s), "S_") && strings.Contains(s, " or ld(")
}

// replaceNames replaces the variables of an expression.
func replaceNames(text string, by func(string) string) string {
	var b strings.Builder
	at := 0
	for _, m := range identifier.FindAllStringIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		at = m[1]
		id := text[m[0]:m[1]]
		if m[0] > 0 && (text[m[0]-1] == '.' || text[m[0]-1] >= '0' && text[m[0]-1] <= '9') || luaWords[id] {
			b.WriteString(id)
		} else {
			b.WriteString(by(id))
		}
	}
	b.WriteString(text[at:])
	return b.String()
}

var luaWords = map[string]bool{"and": true, "or": true, "not": true, "nil": true, "true": true, "false": true}

// inlineIn replaces the calls inside a function.
func inlineIn(name, text string, shorts map[string]*short) string {
	own := map[string]bool{}
	for _, m := range localNames.FindAllStringSubmatch(text, -1) {
		for _, id := range identifier.FindAllString(m[1]+" "+m[2]+" "+m[3], -1) {
			own[id] = true
		}
	}
	var b strings.Builder
	for {
		m := callOf.FindStringSubmatchIndex(text)
		if m == nil {
			b.WriteString(text)
			return b.String()
		}
		called := text[m[2]:m[3]]
		end := closing(text, m[1])
		value, ok := "", false
		before := b.String() + text[:m[0]]
		isStatement := strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) == ""
		if s := shorts[called]; s != nil && called != name && !isStatement {
			value, ok = s.with(called, splitArgs(text[m[1]:end]), own)
		}
		b.WriteString(text[:m[0]])
		if ok {
			text = text[end+1:]
			if strings.HasSuffix(before, "(") && strings.HasPrefix(text, ")") {
				value = unbracket(value)
			}
			b.WriteString(value)
		} else {
			b.WriteString(text[m[0]:m[1]])
			text = text[m[1]:]
		}
	}
}

// closing returns the index of the bracket that closes the one before from.
func closing(text string, from int) int {
	open := 1
	for i := from; ; i++ {
		switch text[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return i
			}
		}
	}
}

// splitArgs splits the arguments of a call.
func splitArgs(list string) (args []string) {
	open, from := 0, 0
	for i, c := range list {
		switch {
		case strings.ContainsRune("([{", c):
			open++
		case strings.ContainsRune(")]}", c):
			open--
		case c == ',' && open == 0:
			args = append(args, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
	}
	if rest := strings.TrimSpace(list[from:]); rest != "" {
		args = append(args, rest)
	}
	return args
}

// with returns the value, in brackets if it needs them, for arguments, if these can be put in the place of the parameters.
func (s *short) with(called string, args []string, own map[string]bool) (string, bool) {
	if len(args) != len(s.params) {
		return "", false
	}
	for id := range s.free {
		if own[id] {
			return "", false // another variable of the caller
		}
	}
	to := map[string]string{}
	for i, a := range args {
		p := s.params[i]
		if !plainArg.MatchString(a) && (!slotArg.MatchString(a) || s.counts[p] > 1 || s.calls) {
			return "", false
		}
		to[p] = a
	}
	value := replaceNames(s.value, func(id string) string {
		if a, ok := to[id]; ok {
			return a
		}
		return id
	})
	value = strings.Replace(value, called+stays+"()", called+stays+"("+strings.Join(args, ", ")+")", 1)
	if !slotArg.MatchString(value) {
		value = "(" + value + ")"
	}
	return value, true
}
