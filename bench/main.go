// Bench measures Sluice and other limiters side by side. All contenders take turns in the same run with the same
// shapes, because figures from different runs or machines are not comparable. Read the ratios; the nanoseconds drift.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options says how long to measure.
type Options struct {
	Rounds int           // number of rounds, for medians
	Slice  time.Duration // length of one contender's turn at an allow path
	Wait   time.Duration // length of one contender's turn with waiters
	File   time.Duration // length of one contender's turn at a shared file
	// Processes is the number of processes that share the file, besides the runs with one.
	Processes int
	Redis     time.Duration // length of one contender's turn at a Redis
	Proxy     time.Duration // length of one contender's turn as a proxy
	Starts    int           // number of times that each command is started
	Previous  string        // path of another sluice whose start is measured; empty: none
	// Crowd is the largest number of agents, waiters and past requests. It should not affect the cost.
	Crowd int
	Only  []string // parts to run; empty: all
}

// The parts of a run.
const (
	partUsed    = "used"
	partAllow   = "allow"
	partWaiting = "waiting"
	partFile    = "file"
	partRedis   = "redis"
	partFlat    = "flat"
	partProxy   = "proxy"
	partStart   = "start"
	// The following run only if they are named, because they take minutes and measure no peer.
	partMachines  = "machines"
	partDaemons   = "daemons"
	partContended = "contended"
)

var named = []string{partMachines, partDaemons, partContended}

var parts = []string{partUsed, partAllow, partWaiting, partFile, partRedis, partFlat, partProxy, partStart, partMachines, partDaemons, partContended}

func (o Options) check() error {
	if o.Rounds < 1 || o.Slice <= 0 || o.Wait <= 0 || o.File <= 0 || o.Redis <= 0 || o.Proxy <= 0 || o.Starts < 1 {
		return errors.New("rounds, slice, wait, file, redis, proxy and starts must be positive")
	}
	if o.Processes < 1 || o.Processes > maxProcesses {
		return fmt.Errorf("processes must be 1 to %d", maxProcesses)
	}
	if o.Crowd < minCrowd || o.Crowd > maxCrowd {
		return fmt.Errorf("crowd must be %d to %d", minCrowd, maxCrowd)
	}
	for _, part := range o.Only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("part %q: known are %s", part, strings.Join(parts, ", "))
		}
	}
	return nil
}

const (
	maxProcesses = 256
	minCrowd     = 10
	maxCrowd     = 1_000_000
)

func (o Options) has(part string) bool {
	return len(o.Only) == 0 && !slices.Contains(named, part) || slices.Contains(o.Only, part)
}

// Report is the result of a run.
type Report struct {
	Go      string      `json:"go"`
	Threads int         `json:"threads"`
	Rounds  int         `json:"rounds"`
	Used    *Used       `json:"used,omitempty"`
	Allow   []AllowRow  `json:"allow"`
	Waiting []WaitedRow `json:"waiting"`
	File    []FileRow   `json:"file"`
	Redis   []RedisRow  `json:"redis"`
	Flat    []FlatRow   `json:"flat"`
	Proxy   []ProxyRow  `json:"proxy"`
	Start   []StartRow  `json:"start,omitempty"`
	// Machines measures many processes on one Redis.
	Machines []MachinesRow `json:"machines,omitempty"`
	// Contended measures a limit that many callers of several processes want.
	Contended []ContendedRow `json:"contended,omitempty"`
	Bars      []Bar          `json:"bars"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == roleChild {
		os.Exit(childMain(os.Args[2:]))
	}
	var opts Options
	flag.IntVar(&opts.Rounds, "rounds", 5, "rounds to take medians of")
	flag.DurationVar(&opts.Slice, "slice", 150*time.Millisecond, "length of one turn at an allow path")
	flag.DurationVar(&opts.Wait, "wait", 3*time.Second, "length of one turn with waiters")
	flag.DurationVar(&opts.File, "file", 500*time.Millisecond, "length of one turn at a shared file")
	flag.IntVar(&opts.Processes, "processes", 8, "processes that share a file")
	flag.DurationVar(&opts.Redis, "redis", 500*time.Millisecond, "length of one turn at a Redis")
	flag.DurationVar(&opts.Proxy, "proxy", time.Second, "length of one turn as a proxy")
	flag.IntVar(&opts.Starts, "starts", 41, "times that each command is started")
	flag.StringVar(&opts.Previous, "previous", "", "`PATH` of another sluice to start beside this version (scripts/previous prints one)")
	flag.IntVar(&opts.Crowd, "crowd", 100_000, "largest number of agents, waiters and past requests in Redis")
	flag.Func("only", "parts to run, comma separated: "+strings.Join(parts, ", ")+" (default all)", func(text string) error {
		opts.Only = strings.Split(text, ",")
		return nil
	})
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if err := run(opts, *asJSON, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(opts Options, asJSON bool, out, progress io.Writer) error {
	if err := opts.check(); err != nil {
		return err
	}
	report := Report{Go: runtime.Version(), Threads: runtime.GOMAXPROCS(0), Rounds: opts.Rounds}
	var err error
	if opts.has(partUsed) {
		if report.Used, err = measureUsed(opts, progress); err != nil {
			return err
		}
	}
	if opts.has(partAllow) {
		for _, s := range shapes() {
			fmt.Fprintf(progress, "measuring: %s\n", s.name)
			rows, err := measureShape(s, opts)
			if err != nil {
				return err
			}
			report.Allow = append(report.Allow, rows...)
		}
	}
	if opts.has(partWaiting) {
		fmt.Fprintf(progress, "measuring: %d waiters at %d/s\n", waitingCallers, waitingRate)
		if report.Waiting, err = measureWaiting(opts); err != nil {
			return err
		}
	}
	if opts.has(partFile) {
		if report.File, err = measureFile(opts, progress); err != nil {
			return err
		}
	}
	if opts.has(partRedis) || opts.has(partFlat) {
		if report.Redis, report.Flat, err = measureRedis(opts, progress); err != nil {
			return err
		}
	}
	if opts.has(partProxy) {
		if report.Proxy, err = measureProxy(context.Background(), opts, progress); err != nil {
			return err
		}
	}
	if opts.has(partStart) {
		if report.Start, err = measureStart(context.Background(), opts, progress); err != nil {
			return err
		}
	}
	if opts.has(partMachines) || opts.has(partDaemons) {
		if report.Machines, err = measureMachines(context.Background(), opts, progress); err != nil {
			return err
		}
	}
	if opts.has(partContended) {
		if report.Contended, err = measureContended(context.Background(), opts, progress); err != nil {
			return err
		}
	}
	report.Bars = bars(report)
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return report.print(out)
}
