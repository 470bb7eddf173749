//go:build linux || darwin

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/redisstore" // its URL schemes
)

// task is what a process has to do.
type task struct {
	URL     string
	Name    string
	Class   string
	Callers int
}

// What a process says besides its outcome, as lines of their own.
const (
	saysReady  = "ready"  // the gate is open
	saysServed = "served" // every goroutine has got something
)

// outcome is what a process has to tell in the end.
type outcome struct {
	Errors []string
	Lost   int    // how often the store could not be reached
	Why    string // the first time
	CPU    time.Duration
	Uses   []use
}

// use is one request that was let go.
type use struct {
	Caller int
	At     stamp // after the acquire had returned, and before the answer was told
	Waited time.Duration
	Ticket string

	worker int
	class  string
}

// maxErrors bounds what a process tells of what went wrong.
const maxErrors = 5

// resource is the one that all share.
const resource = "shared"

// The limit that all share. The guard is strict: a charge begins with the grant, and drains from the moment on at
// which the store has heard of the answer. A use lies between the two, so the uses alone keep to the
// limit exactly, and the check needs no tolerance. The bucket holds a second's worth: when a busy machine holds
// everybody up for a moment nothing is lost, and there are still more callers than it lets go at once.
const (
	rate  = 600 // a second
	burst = 600
)

// gateConfig is how every process opens the gate.
func gateConfig(url string) sluice.Config {
	limit := sluice.Limit{Name: "rate", Kind: sluice.Bucket, Size: rate, Window: time.Second, Burst: burst}
	return sluice.Config{
		Store:     url,
		Resources: map[string]sluice.Resource{resource: {Limits: []sluice.Limit{limit}, Guard: store.GuardStrict}},
		Classes:   []sluice.Class{{Name: sluice.P0, Share: 40}, {Name: sluice.P1, Share: 35}, {Name: sluice.P2, Share: 25}},
	}
}

// work is the whole life of a process: it opens the gate, begins when it reads a byte, and asks until its input ends,
// so that it does not outlive the test.
func work(text string) int {
	var k task
	err := json.Unmarshal([]byte(text), &k)
	if err == nil {
		err = k.run(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (k *task) run(in io.Reader, out io.Writer) error {
	within, done := context.WithTimeout(context.Background(), patience)
	defer done()
	gate, err := sluice.Open(within, gateConfig(k.URL))
	if err != nil {
		return err
	}
	fmt.Fprintln(out, saysReady)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var b [1]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return errors.Join(err, gate.Close())
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		time.AfterFunc(patience, func() { os.Exit(3) }) // nobody is left to see it hang
		stop()
	}()
	c := &crowd{task: k, gate: gate, stop: stop, served: make(chan struct{})}
	c.left.Store(int64(k.Callers))
	var all sync.WaitGroup
	for i := range k.Callers {
		all.Go(func() { c.call(ctx, i) })
	}
	select {
	case <-c.served:
		fmt.Fprintln(out, saysServed)
	case <-ctx.Done():
	}
	all.Wait()
	if err := gate.Close(); err != nil && !c.lost(err) {
		c.fail(fmt.Errorf("close the gate: %w", err))
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return err
	}
	c.outcome.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return json.NewEncoder(out).Encode(&c.outcome)
}

// crowd is the goroutines of a process.
type crowd struct {
	task   *task
	gate   *sluice.Gate
	stop   func()
	left   atomic.Int64 // that have got nothing yet
	served chan struct{}

	mu      sync.Mutex
	outcome outcome
}

// call asks all the time, under a name of its own.
func (c *crowd) call(ctx context.Context, i int) {
	req := sluice.Request{Resource: resource, Agent: fmt.Sprintf("%s-%d", c.task.Name, i), Class: c.task.Class}
	var uses []use
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.outcome.Uses = append(c.outcome.Uses, uses...)
	}()
	for ctx.Err() == nil {
		ticket, err := c.gate.Acquire(ctx, req)
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			return
		case c.lost(err):
			select {
			case <-time.After(askAgain):
			case <-ctx.Done():
			}
			continue
		default:
			c.fail(fmt.Errorf("acquire: %w", err))
			return
		}
		uses = append(uses, use{Caller: i, At: now(), Waited: ticket.Waited(), Ticket: ticket.ID()})
		_, err = ticket.Answer(sluice.Answer{Verdict: store.VerdictOK})
		if err = errors.Join(err, ticket.Close()); err != nil && !c.lost(err) {
			c.fail(fmt.Errorf("answer and close: %w", err))
			return
		}
		if len(uses) == 1 && c.left.Add(-1) == 0 {
			close(c.served)
		}
	}
}

// askAgain is how long one waits who was told that the store cannot be reached.
const askAgain = 50 * time.Millisecond

// lost reports whether an error only says that the store could not be reached: so it may be for a moment where a
// machine has more to do than it can. Whoever is told so asks again.
func (c *crowd) lost(err error) bool {
	if !errors.Is(err, sluice.ErrStore) && !errors.Is(err, store.ErrUnavailable) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcome.Lost++; c.outcome.Lost == 1 {
		c.outcome.Why = err.Error()
	}
	return true
}

// fail ends it all: the outcome says why.
func (c *crowd) fail(err error) {
	c.stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.outcome.Errors) < maxErrors {
		c.outcome.Errors = append(c.outcome.Errors, err.Error())
	}
}
