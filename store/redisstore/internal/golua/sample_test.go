package golua

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store/redisstore/internal/golua/testdata/sample"
)

// Each function returns the same in both languages, for all numbers that a pool uses.
func TestGoAndLuaSayTheSame(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(sample.Funcs))
	code, err := Functions("../../../..", "store/redisstore/internal/golua/testdata/sample", names...)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := os.ReadFile("../../lua/runtime.lua")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"EVAL", string(runtime) + "bind()\n" + code + `
local out = {}
for i = 1, #ARGV, 3 do out[#out + 1] = format('%.0f', F['sample_' .. ARGV[i]](tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))) end
return table.concat(out, ' ')`, "0"}
	type question struct {
		name string
		a, b int64
	}
	var all []question
	edges := []int64{0, 1, -1, 2, -2, 7, -7, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, 65535, 65536, 1<<31 - 1, 1 << 31, -1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, -1 << 40}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	for _, name := range names {
		for range 200 {
			q := question{name, edges[random.IntN(len(edges))], edges[random.IntN(len(edges))]}
			if random.IntN(2) == 0 {
				q.a, q.b = random.Int64N(1<<41)-1<<40, random.Int64N(1<<41)-1<<40
			}
			if q.b == 0 {
				q.b = 3
			}
			all = append(all, q)
			args = append(args, q.name, fmt.Sprint(q.a), fmt.Sprint(q.b))
		}
	}
	reply, err := redisrun.New(t).Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(reply)
	if len(words) != len(all) {
		t.Fatalf("%d answers to %d questions: %v", len(words), len(all), reply)
	}
	for i, q := range all {
		got, err := strconv.ParseInt(words[i], 10, 64)
		if want := sample.Funcs[q.name](q.a, q.b); err != nil || got != want {
			t.Errorf("%s(%d, %d) is %d in Go and %s in Lua", q.name, q.a, q.b, want, words[i])
		}
	}
}

// Constructs that would not be exact in Lua are refused, with their position.
func TestWhatIsNotExactIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ code, where, why string }{
		"bits of 64":          {"func F(a, b int64) int64 {\n\treturn a | b\n}", "x.go:3", "bits of int64"},
		"bits of unsigned 32": {"func F(a, b uint32) uint32 { return a &^ b }", "x.go:2", "bits of uint32"},
		"no lowest bits":      {"func F(a uint64) uint64 { return a & 0xffffffff }", "x.go:2", "bits of uint64"},
		"exclusive or":        {"func F(a, b uint16) uint16 { return a ^ b }", "x.go:2", "operator ^"},
		"shift out":           {"func F(a int32) int32 { return a << 3 }", "x.go:2", "shifts bits of int32"},
		"float":               {"func F(a float64) int64 { return int64(a) }", "x.go:2", "a float becomes an integer"},
		"map":                 {"func F(m map[int]int) int { return m[1] }", "x.go:2", "index of map"},
		"goroutine":           {"func F() {\n\tgo F()\n}", "x.go:3", "statement"},
		"defer":               {"func F() {\n\tdefer F()\n}", "x.go:3", "statement"},
		"break in a switch":   {"func F(a int) int {\n\tfor range a {\n\t\tswitch a {\n\t\tcase 1:\n\t\t\tbreak\n\t\t}\n\t}\n\treturn a\n}", "x.go:6", "leaves a switch"},
		"library":             {"import \"math\"\n\nfunc F(a float64) float64 { return math.Sqrt(a) }", "x.go:4", "math.Sqrt"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x", "x.go"), []byte("package x\n"+c.code+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Functions(dir, "x", "F")
		if err == nil || !strings.Contains(err.Error(), c.where) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
