package main

import (
	_ "embed"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/plot"
	"github.com/sluicehq/sluice/store"
)

// product is the prefix of the names of Sluice's own rows.
const product = "Sluice"

//go:embed comparison.md.tmpl
var page string

// writeDocs writes the comparison page and its picture.
func writeDocs(dir string, results []*Result) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = t.Execute(&text, map[string]any{
		"Table": markdown(results), "Foretold": results[0].Foretold, "Ours": slices.DeleteFunc(slices.Clone(results), func(r *Result) bool { return !strings.HasPrefix(r.Name, product) }),
		"Results": results, "Better": ahead(results), "Failures": failures(results), "When": time.Now().UTC().Format("2 January 2006"), "Go": runtime.Version(), "Cores": runtime.NumCPU(),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "comparison.md"), []byte(text.String()), 0o644); err != nil {
		return err
	}
	picture, err := os.Create(filepath.Join(dir, "images", "compare.svg"))
	if err != nil {
		return err
	}
	defer picture.Close()
	sc, rep := asReport(results)
	if err := plot.Measured(picture, sc, rep); err != nil {
		return err
	}
	return picture.Close()
}

// ahead lists the columns in which a peer is better than both of Sluice's rows.
func ahead(results []*Result) (all []string) {
	for i, f := range better {
		if f == nil {
			continue
		}
		var names []string
		ours := false
		for _, r := range results {
			if best(results, r, f) {
				names = append(names, r.Name)
				ours = ours || strings.HasPrefix(r.Name, product)
			}
		}
		if !ours && len(names) > 0 {
			all = append(all, heads[i]+": "+strings.Join(names, ", "))
		}
	}
	return all
}

// failures lists the contenders with failed calls, each with the most frequent reason.
func failures(results []*Result) (all []string) {
	for _, r := range results {
		if r.Why != "" {
			all = append(all, r.Name+": "+strings.Join(strings.Fields(r.Why), " "))
		}
	}
	return all
}

// asReport converts the results to a report of a simulation, which package plot can draw.
func asReport(results []*Result) (*sim.Scenario, *sim.Report) {
	sc := &sim.Scenario{Name: "One limit, nine ways to cope with it", About: "40 agents on one key make 240 calls; the provider allows four a second, and 40 at once. make compare",
		Limits: []sim.Limit{{Name: "requests", Unit: sim.Requests, Kind: store.Bucket, Size: limitSize, Burst: limitSize, Window: window}}}
	rep := &sim.Report{Scenario: sc.Name, About: sc.About}
	const bin = time.Second
	for _, r := range results {
		f := sim.Figures{Name: r.Name, Sent: r.Accepted + r.Refused, Throttled: r.Refused, Utilization: r.Used, Makespan: r.Took,
			Ideal: ideal(r.Calls).Seconds(), Calls: r.Calls, Finished: r.Finished, GaveUp: r.Calls - r.Finished,
			Trace: &sim.Trace{Accepted: sim.Counts{Every: bin}, Refused: sim.Counts{Every: bin}}}
		for _, a := range r.log {
			into := &f.Trace.Refused
			if a.accepted {
				into = &f.Trace.Accepted
			}
			i := int(max(a.at.Sub(r.began), 0) / bin)
			for len(into.N) <= i {
				into.N = append(into.N, 0)
			}
			into.N[i]++
		}
		rep.Strategies = append(rep.Strategies, f)
	}
	return sc, rep
}
