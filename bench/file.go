package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// FileRow is the cost of sharing a limit through a file, with a number of processes that all use it at the same time.
type FileRow struct {
	Processes int     `json:"processes"`
	Name      string  `json:"name"`
	Rate      float64 `json:"ops_per_second"` // all processes together
	Best      float64 `json:"best_ops_per_second"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	Ratio     float64 `json:"cost_ratio"` // compared with the bare lock and as many processes
	// Least is the number of operations of the slowest process, as a share of the mean. Worst is the same in the worst
	// round.
	Least  float64 `json:"least_share"`
	Worst  float64 `json:"worst_least_share"`
	Failed float64 `json:"failed"` // share of calls that were wrongly refused
}

// fileContender is one way for processes on one machine to share a limit through a file.
type fileContender struct {
	name string
	// every is the number of operations between two reads of the clock. If an operation takes a microsecond, reading
	// the clock after each one would distort the figures.
	every   int
	prepare func(dir string) error // runs before the processes start; nil: nothing to do
	open    func(dir string) (fileTaker, error)
}

// fileTaker is an opened contender in one process.
type fileTaker struct {
	take func() (bool, error) // false: refused or timed out
	rest func() error         // called after every fileBlock operations, not timed; may be nil
	done func() error
}

const fileBlock = 256

// fileTurn is a contender with a number of processes, and its results.
type fileTurn struct {
	fileContender
	processes int
	seen      []FileRow
}

func measureFile(opts Options, progress io.Writer) ([]FileRow, error) {
	// A signal ends the benchmark in order, so that no processes or directories remain.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal stops at once
	rows, err := measureFileUntil(ctx, slices.DeleteFunc(slices.Clone(fileContenders), isUsed), opts, progress)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("interrupted: %w", err)
	}
	return rows, err
}

func measureFileUntil(ctx context.Context, contenders []fileContender, opts Options, progress io.Writer) ([]FileRow, error) {
	var turns []*fileTurn
	for _, n := range slices.Compact([]int{1, opts.Processes}) {
		for _, c := range contenders {
			turns = append(turns, &fileTurn{fileContender: c, processes: n})
		}
	}
	for round := range opts.Rounds {
		fmt.Fprintf(progress, "measuring: processes that share a file, round %d of %d\n", round+1, opts.Rounds)
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			results, err := runFile(ctx, t.fileContender, t.processes, opts.File)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.name, processes(t.processes), err)
			}
			t.seen = append(t.seen, judgeFile(results))
		}
	}
	return fileRows(turns), nil
}

// judgeFile combines the results of all processes of one turn into a row.
func judgeFile(results []fileResult) FileRow {
	var (
		row           FileRow
		all           spread
		asked, passed int
		least         = results[0].Passed
	)
	for _, r := range results {
		// Each process counts with its own timed part.
		if r.Timed > 0 {
			row.Rate += float64(r.Passed) / r.Timed.Seconds()
		}
		asked += r.Asked
		passed += r.Passed
		least = min(least, r.Passed)
		all.merge(r.Took)
	}
	row.P50, row.P99 = micros(all.quantile(0.50)), micros(all.quantile(0.99))
	if asked > 0 {
		row.Failed = 1 - float64(passed)/float64(asked)
	}
	if passed > 0 {
		row.Least = float64(least*len(results)) / float64(passed)
	}
	return row
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func fileRows(turns []*fileTurn) []FileRow {
	var rows []FileRow
	for _, t := range turns {
		row := FileRow{
			Processes: t.processes,
			Name:      t.name,
			Rate:      medianOf(t.seen, func(r FileRow) float64 { return r.Rate }),
			P50:       medianOf(t.seen, func(r FileRow) float64 { return r.P50 }),
			P99:       medianOf(t.seen, func(r FileRow) float64 { return r.P99 }),
			Least:     medianOf(t.seen, func(r FileRow) float64 { return r.Least }),
			Failed:    medianOf(t.seen, func(r FileRow) float64 { return r.Failed }),
			Worst:     1,
		}
		for _, one := range t.seen {
			row.Best = max(row.Best, one.Rate)
			row.Worst = min(row.Worst, one.Least)
		}
		rows = append(rows, row)
	}
	for i := range rows {
		if r := &rows[i]; r.Rate > 0 {
			r.Ratio = findFile(rows, r.Processes, nameBare).Rate / r.Rate
		}
	}
	return rows
}

func findFile(rows []FileRow, processes int, name string) FileRow {
	for _, r := range rows {
		if r.Processes == processes && r.Name == name {
			return r
		}
	}
	return FileRow{}
}
