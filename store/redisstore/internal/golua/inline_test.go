package golua

import (
	"strings"
	"testing"
)

func TestCallsOfShortFunctionsAreReplaced(t *testing.T) {
	t.Parallel()
	const functions = `F.fixed = function(m, d) -- a.go:1
 return d[1] == 2 and m[8] ~= 0
end
F.len = function() -- a.go:2
 return counts[3]
end
F.twice = function(x) -- a.go:3
 return x + x
end
F.ring = function(in_) -- a.go:4
 if in_[15] == 0 then
  return nil
 end
 return S_rings[in_[15]] or ld(S_rings, in_[15])
end
F.def = function(in_) -- a.go:5
 if in_[28] == 0 then
  return (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1))
 end
 local m = in_[2]
 return m
end
F.cap = function(m, r) -- a.go:6
 if r == nil then
  return m[1]
 end
 return F.less(m, r[5])
end
F.yes = function(a) -- a.go:7
 if a[1] == 0 then
  return true
 end
 return a[2] > 1
end
F.maybe = function(a) -- a.go:8
 if a[1] == 0 then
  return a[3] == 0
 end
 return a[2] > 1
end
F.each = function(f) -- a.go:9
 return f(1)
end
`
	kinds := map[string]byte{
		"fixed": booleanResult, "len": truthyResult, "twice": truthyResult, "ring": pointerResult, "def": pointerResult, "cap": truthyResult,
		"yes": booleanResult, "maybe": booleanResult, "each": truthyResult,
	}
	for in, want := range map[string]string{
		"local a = F.fixed(x, y)":              "local a = (y[1] == 2 and x[8] ~= 0)",
		"if F.fixed(d, m) then":                "if (m[1] == 2 and d[8] ~= 0) then",
		"if F.fixed(S[1], y) then":             "if (y[1] == 2 and S[1][8] ~= 0) then",
		"if F.len() > 0 then":                  "if counts[3] > 0 then",
		"g(F.len())":                           "g(counts[3])",
		"F.len()":                              "F.len()",                                                                           // a value is no statement
		"local a = F.twice(y[2])":              "local a = F.twice(y[2])",                                                           // would be read twice
		"local a = F.twice(f(y))":              "local a = F.twice(f(y))",                                                           //
		"local a = F.twice(y)":                 "local a = (y + y)",                                                                 //
		"local r = F.ring(q)":                  "local r = (not (q[15] == 0) and (S_rings[q[15]] or ld(S_rings, q[15])) or nil)",    //
		"local d = F.def(q)":                   "local d = ((q[28] == 0) and (S_defs[q[11]+1] or ld(S_defs, q[11]+1)) or F.def(q))", // once
		"local c = F.cap(q, r)":                "local c = ((r == nil) and q[1] or F.less(q, r[5]))",                                //
		"local c = F.cap(q, y[1])":             "local c = F.cap(q, y[1])",                                                          // F.less could change it
		"if F.yes(q) then":                     "if ((q[1] == 0) or q[2] > 1) then",                                                 //
		"if F.maybe(q) then":                   "if F.maybe(q) then",                                                                // false is not the end of an and
		"local a = F.each(g)":                  "local a = F.each(g)",                                                               //
		"local counts = 1\n local a = F.len()": "local counts = 1\n local a = F.len()",                                              // another variable
	} {
		got := inline(functions+"F.caller = function(x) -- a.go:10\n "+in+"\nend\n", kinds)
		_, got, _ = strings.Cut(got, "-- a.go:10\n ")
		if got = strings.TrimSuffix(got, "\nend\n"); got != want {
			t.Errorf("%s becomes\n%s, not\n%s", in, got, want)
		}
	}
}

func TestFunctionsThatNothingUsesAreLeftOut(t *testing.T) {
	const functions = "F.a = function() -- a.go:1\n return F.b()\nend\nF.b = function() -- a.go:2\n return 1\nend\nF.c = function() -- a.go:3\n return F.d()\nend\nF.d = function() -- a.go:4\n return 2\nend\n"
	want := functions[:strings.Index(functions, "F.c =")] // d has no caller without c
	if got := dropUnused(functions, "F.a()"); got != want {
		t.Errorf("left: %s", got)
	}
}
