package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// roleChaos is the first argument that starts a chaos run: random combinations of faults.
const roleChaos = "chaos"

// busyMachine is the largest delay of this process's own timers at which timing rules count. On a busier machine, a
// slow result proves nothing.
const busyMachine = 500 * time.Millisecond

// limitMemory is the resource limit that may make a process crash.
const limitMemory = unix.RLIMIT_AS

// chaosOptions are the command line options of a chaos run.
type chaosOptions struct {
	seed     uint64
	seeds    int
	stores   []string
	lasts    time.Duration // start no new seed after this time; 0: no bound
	atOnce   int
	plan     bool // only print plans
	sluice   string
	clocked  string // sluice with a wall clock that can be set
	previous string
}

// chaosResult is the result of one seed on one store.
type chaosResult struct {
	plan     chaosPlan
	broken   []string
	unjudged []string // timing rules that were broken while the machine was too busy
	requests int      // accepted by the provider
	worst    int      // most requests in any window
	refused  int      // refused by the provider without a reason
	busiest  int      // most requests in flight at the same time
	back     time.Duration
	took     time.Duration
	late     time.Duration // longest delay of this process's own timers
}

func parseChaos(args []string, out io.Writer) (o chaosOptions, err error) {
	flags := flag.NewFlagSet(roleChaos, flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Uint64Var(&o.seed, "seed", 1, "the first seed")
	flags.IntVar(&o.seeds, "seeds", 25, "number of seeds on each store")
	flags.DurationVar(&o.lasts, "for", 0, "start no new seed after this time (default no bound)")
	flags.IntVar(&o.atOnce, "atonce", 1, "number of plans to play at the same time; most of their time is waiting")
	flags.BoolVar(&o.plan, "plan", false, "only print the plans")
	flags.StringVar(&o.sluice, "sluice", "", "path of sluice (default: build it)")
	flags.StringVar(&o.clocked, "clocked", "", "path of sluice with a wall clock that can be set (default: build it if a plan needs it)")
	flags.StringVar(&o.previous, "previous", "", "path of the previous release of sluice (default: build it)")
	on := flags.String("store", "all", "file, redis, daemon or memory, comma separated, or all")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.stores = strings.Split(*on, ","); *on == "all" {
		o.stores = chaosStores
	}
	for _, s := range o.stores {
		if !slices.Contains(chaosStores, s) {
			return o, fmt.Errorf("-store %q: known are all, %s", s, strings.Join(chaosStores, ", "))
		}
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: no arguments are expected", flags.Arg(0))
	}
	if o.atOnce < 1 {
		return o, fmt.Errorf("-atonce %d: expected 1 or more", o.atOnce)
	}
	if o.seeds < 1 {
		return o, fmt.Errorf("-seeds %d: expected 1 or more", o.seeds)
	}
	return o, nil
}

func chaosMain(args []string) int {
	o, err := parseChaos(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		var broken bool
		if broken, err = o.run(ctx, os.Stdout); err == nil && broken {
			return exitBroken
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFailed
	}
	return exitOK
}

// run plays all seeds and reports whether a rule was broken.
func (o chaosOptions) run(ctx context.Context, out io.Writer) (broken bool, err error) {
	if o.plan {
		o.each(func(p chaosPlan) bool { fmt.Fprintln(out, p); return true })
		return false, nil
	}
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := o.build(ctx, dir); err != nil {
		return false, err
	}
	began := time.Now()
	var (
		mu      sync.Mutex // guards all and broken
		all     []chaosResult
		running sync.WaitGroup
		places  = make(chan struct{}, o.atOnce)
	)
	o.each(func(p chaosPlan) bool {
		places <- struct{}{}
		if ctx.Err() != nil || o.lasts > 0 && time.Since(began) > o.lasts {
			return false
		}
		if o.seeds == 1 {
			fmt.Fprintln(out, p)
		}
		running.Go(func() {
			defer func() { <-places }()
			r := o.play(ctx, dir, p)
			if ctx.Err() != nil {
				return // the run was interrupted and shows nothing
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
			fmt.Fprintln(out, r)
			if len(r.broken) > 0 {
				broken = true
				if o.seeds > 1 {
					fmt.Fprintln(out, p)
				}
				fmt.Fprintln(out, "again:", p.replay())
			}
		})
		return true
	})
	running.Wait()
	fmt.Fprint(out, chaosTable(all))
	return broken, nil
}

// each calls do with the plans of all seeds, on each store in turn, until do returns false.
func (o chaosOptions) each(do func(chaosPlan) bool) {
	for i := range o.seeds {
		for _, on := range o.stores {
			if !do(newChaosPlan(o.seed+uint64(i), on)) {
				return
			}
		}
	}
}

// build builds sluice and its previous release, unless the options name their programs.
func (o *chaosOptions) build(ctx context.Context, dir string) (err error) {
	if o.sluice == "" {
		if o.sluice, err = buildCLI(ctx, dir); err != nil {
			return err
		}
	}
	needed := false
	o.each(func(p chaosPlan) bool {
		needed = needed || p.setsClock()
		return !needed
	})
	if o.clocked == "" && needed {
		if o.clocked, err = buildClocked(ctx, filepath.Join(dir, "clocked")); err != nil {
			return err
		}
	}
	if o.previous == "" {
		cmd := exec.CommandContext(ctx, filepath.Join("..", "..", "scripts", "previous"))
		cmd.Stderr = os.Stderr
		said, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("scripts/previous: %w", err)
		}
		o.previous = strings.TrimSpace(string(said))
	}
	shares, err := o.sharesState(ctx, filepath.Join(dir, "versions"))
	if err == nil && !shares { // upgrades across formats need a stopped fleet, so an upgrade here is only a restart
		fmt.Fprintln(os.Stderr, "the previous release has another state format: all gates run this version")
		o.previous = o.sluice
	}
	return err
}

// sharesState reports whether this version can use the state of the previous release.
func (o *chaosOptions) sharesState(ctx context.Context, dir string) (bool, error) {
	for _, program := range []string{o.previous, o.sluice} {
		cmd := exec.CommandContext(ctx, program, "acquire", "github", "--store", "file:"+dir)
		cmd.Env = []string{"HOME=" + filepath.Dir(dir)}
		said, err := cmd.CombinedOutput()
		switch {
		case err == nil:
		case program == o.sluice && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitNoStore:
			return false, nil
		default:
			return false, fmt.Errorf("%s acquire: %w: %s", program, err, oneLine(string(said)))
		}
	}
	return true, nil
}

// play plays one plan and checks its results.
func (o chaosOptions) play(ctx context.Context, dir string, p chaosPlan) (r chaosResult) {
	began := time.Now()
	r.plan = p
	dir = filepath.Join(dir, fmt.Sprintf("%d-%s", p.seed, p.store))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.broken = []string{err.Error()}
		return r
	}
	program := o.sluice
	if p.setsClock() {
		program = o.clocked
	}
	w, err := newWorld(ctx, p, dir, program, o.previous)
	if err == nil {
		err = r.judge(w)
	}
	if err := errors.Join(err, w.stop()); err != nil {
		w.slow("it could not be done: %v", err)
	}
	if w.provider == nil {
		r.broken = w.tardy
		return r
	}
	w.checkFiles()
	log := w.provider.log()
	r.requests, _ = accepted(log, time.Time{})
	r.refused = w.provider.refused
	worst, throttled := worstWindow(log, chaosWindow)
	if r.worst = worst; worst > chaosSize || throttled > 0 {
		w.broke("%d requests arrived in a window of %v, limit %d; %d were refused", worst, chaosWindow, chaosSize, throttled)
	}
	// After a gate is killed, its requests may still run while their places are free again.
	ends := p.loses() || p.any(func(k *chaosKind) bool { return k.kills })
	var them string
	if r.busiest, them = w.provider.busiest(noticed + r.late); r.busiest > chaosPlaces && !ends {
		w.broke("%d requests were in flight at a time, limit %d:%s", r.busiest, chaosPlaces, them)
	}
	_ = os.RemoveAll(dir) // run removes the whole directory at the end anyway
	r.broken, r.took = w.broken, time.Since(began)
	if r.late > busyMachine {
		r.unjudged = w.tardy
	} else {
		r.broken = append(r.broken, w.tardy...)
	}
	return r
}

// judge plays the plan under load, then checks that the fleet recovers and leaves nothing behind.
func (r *chaosResult) judge(w *world) error {
	before := make([]int, len(w.gates))
	for i, g := range w.gates {
		before[i] = g.descriptors()
	}
	watched, end := context.WithCancel(w.ctx)
	late := make(chan time.Duration, 1)
	go func() { late <- lateness(watched, time.Hour) }()
	defer func() { end(); r.late = <-late }()
	w.load = startChaosLoad(w.ctx, w.gates)
	if err := w.play(); err != nil {
		return err
	}
	w.reloadAgain()
	r.back = w.awaitFull()
	w.load.finish()
	w.awaitEmpty()
	w.checkLeaks(before)
	return nil
}

func (r chaosResult) String() string {
	verdict := "ok"
	if len(r.broken) > 0 {
		verdict = "BROKEN"
	} else if len(r.unjudged) > 0 {
		verdict = "too slow, on a busy machine"
	}
	line := fmt.Sprintf("seed %d %-6s %d faults, %d requests, worst window %d/%d, in flight %d/%d, full use after %.1fs, took %.1fs, timers late by %v: %s", r.plan.seed, r.plan.store,
		len(r.plan.steps), r.requests, r.worst, chaosSize, r.busiest, chaosPlaces, r.back.Seconds(), r.took.Seconds(), round(r.late), verdict)
	for _, b := range append(r.broken, r.unjudged...) {
		line += "\n  " + b
	}
	return line
}

// chaosTable sums up the results by store.
func chaosTable(all []chaosResult) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "store\tseeds\tfaults\trequests\tworst window\tfull use after, median\tlongest\tbroken\tbusy machine")
	for _, on := range chaosStores {
		var seeds, faults, requests, worst, broken, busy int
		var back []time.Duration
		for _, r := range all {
			if r.plan.store != on {
				continue
			}
			seeds++
			faults += len(r.plan.steps)
			requests += r.requests
			worst = max(worst, r.worst)
			back = append(back, r.back)
			if len(r.broken) > 0 {
				broken++
			} else if len(r.unjudged) > 0 {
				busy++
			}
		}
		if seeds == 0 {
			continue
		}
		slices.Sort(back)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d of %d\t%.1f s\t%.1f s\t%d\t%d\n", on, seeds, faults, requests, worst, chaosSize, back[len(back)/2].Seconds(), back[len(back)-1].Seconds(), broken, busy)
	}
	_ = w.Flush()
	return b.String()
}
