package main

import (
	"os/exec"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// own keeps checks to the packages of one module. Otherwise they would look at all that these import as well, to remember what it does: three
// quarters of the time, for a few findings about calls into other modules, which make golangci has.
type own struct {
	module string
	done   map[*analysis.Analyzer]bool
}

// module is the one of the working directory.
func module() string {
	path, err := exec.Command("go", "list", "-m").Output()
	if err != nil {
		return "" // the checks themselves will say what is wrong
	}
	return strings.TrimSpace(string(path))
}

// only has a check, and all that it needs, do nothing elsewhere.
func (o *own) only(a *analysis.Analyzer) {
	if o.done[a] {
		return
	}
	if o.done == nil {
		o.done = map[*analysis.Analyzer]bool{}
	}
	o.done[a] = true
	for _, needed := range a.Requires {
		o.only(needed)
	}
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		if strings.HasPrefix(pass.Pkg.Path()+"/", o.module+"/") {
			return run(pass)
		}
		if a.ResultType == nil {
			return nil, nil
		}
		return reflect.Zero(a.ResultType).Interface(), nil
	}
}
