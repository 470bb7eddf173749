package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/show"
)

// comparison is one resource before and after.
type comparison struct {
	Name    string             `json:"name"`
	Before  *figures           `json:"before"` // nil if the resource was not there
	After   *figures           `json:"after"`
	Callers []callerComparison `json:"callers"`
	// Confidence says how sure the changes are; empty if the resource was not there before or after.
	Confidence []judgement `json:"confidence"`
}

type callerComparison struct {
	Name   string   `json:"name"`
	Before *figures `json:"before"`
	After  *figures `json:"after"`
}

// figures are the figures by which a period is judged.
type figures struct {
	Sends    int64 `json:"sends"`
	PeakPerS int64 `json:"peak_per_s"`
	// MeanPerS is the mean over TookS, at least a second.
	MeanPerS   float64 `json:"mean_per_s"`
	Throttled  int64   `json:"throttled"`
	RetryShare float64 `json:"retry_share"`
	WaitedMS   int64   `json:"waited_ms"`
	// TookS is the time from the first send to the last. It covers whole minutes if ByMinute is set.
	TookS    float64 `json:"took_s"`
	ByMinute bool    `json:"by_minute"`
	RetryUSD float64 `json:"retry_usd"`
}

// figuresOf returns the figures of a caller; nil for none. If byMinute is set, its times are whole minutes.
func figuresOf(c *callerReport, byMinute bool) *figures {
	if c == nil {
		return nil
	}
	f := &figures{
		Sends: c.sends(), PeakPerS: c.PeakPerS, MeanPerS: c.MeanPerS, Throttled: c.Throttled, RetryShare: c.retryShare(),
		WaitedMS: c.WaitedMS, ByMinute: byMinute, RetryUSD: c.RetryUSD,
	}
	switch {
	case !byMinute:
		f.TookS = max(c.LastSend.Sub(c.FirstSend).Seconds(), 0)
		f.MeanPerS = float64(f.Sends) / max(f.TookS, 1)
	case c.MeanPerS > 0:
		f.TookS = math.Round(float64(f.Sends) / c.MeanPerS)
	}
	return f
}

// sides are the reports of one caller: after, and before. A nil one is not there.
type sides [2]*callerReport

// figures returns the figures before and after. Their times are exact only if they are known for both.
func (s *sides) figures() (before, after *figures) {
	byMinute := s[0].timedByMinute() || s[1].timedByMinute()
	return figuresOf(s[1], byMinute), figuresOf(s[0], byMinute)
}

// timedByMinute reports whether the first and the last send are known only to the minute.
func (c *callerReport) timedByMinute() bool { return c != nil && c.sends() > 0 && c.FirstSend.IsZero() }

// maxReport bounds the size of a saved report.
const maxReport = 64 << 20

// loadReport reads a saved report.
func loadReport(name string) (*reportJSON, error) {
	bad := func(message string) (*reportJSON, error) {
		return nil, &failure{code: exitUsage, message: "--against: " + message, hint: "it takes a file that sluice report --json has printed"}
	}
	f, err := os.Open(name)
	if err != nil {
		return bad(err.Error())
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	switch {
	case err != nil:
		return bad(err.Error())
	case len(text) > maxReport:
		return bad(fmt.Sprintf("%s is larger than %d MB", name, maxReport>>20))
	}
	var r reportJSON
	if err := json.Unmarshal(text, &r); err != nil {
		return bad(fmt.Sprintf("%s is not a report: %v", name, err))
	}
	if r.Since.IsZero() || r.Resources == nil {
		return bad(name + " is not a report: it has no since, or no resources")
	}
	return &r, nil
}

// compare compares a report with an earlier one: the resources of either, or the named ones.
func compare(before, after *reportJSON, only []string) []comparison {
	list := []comparison{}
	names := union(resourcesIn(after), resourcesIn(before))
	for _, name := range names {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		b, a := resourceIn(before, name), resourceIn(after, name)
		c := comparison{Name: name, Callers: []callerComparison{}, Confidence: []judgement{}}
		if b != nil && a != nil {
			c.Confidence = confidence(&b.Total, &a.Total)
		}
		var totals sides
		var callers []string
		sidesOf := map[string]*sides{}
		for side, r := range [...]*resourceReportJSON{a, b} {
			if r == nil {
				continue
			}
			totals[side] = &r.Total
			for i := range r.Callers {
				caller := r.Callers[i].Name
				if sidesOf[caller] == nil {
					sidesOf[caller], callers = new(sides), append(callers, caller)
				}
				sidesOf[caller][side] = &r.Callers[i]
			}
		}
		c.Before, c.After = totals.figures()
		for _, caller := range callers {
			one := callerComparison{Name: caller}
			one.Before, one.After = sidesOf[caller].figures()
			c.Callers = append(c.Callers, one)
		}
		list = append(list, c)
	}
	return list
}

func resourcesIn(r *reportJSON) (names []string) {
	for i := range r.Resources {
		names = append(names, r.Resources[i].Name)
	}
	return names
}

func resourceIn(r *reportJSON, name string) *resourceReportJSON {
	if i := slices.IndexFunc(r.Resources, func(one resourceReportJSON) bool { return one.Name == name }); i >= 0 {
		return &r.Resources[i]
	}
	return nil
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			all = append(all, s)
		}
	}
	return all
}

// comparisons shows before and after.
func (s *screen) comparisons(list []comparison) {
	for i := range list {
		c := &list[i]
		if c.quiet() {
			continue
		}
		s.line("\n%s  before and after", s.Paint(show.Bold, s.Text(c.Name, nameWidth)))
		s.table(beforeAfter(c.Before, c.After))
		if len(c.Confidence) > 0 {
			s.line("")
			s.table(judgements(c.Confidence))
		}
		if len(c.Callers) > 0 {
			s.line("")
			s.table(s.callersBeforeAfter(c.Callers[:min(len(c.Callers), manyCallers)]))
		}
		if more := len(c.Callers) - manyCallers; more > 0 {
			s.line("  and %d more callers: --json lists them all", more)
		}
	}
}

// quiet reports whether nothing was sent, before or after.
func (c *comparison) quiet() bool {
	return (c.Before == nil || c.Before.Sends+c.Before.Throttled == 0) && (c.After == nil || c.After.Sends+c.After.Throttled == 0)
}

// measure is one line of the table of before and after.
type measure struct {
	name string
	of   func(*figures) float64
	text func(float64) string
	good bool // a smaller value is better
	// byMinute is the name if times are known only to the minute; empty means name.
	byMinute string
}

var measures = []measure{
	{"sent", func(f *figures) float64 { return float64(f.Sends) }, whole, false, ""},
	{"refused (429)", func(f *figures) float64 { return float64(f.Throttled) }, whole, true, ""},
	{"share of retries", func(f *figures) float64 { return f.RetryShare }, show.Percent, true, ""},
	{"peak a second", func(f *figures) float64 { return float64(f.PeakPerS) }, whole, false, ""},
	{"mean a second", func(f *figures) float64 { return f.MeanPerS }, show.Rate, false, "mean a second, by minutes"},
	{"waited in all", func(f *figures) float64 { return float64(f.WaitedMS) / 1000 }, seconds, false, ""},
	{"waited for each send", func(f *figures) float64 { return float64(f.WaitedMS) / 1000 / float64(max(f.Sends, 1)) }, seconds, false, ""},
	{"from first to last send", func(f *figures) float64 { return f.TookS }, seconds, false, "from first to last minute"},
	{"spent on retries (usd)", func(f *figures) float64 { return f.RetryUSD }, dollars, true, ""},
}

func whole(x float64) string   { return show.Count(int64(x)) }
func seconds(x float64) string { return show.Span(time.Duration(min(x, 1e9) * float64(time.Second))) }
func dollars(x float64) string { return fmt.Sprintf("%.2f", x) }

func beforeAfter(before, after *figures) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: ""}, {Head: "before", Right: true}, {Head: "after", Right: true}, {Head: "change", Right: true, Drop: 1},
	}}
	for _, m := range measures {
		b, from := m.value(before)
		a, to := m.value(after)
		name := m.name
		if m.byMinute != "" && (before.isByMinute() || after.isByMinute()) {
			name = m.byMinute
		}
		row := []show.Cell{{Text: name}, {Text: from}, {Text: to}, {}}
		if before != nil && after != nil {
			row[3] = show.Cell{Text: change(b, a), Colour: m.colour(b, a)}
		}
		t.Add(row...)
	}
	return t
}

func (f *figures) isByMinute() bool { return f != nil && f.ByMinute }

// value returns a figure and its text; "-" if there are no figures.
func (m *measure) value(f *figures) (float64, string) {
	if f == nil {
		return 0, "-"
	}
	return m.of(f), m.text(m.of(f))
}

func (m *measure) colour(before, after float64) show.Colour {
	switch {
	case !m.good || before == after:
		return show.Plain
	case after < before:
		return show.Green
	}
	return show.Amber
}

// change formats by how much a figure changed.
func change(before, after float64) string {
	switch {
	case before == after:
		return "="
	case before == 0:
		return "new"
	case after == 0:
		return "gone"
	}
	part := (after - before) / before * 100
	if part > 999 {
		return fmt.Sprintf("x%.0f", min(after/before, 1e9))
	}
	return fmt.Sprintf("%+.0f%%", part)
}

// callersBeforeAfter shows the same for each caller, one per line.
func (s *screen) callersBeforeAfter(list []callerComparison) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "caller", Least: 10}, {Head: "sent", Right: true}, {Head: "429s", Right: true}, {Head: "retries", Right: true},
		{Head: "peak/s", Right: true, Drop: 2}, {Head: "mean/s", Right: true, Drop: 3}, {Head: "waited", Right: true, Drop: 1},
	}}
	for i := range list {
		c := &list[i]
		row := []show.Cell{{Text: s.Text(c.Name, nameWidth)}}
		for _, m := range measures[:6] {
			b, from := m.value(c.Before)
			a, to := m.value(c.After)
			row = append(row, show.Cell{Text: from + s.arrow() + to, Colour: m.colour(b, a)})
		}
		t.Add(row...)
	}
	return t
}

func (s *screen) arrow() string {
	if s.ASCII {
		return " -> "
	}
	return " → "
}
