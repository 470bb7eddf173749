// Faults tests the Redis store against failures of the network, the server and the client processes. It uses real
// processes, a real redis-server, and a checker that does not depend on the store. It prints a table of faults and
// figures, and exits with 1 if a rule was broken:
//
//   - no window ever has more grants than its limit, no bucket overflows, and no more places are held than there are;
//   - no ticket is granted twice, and no request is charged twice;
//   - no caller waits past its own deadline;
//   - afterwards nothing is stuck: the rate comes back, fresh processes get tickets, nothing stays in flight, and
//     every key in Redis expires.
//
// It runs on Unix systems.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// The exit codes.
const (
	exitOK     = 0
	exitBroken = 1
	exitFailed = 2 // the campaign itself failed
)

// options are the command line options.
type options struct {
	only     []string
	load     time.Duration
	workers  int
	seed     uint64
	json     bool
	markdown string
	keep     string
}

func main() { os.Exit(mainCode(os.Args[1:])) }

// mainCode is main as a function, because the test binary also runs as a worker.
func mainCode(args []string) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == roleChaos:
		return chaosMain(args[1:])
	case len(args) > 0 && args[0] == roleWorker:
		err = workerMain(args[1:], os.Stdin, os.Stdout)
	case len(args) > 0 && args[0] == roleProbe:
		err = probeMain(args[1:], os.Stdout)
	default:
		return campaignMain(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFailed
	}
	return exitOK
}

func campaignMain(args []string) int {
	opts, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		var broken bool
		if broken, err = opts.run(ctx, os.Stdout, os.Stderr); err == nil && broken {
			return exitBroken
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.DurationVar(&o.load, "for", 8*time.Second, "length of the load around each fault, without the fault itself")
	flags.IntVar(&o.workers, "workers", 6, "number of worker processes")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all random choices")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	flags.StringVar(&o.markdown, "md", "", "also write the table as markdown to this `FILE`")
	flags.StringVar(&o.keep, "keep", "", "write what every process did to files in this `DIRECTORY`")
	flags.Func("only", "faults to run, comma separated (default all)", func(text string) error {
		o.only = strings.Split(text, ",")
		return nil
	})
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: faults [flags]")
		flags.PrintDefaults()
		fmt.Fprintln(flags.Output(), "faults:")
		for _, f := range all() {
			fmt.Fprintf(flags.Output(), "  %-18s %s\n", f.name, f.what)
		}
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q: no arguments are expected", flags.Arg(0))
	case o.load < time.Second || o.load > time.Hour:
		return o, fmt.Errorf("-for %v: expected 1s to 1h", o.load)
	case o.workers < 2 || o.workers > 64:
		return o, fmt.Errorf("-workers %d: expected 2 to 64", o.workers)
	}
	return o, nil
}

// run runs the campaign and reports whether a rule was broken.
func (o options) run(ctx context.Context, out, progress io.Writer) (broken bool, err error) {
	chosen, err := choose(o.only)
	if err != nil {
		return false, err
	}
	program, err := self()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "sluice-faults-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &campaign{self: program, dir: dir, load: o.load, workers: o.workers, seed: o.seed, keep: o.keep}
	c.shifted = sync.OnceValues(func() (string, error) { return buildShifted(ctx, dir) })
	c.cli = sync.OnceValues(func() (string, error) { return buildCLI(ctx, dir) })
	t := &table{Load: o.load.String(), Workers: o.workers, Callers: len(callers), Seed: o.seed}
	began := time.Now()
	var builds sync.WaitGroup
	defer builds.Wait()
	if i := slices.IndexFunc(chosen, func(f *fault) bool { return f.shifted }); i > 0 {
		builds.Go(func() { _, _ = c.shifted() }) // in the background, because it takes a minute; the fault that needs it reports its error
	}
	for i, f := range chosen {
		fmt.Fprintf(progress, "%2d/%d %-18s ", i+1, len(chosen), f.name)
		x, err := c.do(ctx, f, i)
		if ctx.Err() != nil {
			fmt.Fprintln(progress, "interrupted")
			return false, errors.New("interrupted: no result")
		}
		if errors.Is(err, redisrun.ErrMissing) {
			fmt.Fprintln(progress)
			return false, err
		}
		if err != nil { // the other faults may still run
			x.broke("it could not be done: %v", err)
		}
		fmt.Fprintln(progress, x.result())
		t.Runs = append(t.Runs, x)
		broken = broken || len(x.Broken) > 0
	}
	t.Took = time.Since(began).Round(time.Second).String()
	if o.markdown != "" {
		if err := os.WriteFile(filepath.Clean(o.markdown), []byte(t.markdown()), 0o644); err != nil {
			return broken, err
		}
	}
	if o.json {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return broken, enc.Encode(t)
	}
	_, err = io.WriteString(out, t.text())
	return broken, err
}
