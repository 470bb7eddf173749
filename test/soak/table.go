package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// print prints the result for people.
func (r *Result) print(w io.Writer) error {
	fmt.Fprintf(w, "store %s: %d agents with a heartbeat every %gs, and %d tickets a second, for %.0fs; the daemon has %d cores and uses %.2f\n\n",
		r.Store, r.Agents, r.Every, r.Rate, r.Seconds, r.Cores, r.CPU)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "call\tidle p50\tp99\tmax\tloaded p50\tp99\tp99.9\tmax\tcalls\t")
	for _, call := range calls {
		i, l := r.Idle[call], r.Load[call]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t\n", call, us(i.P50), us(i.P99), us(i.Worst), us(l.P50), us(l.P99), us(l.P999), us(l.Worst), l.N)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	m := r.Memory
	fmt.Fprintf(w, "\nmemory: %s idle, %s in the middle, %s at the end, %s at most, and %s of files; %d threads at most\n",
		size(m.Idle), size(m.Middle), size(m.End), size(m.Peak), size(m.Files), r.Threads)
	fmt.Fprintln(w, "\nmeans of the thirds of the time:")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "level\tstart\tmiddle\tend\t\t")
	for _, l := range r.Levels {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%s\t\n", l.Name, l.Start, l.Middle, l.End, l.Unit)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, "error: %s: %d times\n", kind, r.Errors[kind])
	}
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks {
		mark := "ok"
		if !c.OK {
			mark = "LOST"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark, c.Name, c.Detail)
	}
	return t.Flush()
}

func us(n int64) string { return brief(time.Duration(n) * time.Microsecond) }

// brief formats a time with about three digits.
func brief(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func size(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
}
