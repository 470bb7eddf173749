package golua

import (
	"os"
	"testing"
)

// The generated script must match the pool: run go generate after changing the pool.
func TestTheScriptIsUpToDate(t *testing.T) {
	out, err := Generate("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lua/pool.lua": out.File(), "layout.go": out.Layout.File()} {
		got, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the pool translates to: run go generate ./store/redisstore", name)
		}
	}
}

func TestShortStatementsAreOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" if a then\n  return 1\n end\n":                        " if a then return 1 end\n",
		" if a then\n  return \n end\n":                         " if a then return end\n",
		"if a then\n for i = 1, 2 do\n end\n":                   "if a then\n for i = 1, 2 do\n end\n",
		"if a then\n if b then\n end\nend\n":                    "if a then\n if b then\n end\nend\n",
		"if a then\n x()\nelse\n y()\nend\n":                    "if a then x()\nelse y() end\n",
		"if a then\n x()\nelse\n y()\n z()\nend\n":              "if a then x()\nelse\n y()\n z()\nend\n",
		"if a then\n if b then\n  x()\n end\nelse\n y()\nend\n": "if a then\n if b then x() end\nelse y() end\n",
		"while a do\n if b then\n  break\n end\nend\n":          "while a do if b then break end end\n",
		"F.x = function(a) -- b.go:1\n return a\nend\n":         "F.x = function(a) return a end -- b.go:1\n",
		"if a then\n x()\n y()\nend\n":                          "if a then\n x()\n y()\nend\n",
		"if a then\n -- b.go:1\nend\n":                          "if a then\n -- b.go:1\nend\n",
		"if a then\n f = function(x)\n end\n":                   "if a then\n f = function(x)\n end\n",
	} {
		if got := oneLiners(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

func TestBlocksThatHideNothingAreLeftOut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"if a then\n do\n  local x = 1\n end\nend\n":                         "if a then\n local x = 1\nend\n",
		"if a then\n y()\n do\n  do\n   x()\n  end\n end\nelse\n z()\nend\n": "if a then\n y()\n x()\nelse\n z()\nend\n",
		"while a do\n do\n  x()\n end\n i = i + 1\nend\n":                    "while a do\n x()\n i = i + 1\nend\n",
		"while a do\n do\n  local i = 1\n end\n i = i + 1\nend\n":            "while a do\n do\n  local i = 1\n end\n i = i + 1\nend\n",
		"while a do\n do\n  return 1\n end\n i = i + 1\nend\n":               "while a do\n do\n  return 1\n end\n i = i + 1\nend\n",
		"do\n x()\nend\n": "do\n x()\nend\n",
	} {
		if got := fewerBlocks(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

func TestDeclarationsAreMergedUnlessOneUsesTheOther(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"local a = f(1, 2)\nlocal b = {2}\nlocal c = 3\n": "local a, b, c = f(1, 2), {2}, 3\n",
		"local a = 1\nlocal b = a\n":                      "local a = 1\nlocal b = a\n",
		"local a, b = f()\nlocal c = 1\n":                 "local a, b = f()\nlocal c = 1\n",
		"local a = 1\nlocal b, c = f()\n":                 "local a, b, c = 1, f()\n",
	} {
		if got := fewerLocals(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}
