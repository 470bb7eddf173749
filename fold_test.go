package sluice_test

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice/inspect"
)

// Clients choose the names of agents and models: a report with 60,000 names had 19 MB.
func TestAReportOfManyNamesIsBounded(t *testing.T) {
	t.Parallel()
	const names = 12_000
	var rep inspect.ResourceReport
	for i := range names {
		c := inspect.CallerReport{Name: fmt.Sprint("agent ", i), FirstSends: 1, Units: map[string]int64{"tokens": 3}}
		if i == names-1 {
			c.FirstSends = 5
		}
		c.Models = map[string]inspect.ModelReport{fmt.Sprint("model ", i): {Sends: c.FirstSends, Units: c.Units}}
		rep.Total.Add(&c)
		rep.Callers = append(rep.Callers, c)
	}
	for range 2 { // again changes nothing
		rep.Fold()
		rep.Sort()
		if n := len(rep.Callers); n != inspect.MaxReportCallers {
			t.Fatalf("%d callers", n)
		}
		if n := len(rep.Total.Models); n != inspect.MaxReportModels {
			t.Fatalf("%d models", n)
		}
		sends, tokens := int64(0), int64(0)
		for _, m := range rep.Total.Models {
			sends, tokens = sends+m.Sends, tokens+m.Units["tokens"]
		}
		var callers int64
		for i := range rep.Callers {
			callers += rep.Callers[i].FirstSends
		}
		if sends != names+4 || tokens != 3*names || callers != names+4 {
			t.Errorf("%d sends and %d tokens for models, %d sends of callers", sends, tokens, callers)
		}
		if most := fmt.Sprint("model ", names-1); rep.Total.Models[most].Sends != 5 {
			t.Error("the model with most sends is not listed")
		}
		if rest := rep.Callers[0]; rest.Name != inspect.ReportOther || rest.FirstSends != names-inspect.MaxReportCallers+1 || len(rest.Models) > inspect.MaxReportModels {
			t.Errorf("the others are %q with %d sends and %d models", rest.Name, rest.FirstSends, len(rest.Models))
		}
	}
}
