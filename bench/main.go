// Bench measures Sluice and other limiters side by side: the same shapes, in the
// same run, taking turns, because figures from different runs or machines cannot
// be compared. Ratios are what to read; nanoseconds drift.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// Options say how long to measure.
type Options struct {
	Rounds int           // of which medians are taken
	Slice  time.Duration // of one contender's turn at an allow path
	Wait   time.Duration // of one contender's turn with waiters
}

// Report is everything one run found.
type Report struct {
	Go      string      `json:"go"`
	Threads int         `json:"threads"`
	Rounds  int         `json:"rounds"`
	Allow   []AllowRow  `json:"allow"`
	Waiting []WaitedRow `json:"waiting"`
	Bars    []Bar       `json:"bars"`
}

func main() {
	var opts Options
	flag.IntVar(&opts.Rounds, "rounds", 5, "rounds to take medians of")
	flag.DurationVar(&opts.Slice, "slice", 150*time.Millisecond, "length of one turn at an allow path")
	flag.DurationVar(&opts.Wait, "wait", 3*time.Second, "length of one turn with waiters")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if err := run(opts, *asJSON, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(opts Options, asJSON bool, out, progress io.Writer) error {
	if opts.Rounds < 1 || opts.Slice <= 0 || opts.Wait <= 0 {
		return fmt.Errorf("rounds, slice and wait must be positive")
	}
	report := Report{Go: runtime.Version(), Threads: runtime.GOMAXPROCS(0), Rounds: opts.Rounds}
	for _, s := range shapes() {
		fmt.Fprintf(progress, "measuring: %s\n", s.name)
		rows, err := measureShape(s, opts)
		if err != nil {
			return err
		}
		report.Allow = append(report.Allow, rows...)
	}
	fmt.Fprintf(progress, "measuring: %d waiters at %d/s\n", waitingCallers, waitingRate)
	rows, err := measureWaiting(opts)
	if err != nil {
		return err
	}
	report.Waiting = rows
	report.Bars = bars(report)
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return report.print(out)
}
