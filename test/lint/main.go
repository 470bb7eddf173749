// Command lint checks Go code in one pass: what go vet checks, what staticcheck checks, errors that are dropped, and
// assignments that nothing reads. Most of the cost of each is to load and type-check the code, so one program does it once for all.
package main

import (
	"os"
	"runtime/debug"

	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// dropped are functions whose errors need not be looked at: they write to a terminal or a pipe, and a failure cannot be told anywhere else.
var dropped = []string{"fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln"}

func main() {
	// It ends soon: half of its time would go into collecting garbage.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(2 << 30)
	errcheck.DefaultExcludedSymbols = append(errcheck.DefaultExcludedSymbols, dropped...)
	cmd := lintcmd.NewCommand("lint")
	cmd.ParseFlags(os.Args[1:])
	ours := &own{module: module()}
	for _, checks := range [][]*lint.Analyzer{simple.Analyzers, staticcheck.Analyzers, stylecheck.Analyzers, {unused.Analyzer}} {
		for _, c := range checks {
			ours.only(c.Analyzer)
		}
		cmd.AddAnalyzers(checks...)
	}
	bare := append(vet.Suite, ineffassign.Analyzer, narrowed(errcheck.Analyzer))
	for _, a := range bare {
		ours.only(a)
	}
	cmd.AddBareAnalyzers(bare...)
	cmd.Run()
}
