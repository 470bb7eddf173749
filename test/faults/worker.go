package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/redisstore" // registers its URL schemes
)

// roleWorker is the first argument of a worker process.
const roleWorker = "worker"

// callers lists the pool that each goroutine of a worker acquires from.
var callers = []int{rolling, rolling, rolling, strict, strict, bucket, places, places}

// worker is a process that acquires and closes tickets all the time.
type worker struct {
	url    string
	name   string
	mode   store.OnFailure
	events bool // listen to the gate's events
	clock  clock
	seed   uint64
	lease  time.Duration

	mu      sync.Mutex
	out     io.Writer
	stopped atomic.Bool
}

// workerMain opens the gate, reports that it is ready, and starts when it reads a line. It runs until its input ends,
// so a worker does not outlive its parent.
func workerMain(args []string, in io.Reader, out io.Writer) error {
	w := &worker{out: out}
	flags := flag.NewFlagSet(roleWorker, flag.ContinueOnError)
	flags.StringVar(&w.url, "url", "", "of the store")
	flags.StringVar(&w.name, "name", "", "of this worker")
	flags.Uint64Var(&w.seed, "seed", 1, "for its choices")
	flags.BoolVar(&w.events, "events", false, "listen to the gate")
	flags.DurationVar(&w.clock.shift, "shift", 0, "of this process's monotonic clock")
	flags.DurationVar(&w.lease, "lease", leaseExpire, "of this process")
	wall := flags.Duration("wall", 0, "of this process's wall clock")
	mode := flags.String("mode", store.FailShare.String(), "what to do without the store")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if off := wallShift(); (off - *wall).Abs() > time.Minute {
		return fmt.Errorf("the wall clock of this process is off by %v, not by %v", off, *wall)
	}
	for _, m := range []store.OnFailure{store.FailShare, store.FailClosed, store.FailOpen} {
		if m.String() == *mode {
			w.mode = m
		}
	}
	return w.run(in)
}

func (w *worker) run(in io.Reader) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	begin := make(chan struct{})
	go func() {
		var b [1]byte
		if n, _ := in.Read(b[:]); n == 1 {
			close(begin)
			_, _ = io.Copy(io.Discard, in)
		}
		w.stopped.Store(true)
		stop()
	}()
	gate, err := w.open(ctx)
	if err != nil {
		return err
	}
	w.say("ready %d", w.clock.now())
	select {
	case <-begin:
	case <-ctx.Done():
		return gate.Close()
	}
	var group sync.WaitGroup
	for i, pool := range callers {
		group.Go(func() {
			c := caller{worker: w, gate: gate, pool: pool, agent: fmt.Sprintf("%s-%d", w.name, i), rand: rand.New(rand.NewPCG(w.seed, uint64(i)))}
			c.loop(ctx)
		})
	}
	group.Go(func() { w.tick(ctx) })
	group.Wait()
	return gate.Close()
}

// open opens the gate. It retries while the store is unreachable, because workers also start during faults.
func (w *worker) open(ctx context.Context) (*sluice.Gate, error) {
	config := gateConfig(w.url, w.lease)
	config.OnStoreFailure = w.mode
	if w.events {
		config.Events = w.event
	}
	for {
		within, cancel := context.WithTimeout(ctx, askWithin)
		gate, err := sluice.Open(within, config)
		cancel()
		if err == nil || !errors.Is(err, sluice.ErrStore) || ctx.Err() != nil {
			return gate, err
		}
		w.say("note cannot open the gate: %s", oneLine(err.Error()))
		pause(ctx, 100*time.Millisecond)
	}
}

func (w *worker) event(e inspect.Event) {
	switch e.Kind {
	case inspect.EventStoreLost:
		w.say("lost %s %d %s", e.Resource, w.clock.now(), oneLine(e.Error))
	case inspect.EventStoreBack:
		w.say("back %s %d", e.Resource, w.clock.now())
	}
}

// tick reports how late this process's timers are, which shows how much of a delay the machine causes.
func (w *worker) tick(ctx context.Context) {
	for ctx.Err() == nil {
		late := lateness(ctx, time.Second)
		w.say("tick %d %d", w.clock.now(), late)
	}
}

// lateness returns the longest delay of a timer within d.
func lateness(ctx context.Context, d time.Duration) (most time.Duration) {
	const step = 5 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		began := time.Now()
		pause(ctx, step)
		if ctx.Err() == nil {
			most = max(most, time.Since(began)-step)
		}
	}
	return most
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// say writes one line with a single Write.
func (w *worker) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.out, line); err != nil {
		os.Exit(1) // the parent no longer reads
	}
}

// oneLine shortens a text to one line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), 300)]
}
