package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

func (r Report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %d threads, medians of %d rounds, contenders taking turns\n", r.Go, r.Threads, r.Rounds)
	shape := ""
	for _, row := range r.Allow {
		if row.Shape != shape {
			shape = row.Shape
			fmt.Fprintf(w, "\n%s\tns/op\tbest\tallocs/op\tx x/time\tfailed\n", shape)
		}
		fmt.Fprintf(w, "  %s\t%.1f\t%.1f\t%.2f\t%.2f\t%s\n", row.Name, row.NS, row.Best, row.Allocs, row.Ratio, percent(row.Failed, 1))
	}
	fmt.Fprintf(w, "\n%d waiters at %d/s\tof the rate\tpeak\tCPU us/release\tx x/time\tovertaken\tgrants out of order\n", waitingCallers, waitingRate)
	for _, row := range r.Waiting {
		inversions := "-"
		if row.Inversions >= 0 {
			inversions = strconv.Itoa(row.Inversions)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%.1f\t%.2f\t%s\t%s\n", row.Name,
			percent(row.Share, 2), percent(row.Peak, 2), row.CPU, row.Ratio, percent(row.Overtaken, 1), inversions)
	}
	if len(r.Bars) > 0 {
		fmt.Fprintf(w, "\nbar\tmeasured\tallowed\t\n")
	}
	for _, b := range r.Bars {
		verdict := "miss"
		if b.Pass {
			verdict = "pass"
		}
		allowed := fmt.Sprintf("<= %g", b.Most)
		if b.Least > 0 {
			allowed = fmt.Sprintf("%g .. %g", b.Least, b.Most)
		}
		fmt.Fprintf(w, "  %s\t%.4g\t%s\t%s\n", b.What, b.Got, allowed, verdict)
	}
	return w.Flush()
}

func percent(share float64, digits int) string {
	return strconv.FormatFloat(100*share, 'f', digits, 64) + "%"
}
