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
	if r.Used != nil {
		fmt.Fprintf(w, "\nAs used: whole tickets (acquire, answer, settle, close), %d agents in 3 classes, a preset's limits and policies; peers make one check\n", usedAgents)
		printAllow(w, r.Used.Memory)
		printFile(w, r.Used.File)
		printRedis(w, r.Used.Redis)
	}
	if len(r.Allow)+len(r.Waiting)+len(r.File)+len(r.Redis)+len(r.Flat) > 0 {
		fmt.Fprintf(w, "\nEasier calls: parts of a ticket, one agent, or fewer limits than users have\n")
	}
	printAllow(w, r.Allow)
	if len(r.Waiting) > 0 {
		fmt.Fprintf(w, "\n%d waiters at %d/s\tof the rate\tpeak\tCPU us/release\tx x/time\tovertaken\tgrants out of order\n", waitingCallers, waitingRate)
	}
	for _, row := range r.Waiting {
		inversions := "-"
		if row.Inversions >= 0 {
			inversions = strconv.Itoa(row.Inversions)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%.1f\t%.2f\t%s\t%s\n", row.Name,
			percent(row.Share, 2), percent(row.Peak, 2), row.CPU, row.Ratio, percent(row.Overtaken, 1), inversions)
	}
	printFile(w, r.File)
	printRedis(w, r.Redis)
	r.printFlat(w)
	r.printMachines(w)
	r.printContended(w)
	r.printProxy(w)
	printStart(w, r.Start)
	if len(r.Bars) > 0 {
		fmt.Fprintf(w, "\nbar\tmeasured\tallowed\t\n")
	}
	for _, b := range r.Bars {
		verdict := "missed"
		if b.Pass {
			verdict = "kept"
		}
		fmt.Fprintf(w, "  %s\t%.4g\t%s\t%s\n", b.What, b.Got, b.Allowed, verdict)
	}
	return w.Flush()
}

func printAllow(w io.Writer, rows []AllowRow) {
	shape := ""
	for _, row := range rows {
		if row.Shape != shape {
			shape = row.Shape
			fmt.Fprintf(w, "\n%s\tns/op\tbest\tallocs/op\tx x/time\tfailed\n", shape)
		}
		fmt.Fprintf(w, "  %s\t%.1f\t%.1f\t%.2f\t%.2f\t%s\n", row.Name, row.NS, row.Best, row.Allocs, row.Ratio, percent(row.Failed, 1))
	}
}

func printFile(w io.Writer, rows []FileRow) {
	crowd := 0
	for _, row := range rows {
		if row.Processes != crowd {
			crowd = row.Processes
			fmt.Fprintf(w, "\na file, %s\tops/s\tbest\tp50 us\tp99 us\tx bare\tleast/mean\tworst\tfailed\n", processes(crowd))
		}
		fmt.Fprintf(w, "  %s\t%.0f\t%.0f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\t%s\n", row.Name,
			row.Rate, row.Best, row.P50, row.P99, row.Ratio, row.Least, row.Worst, percent(row.Failed, 1))
	}
}

func printRedis(w io.Writer, rows []RedisRow) {
	crowd := 0
	for _, row := range rows {
		if row.Callers != crowd {
			crowd = row.Callers
			fmt.Fprintf(w, "\nRedis, %s\tacquires/s\tbest\tx redis_rate\tp50 us\tp99 us\tRedis CPU us\tclient CPU us\tcalls\tfailed\n", callers(crowd))
		}
		fmt.Fprintf(w, "  %s\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%s\n", row.Name,
			row.Rate, row.Best, row.Ratio, row.P50, row.P99, row.Server, row.Client, row.Calls, percent(row.Failed, 1))
	}
}

func (r Report) printFlat(w io.Writer) {
	what := ""
	for _, row := range r.Flat {
		if row.What != what {
			what = row.What
			fmt.Fprintf(w, "\nRedis, %s\tRedis CPU us/acquire\tbest\tx smallest\tof a CPU at rest\n", what)
		}
		if row.Failed != "" {
			fmt.Fprintf(w, "  %d\t%s\n", row.Size, row.Failed)
			continue
		}
		fmt.Fprintf(w, "  %d\t%.2f\t%.2f\t%.2f\t%s\n", row.Size, row.Server, row.Best, row.Ratio, percent(row.Idle, 1))
	}
}

func (r Report) printMachines(w io.Writer) {
	if len(r.Machines) == 0 {
		return
	}
	fmt.Fprintf(w, "\nmachines on one Redis, whole tickets\tdaemons\tdue/s\tdone/s\tRedis CPU us/ticket\tof a CPU\tof a CPU at rest\tcalls\tbytes out\tMB/s out at rest\n")
	for _, row := range r.Machines {
		if row.Failed != "" {
			fmt.Fprintf(w, "  %d\t%s\n", row.Machines, row.Failed)
			continue
		}
		due := "any"
		if row.Rate > 0 {
			due = strconv.Itoa(row.Rate)
		}
		daemons := strconv.Itoa(row.Daemons)
		if row.Lent {
			daemons += ", lent"
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%.0f\t%.1f\t%s\t%s\t%.2f\t%.0f\t%.2f\n", row.Machines, daemons, due, row.Tickets, row.CPU, percent(row.Busy, 0), percent(row.Idle, 1), row.Calls, row.Out, row.IdleOut/1e6)
	}
}

func percent(share float64, digits int) string {
	return strconv.FormatFloat(100*share, 'f', digits, 64) + "%"
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return strconv.Itoa(n) + " processes"
}

func callers(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return strconv.Itoa(n) + " callers"
}
