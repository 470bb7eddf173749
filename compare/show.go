package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// line formats a result in one line.
func (r *Result) line() string {
	text := fmt.Sprintf("%d of %d calls, %d 429s, %.0f s (%.2f times ideal), urgent %.1f s, %.0f requests/s without a limit",
		r.Finished, r.Calls, r.Refused, r.Took, r.OfIdeal, r.Urgent, r.Rate)
	if r.Why != "" {
		text += "; most failures: " + r.Why
	}
	return text
}

var heads = []string{"", "finished", "429s", "quota used", "time", "of ideal", "urgent call: median, p95", "fairness", "added", "requests/s", "memory"}

// cells formats a result as a row of the table.
func (r *Result) cells() []string {
	fair, memory := "-", ""
	if !math.IsNaN(r.Jain) {
		fair = fmt.Sprintf("%.2f", r.Jain)
	}
	if r.Memory > 0 {
		memory = fmt.Sprintf("%.0f MB", r.Memory)
	}
	return []string{r.Name, fmt.Sprintf("%d of %d", r.Finished, r.Calls), fmt.Sprint(r.Refused), fmt.Sprintf("%.0f%%", 100*r.Used),
		fmt.Sprintf("%.0f s", r.Took), fmt.Sprintf("%.2f", r.OfIdeal), fmt.Sprintf("%.1f s, %.1f s", r.Urgent, r.UrgentAt), fair,
		fmt.Sprintf("%.1f ms", r.Added), rate(r.Rate), none(memory)}
}

// rate formats requests per second: a slow contender is not shown as 0.
func rate(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

// table formats all results for a terminal.
func table(results []*Result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, r := range results {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	w.Flush()
	return b.String()
}

// markdown formats all results for the docs. The best value of each column is bold.
func markdown(results []*Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range results {
		cells := r.cells()
		for i, f := range better {
			if f != nil && best(results, r, f) {
				cells[i] = "**" + cells[i] + "**"
			}
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// better has a function for each column whose value is larger for better results; nil: the column is not compared.
var better = []func(*Result) float64{
	nil,
	func(r *Result) float64 { return float64(r.Finished) },
	func(r *Result) float64 { return -float64(r.Refused) },
	func(r *Result) float64 { return math.Round(100 * r.Used) },
	whole(func(r *Result) float64 { return -math.Round(r.Took) }),
	whole(func(r *Result) float64 { return -math.Round(100 * r.OfIdeal) }),
	whole(func(r *Result) float64 { return -math.Round(10 * r.Urgent) }),
	whole(func(r *Result) float64 {
		if math.IsNaN(r.Jain) {
			return -1
		}
		return math.Round(100 * r.Jain)
	}),
	func(r *Result) float64 {
		if r.Name == direct {
			return math.Inf(-1)
		}
		return -math.Round(10 * r.Added)
	},
	func(r *Result) float64 {
		if r.Name == direct {
			return math.Inf(-1)
		}
		return r.Rate
	},
	func(r *Result) float64 {
		if r.Memory == 0 {
			return math.Inf(-1)
		}
		return -r.Memory
	},
}

// whole ranks a result only if all calls finished, because contenders that give up are done early.
func whole(f func(*Result) float64) func(*Result) float64 {
	return func(r *Result) float64 {
		if r.Finished < r.Calls {
			return math.Inf(-1)
		}
		return f(r)
	}
}

func best(results []*Result, r *Result, f func(*Result) float64) bool {
	own := f(r)
	if math.IsInf(own, -1) {
		return false
	}
	for _, other := range results {
		if f(other) > own {
			return false
		}
	}
	return true
}
