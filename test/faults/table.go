package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is the result of a campaign.
type table struct {
	Load    string `json:"load"`
	Workers int    `json:"workers"`
	Callers int    `json:"callers_per_worker"`
	Seed    uint64 `json:"seed"`
	Took    string `json:"took"`
	Runs    []*run `json:"runs"`
}

// column is one figure of all runs.
type column struct {
	head, mean string // mean explains the column below the table
	of         func(x *run) string
}

var columns = []column{
	{"fault", "", func(x *run) string { return x.Fault }},
	{"grants", "requests that were let go, of all pools", func(x *run) string { return fmt.Sprint(x.Grants) }},
	{"use", "part of what the rolling limit admits, over the whole load; a window that was free at the start can make it more than all", func(x *run) string { return percent(&x.Use) }},
	{"during", "the same while the fault lasted", func(x *run) string { return percent(x.InFault) }},
	{"store", "errors: the store cannot be reached", func(x *run) string { return fmt.Sprint(x.Errors["store"]) }},
	{"dline", "errors: not before the caller's deadline", func(x *run) string { return fmt.Sprint(x.Errors["deadline"]) }},
	{"other", "other errors", func(x *run) string { return fmt.Sprint(x.others()) }},
	{"late/may", "longest wait past a caller's deadline, and what it may be, in ms: 100, and twice what timers were late in the same run", func(x *run) string { return fmt.Sprintf("%.0f/%.0f", x.Late, x.Allowed) }},
	{"close", "longest time that closing a ticket took", func(x *run) string { return span(&x.Close) }},
	{"error", "from the fault to the first error of the store", func(x *run) string { return span(x.First) }},
	{"noticed", "from the fault to the first gate that says that its store is lost", func(x *run) string { return span(x.Noticed) }},
	{"gap", "longest time without a grant of the rolling pool", func(x *run) string { return span(&x.Gap) }},
	{"back", "from the end of the fault to 80% of the full rate", func(x *run) string { return span(x.Back) }},
	{"most", fmt.Sprintf("most uses in any window (limit %d in %v; cli-flushall: %d), the same with a strict guard (%d), highest level of the bucket (%d), most places at once (%d)",
		rollingSize, window, cliSize, strictSize, bucketBurst, placesSize), func(x *run) string { return fmt.Sprintf("%d/%d/%d/%d", x.Rolling, x.Strict, x.Bucket, x.Places) }},
	{"over", "violations of these limits", func(x *run) string { return fmt.Sprint(x.Breaks) }},
	{"double", "tickets granted twice", func(x *run) string { return fmt.Sprint(x.Double) }},
	{"twice", "requests charged twice; -: the store has lost its counters", func(x *run) string { return number(x.Twice) }},
	{"rules", "", func(x *run) string { return x.result() }},
}

// result summarizes the rules of a run.
func (x *run) result() string {
	if len(x.Broken) > 0 {
		return fmt.Sprintf("BROKEN %d", len(x.Broken))
	}
	return "kept"
}

// others returns the number of errors that have no column of their own.
func (x *run) others() (n int) {
	for kind, k := range x.Errors {
		if kind != "store" && kind != "deadline" {
			n += k
		}
	}
	return n
}

func percent(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100**f)
}

func span(m *millis) string {
	switch {
	case m == nil:
		return "-"
	case *m < 1000:
		return fmt.Sprintf("%.0fms", *m)
	default:
		return fmt.Sprintf("%.1fs", *m/1000)
	}
}

func number(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func (t *table) rows() [][]string {
	var rows [][]string
	for _, x := range t.Runs {
		var row []string
		for _, c := range columns {
			row = append(row, c.of(x))
		}
		rows = append(rows, row)
	}
	return rows
}

func (t *table) caption() string {
	return fmt.Sprintf("%d processes of %d callers, load of %s around each fault, seed %d, took %s", t.Workers, t.Callers, t.Load, t.Seed, t.Took)
}

// text formats the table for a terminal.
func (t *table) text() string {
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	rows := slices.Concat([][]string{heads}, t.rows())
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	fmt.Fprintln(&b, t.caption())
	for _, row := range rows {
		for i, cell := range row {
			if i == 0 || i == len(row)-1 {
				fmt.Fprintf(&b, "%-*s ", widths[i], cell)
			} else {
				fmt.Fprintf(&b, "%*s ", widths[i], cell)
			}
		}
		b.WriteByte('\n')
	}
	for _, c := range columns {
		if c.mean != "" {
			fmt.Fprintf(&b, "  %-8s %s\n", c.head, c.mean)
		}
	}
	for _, x := range t.Runs {
		for _, broken := range x.Broken {
			fmt.Fprintf(&b, "%s: BROKEN: %s\n", x.Fault, broken)
		}
		for _, note := range x.Notes {
			fmt.Fprintf(&b, "%s: %s\n", x.Fault, note)
		}
	}
	return b.String()
}

// markdown formats the table for a document.
func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", t.caption())
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	var heads, rule []string
	for i, c := range columns {
		heads = append(heads, c.head)
		if i == 0 || i == len(columns)-1 {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "---:")
		}
	}
	line(heads)
	line(rule)
	for _, row := range t.rows() {
		line(row)
	}
	b.WriteString("\n")
	for _, c := range columns {
		if c.mean != "" {
			fmt.Fprintf(&b, "- `%s`: %s\n", c.head, c.mean)
		}
	}
	b.WriteString("\n| fault | what happens |\n| --- | --- |\n")
	for _, x := range t.Runs {
		line([]string{x.Fault, x.What})
	}
	return b.String()
}
