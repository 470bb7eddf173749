package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehq/sluice/sim"
)

// gate is the name of Sluice's own row.
const gate = "sluice"

// printReport shows a report to people.
func printReport(w io.Writer, rep *sim.Report, p painter) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, p.paint(bold, rep.Scenario))
	if rep.About != "" {
		fmt.Fprint(b, ": ", rep.About)
	}
	fmt.Fprintln(b)
	fmt.Fprintf(b, "\nLight tail (delays lognormal, median %v, sigma %.1f)\n", sim.LightTail.Median, sim.LightTail.Sigma)
	printTable(b, rep.Strategies, p)
	fmt.Fprintf(b, "\nHeavy tail (median %v, sigma %.1f)\n", sim.HeavyTail.Median, sim.HeavyTail.Sigma)
	printTable(b, rep.HeavyTail, p)
	if len(rep.LeftOut) > 0 {
		fmt.Fprintf(b, "\nLeft out by the scenario: %s.\n", strings.Join(rep.LeftOut, "; "))
	}
	fmt.Fprintf(b, "\n%s\n", conclusion(rep.Strategies))
	return b.Flush()
}

type cell struct{ text, style string }

var heads = []string{"strategy", "finished", "jobs", "sent", "refused", "retries", "peak/s", "quota used", "time", "ideal", "wasted", "starved"}

func printTable(w io.Writer, rows []sim.Figures, p painter) {
	table := [][]cell{nil}
	for _, h := range heads {
		table[0] = append(table[0], cell{h, bold})
	}
	for _, f := range rows {
		table = append(table, row(f))
	}
	width := make([]int, len(heads))
	for _, cells := range table {
		for i, c := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
		}
	}
	gaveUp := false
	for _, f := range rows {
		gaveUp = gaveUp || f.GaveUp > 0
	}
	for _, cells := range table {
		var line strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text))
			switch {
			case i == 0:
				line.WriteString("  " + p.paint(c.style, c.text) + pad)
			case i == len(cells)-1:
				line.WriteString("  " + p.paint(c.style, c.text))
			default:
				line.WriteString("  " + pad + p.paint(c.style, c.text))
			}
		}
		fmt.Fprintln(w, line.String())
	}
	if gaveUp {
		fmt.Fprintln(w, "  * until it had finished or given up; not all calls were made")
	}
}

func row(f sim.Figures) []cell {
	name, short, refused, starved := plain, plain, plain, plain
	if f.Name == gate {
		name = green
	}
	if f.Finished < f.Calls {
		short = red
	}
	if f.Throttled > 0 {
		refused = red
	}
	took := span(f.Makespan)
	if f.GaveUp > 0 {
		took += "*"
	}
	who := "none"
	if len(f.Starved) > 0 {
		who, starved = strings.Join(f.Starved, " "), red
	}
	return []cell{
		{f.Name, name},
		{fmt.Sprintf("%d/%d", f.Finished, f.Calls), short},
		{fmt.Sprintf("%d/%d", f.JobsFinished, f.Jobs), short},
		{fmt.Sprint(f.Sent), plain},
		{fmt.Sprint(f.Throttled), refused},
		{fmt.Sprintf("%.1f%%", f.RetryShare*100), plain},
		{fmt.Sprint(f.PeakRate), plain},
		{fmt.Sprintf("%.1f%%", f.Utilization*100), plain},
		{took, plain},
		{span(f.Ideal), plain},
		{fmt.Sprintf("$%.2f", f.WastedUSD), plain},
		{who, starved},
	}
}

// span formats seconds for people.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// conclusion returns the result in one line.
func conclusion(rows []sim.Figures) string {
	i := slices.IndexFunc(rows, func(f sim.Figures) bool { return f.Name == gate })
	if i < 0 {
		return ""
	}
	f := rows[i]
	line := fmt.Sprintf("sluice finished %d of %d calls in %s (ideal %s), %d refused, %.1f%% of the quota used.",
		f.Finished, f.Calls, span(f.Makespan), span(f.Ideal), f.Throttled, f.Utilization*100)
	var best *sim.Figures
	for i := range rows {
		if r := &rows[i]; r.Name != gate && r.Finished == r.Calls && (best == nil || r.Makespan < best.Makespan) {
			best = r
		}
	}
	if best == nil {
		return line + " No other strategy finished them all." + byClass(&f)
	}
	return line + fmt.Sprintf(" The fastest other that finished them all, %s, took %s and was refused %d times.",
		best.Name, span(best.Makespan), best.Throttled) + byClass(&f) + byClass(best)
}

// byClass describes how long each class took, if there are several.
func byClass(f *sim.Figures) string {
	if len(f.Classes) < 2 {
		return ""
	}
	var times []string
	for _, c := range f.Classes {
		times = append(times, c.Name+" "+span(c.Makespan))
	}
	return fmt.Sprintf("\n%s by class: %s.", f.Name, strings.Join(times, ", "))
}
