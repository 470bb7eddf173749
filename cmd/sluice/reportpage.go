package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// Bounds on a page. Clients choose the names of agents and models.
const (
	pageResources = 100
	pageModels    = 50 // of a resource
	pageBars      = 240
)

// page is a report as a page for a browser.
type page struct {
	Title, Lead  string
	Foot         []string // how to read it; empty means the text of a report
	Since, Until string
	Figures      []pageFigure
	Resources    []pageResource
	More         int // resources that are not on the page
	Idle         string
	Against      []pageComparison
}

// pageFigure is one figure of the summary.
type pageFigure struct {
	Name, Value, Note string
	Bad               bool
}

type pageResource struct {
	Name    string
	Note    string // says that less is remembered than was asked for
	Plot    *pagePlot
	Callers pageTable
	Models  pageTable
	Notes   []string
}

type pageComparison struct {
	Name       string
	Figures    pageTable
	Confidence pageTable
}

// pageTable is a table without empty columns.
type pageTable struct {
	Heads []pageCell
	Rows  [][]pageCell
}

type pageCell struct {
	Text  string
	Class string
}

func pageFile(path string) *outFile { return &outFile{flag: "--html", what: "page", path: path} }

// checkPage checks that the page can be written, before the store is read.
func checkPage(path string, asJSON bool) error {
	switch {
	case path == "":
		return &failure{code: exitUsage, message: "--html: the name of the file is empty", hint: "--html report.html writes a file, --html - prints the page"}
	case path == "-" && asJSON:
		return &failure{code: exitUsage, message: "--html - and --json both print to standard output", hint: "--html FILE --json writes the page into a file"}
	case path == "-":
		return nil
	}
	return pageFile(path).check()
}

// pageOf returns the page of a report made at the time now.
func pageOf(r *reportJSON, now time.Time) *page {
	p := &page{Title: "Sluice report", Since: moment(r.Since), Until: moment(now)}
	s := &screen{now: now}
	var total callerReport
	var idle []string
	var shown []*resourceReportJSON
	for i := range r.Resources {
		one := &r.Resources[i]
		if one.Total.sends() == 0 && one.Total.Throttled == 0 {
			idle = append(idle, one.Name)
			continue
		}
		total.CallerReport.Add(&one.Total.CallerReport)
		shown = append(shown, one)
	}
	p.Idle = s.Names(idle, ", ", 20, nameWidth)
	total = withMoney(total.CallerReport)
	p.Figures = pageFigures(&total)
	p.More = max(len(shown)-pageResources, 0)
	shown = shown[:len(shown)-p.More]
	axis := axisOf(shown)
	for _, one := range shown {
		p.Resources = append(p.Resources, s.pageResource(one, r.Since, axis.plot(one.Total.Minutes, one.throttled)))
	}
	for i := range r.Against {
		if c := &r.Against[i]; !c.quiet() && len(p.Against) < pageResources {
			p.Against = append(p.Against, pageComparison{Name: s.Text(c.Name, nameWidth) + ": before and after", Figures: asPageTable(beforeAfter(c.Before, c.After)), Confidence: asPageTable(judgements(c.Confidence))})
		}
	}
	return p
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// pageFigures summarizes the report.
func pageFigures(c *callerReport) []pageFigure {
	wait := time.Duration(c.WaitedMS) * time.Millisecond
	list := []pageFigure{
		{Name: "requests sent", Value: show.Count(c.sends())},
		{Name: "refused by the provider (429)", Value: show.Count(c.Throttled), Bad: c.Throttled > 0},
		{Name: "retries", Value: show.Count(c.Retries), Note: show.Percent(c.retryShare()) + " of what was sent"},
		{Name: "waited at the gate", Value: show.Span(wait), Note: show.Span(wait/time.Duration(max(c.sends(), 1))) + " for each request"},
	}
	if c.Held > 0 {
		list = append(list, pageFigure{
			Name: "held for a full limit", Value: show.Count(c.Held),
			Note: "sent at once, each would have gone over the limit",
		})
	}
	if c.USD > 0 {
		list = append(list, pageFigure{Name: "spent (usd)", Value: usdText(c.USD), Note: "list prices; " + usdText(c.RetryUSD) + " of it for retries"})
	}
	if c.HeldUSD > 0 {
		list = append(list, pageFigure{
			Name: "price of held requests (usd)", Value: usdText(c.HeldUSD),
			Note: "list price of the requests that waited for a full limit",
		})
	}
	return list
}

func (s *screen) pageResource(r *resourceReportJSON, asked time.Time, plot *pagePlot) pageResource {
	one := pageResource{Name: s.Text(r.Name, nameWidth), Note: strings.TrimSpace(shorter(r.Since, asked)), Plot: plot, Callers: asPageTable(s.callers(r))}
	if more := len(r.Callers) - manyCallers; more > 0 {
		one.Notes = append(one.Notes, fmt.Sprintf("%d more callers are not listed: sluice report --json lists them all.", more))
	}
	models := s.modelTable(r.Total.Models)
	if more := len(models.Rows) - pageModels; more > 0 {
		models.Rows = models.Rows[:pageModels]
		one.Notes = append(one.Notes, fmt.Sprintf("%d more models are not listed: sluice report --json lists them all.", more))
	}
	one.Models = asPageTable(models)
	if n := r.Total.WouldWait; n > 0 {
		one.Notes = append(one.Notes, fmt.Sprintf("%d requests would have been held or refused. Mode observe sends every request at once.", n))
	}
	if n := r.Total.Slowed; n > 0 {
		one.Notes = append(one.Notes, fmt.Sprintf("%d requests were slowed by a budget that has to last until its reset.", n))
	}
	if n := r.Total.Unpriced; n > 0 {
		one.Notes = append(one.Notes, fmt.Sprintf("%d requests were for models without a known price. They count 10 usd per million tokens.", n))
	}
	return one
}

// modelTable lists what was sent for each model, most first. It is empty for resources without models.
func (s *screen) modelTable(models map[string]inspect.ModelReport) *show.Table {
	t := &show.Table{Columns: []show.Column{
		{Head: "model"}, {Head: "sent", Right: true}, {Head: "retries", Right: true}, {Head: "input tokens", Right: true},
		{Head: "output tokens", Right: true}, {Head: "tokens", Right: true},
	}}
	for _, name := range modelsBySends(models) {
		m := models[name]
		tokens := func(unit string) show.Cell {
			if m.Units[unit] == 0 {
				return show.Cell{}
			}
			return show.Cell{Text: show.Count(m.Units[unit])}
		}
		t.Add(show.Cell{Text: s.named(name, m.Requested...)}, show.Cell{Text: show.Count(m.Sends)}, show.Cell{Text: show.Count(m.Retries)},
			tokens("input_tokens"), tokens("output_tokens"), tokens("tokens"))
	}
	return t
}

// modelsBySends returns the names of models, most sends first.
func modelsBySends(models map[string]inspect.ModelReport) []string {
	names := slices.SortedFunc(maps.Keys(models), func(a, b string) int {
		return cmp.Or(cmp.Compare(models[b].Sends, models[a].Sends), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// asPageTable converts a table and leaves out empty columns.
func asPageTable(t *show.Table) pageTable {
	var out pageTable
	var kept []int
	for i, c := range t.Columns {
		if !slices.ContainsFunc(t.Rows, func(row []show.Cell) bool { return i < len(row) && row[i].Text != "" }) {
			continue
		}
		kept = append(kept, i)
		head := pageCell{Text: c.Head}
		if c.Right {
			head.Class = "n"
		}
		out.Heads = append(out.Heads, head)
	}
	for _, row := range t.Rows {
		var cells []pageCell
		for at, i := range kept {
			cell := pageCell{Class: out.Heads[at].Class}
			if i < len(row) {
				cell.Text = row[i].Text
				switch row[i].Colour {
				case show.Amber:
					cell.Class += " bad"
				case show.Green:
					cell.Class += " good"
				case show.Bold:
					cell.Class += " all"
				}
			}
			cells = append(cells, cell)
		}
		out.Rows = append(out.Rows, cells)
	}
	return out
}
