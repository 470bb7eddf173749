package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// newWorkEvery is how often a run checks whether new work may start. Limits change by the second, not faster.
const newWorkEvery = time.Second

// slotFirst and slotEvery are how often a run asks for a slot: soon at first, then less often.
const (
	slotFirst = 200 * time.Millisecond
	slotEvery = 2 * time.Second
)

// mayStart waits until new work may start.
func (r *runner) mayStart(ctx context.Context, until time.Time) error {
	stop := r.waiting(func() string { return "waits: an agent that it depends on is limited" })
	defer stop()
	for {
		w, err := r.backpressure(ctx)
		if err != nil {
			return failed(ctx, err)
		}
		if w.Start {
			return nil
		}
		left := time.Until(until)
		if left <= 0 {
			return &failure{
				code: exitNotYet, message: fmt.Sprintf("start no new work: %s (%s)", strings.Join(w.Chain, " waits for "), w.Reason),
				hint: "running work may continue; try later, or allow more --wait", chain: w.Chain,
			}
		}
		if err := r.sleep(ctx, min(left, newWorkEvery)); err != nil {
			return err
		}
	}
}

// backpressure returns whether the agent may start new work. The agent has not joined yet, so the gate does not know
// the agents of --waits-for.
func (r *runner) backpressure(ctx context.Context) (inspect.NewWork, error) {
	w, err := r.s.gate.StartNewWork(ctx, r.req.Agent)
	for _, other := range r.waitsFor {
		if err != nil || !w.Start {
			break
		}
		if w, err = r.s.gate.StartNewWork(ctx, other); !w.Start {
			w.Chain = append([]string{r.req.Agent}, w.Chain...)
		}
	}
	return w, err
}

// spread waits for the job's position in the window that launches are spread over.
func (r *runner) spread(ctx context.Context) (time.Duration, error) {
	if r.scatter == 0 || r.observes() {
		return 0, nil
	}
	wait, err := r.s.gate.StartDelay(ctx, r.req.Resource, r.scatter)
	if err != nil || wait == 0 {
		return 0, failed(ctx, err)
	}
	at := time.Now().Add(wait)
	stop := r.waiting(func() string {
		return fmt.Sprintf("starts in %v, to spread launches", time.Until(at).Round(time.Second))
	})
	defer stop()
	return wait, r.sleep(ctx, wait)
}

// join takes the agent's lease and slot. It returns nil if the enclosing run holds them.
func (r *runner) join(ctx context.Context, until time.Time) (*sluice.Lease, error) {
	nested, err := r.nested(ctx)
	if err != nil {
		return nil, failed(ctx, err)
	}
	if nested {
		if len(r.waitsFor) > 0 {
			r.say("warning: --waits-for has no effect: the lease of %q is held by the run that this one is nested in", r.req.Agent)
		}
		return nil, nil
	}
	m := sluice.JoinRequest{Agent: r.req.Agent, Instance: r.instance(), Class: r.req.Class, User: r.req.User, WaitsFor: r.waitsFor}
	if r.req.Resource != "" {
		m.Resources = []string{r.req.Resource} // others may be open for reading
	}
	stop := r.waiting(func() string { return "waits for a slot" })
	defer stop()
	for every := slotFirst; ; every = min(2*every, slotEvery) {
		lease, err := r.s.gate.Join(ctx, m)
		if err == nil {
			return lease, nil
		}
		left := time.Until(until)
		if !errors.Is(err, sluice.ErrSlots) || left <= 0 {
			return nil, failed(ctx, err)
		}
		// With jitter, because many may wait.
		if err := r.sleep(ctx, min(left, every/2+rand.N(every/2))); err != nil {
			return nil, err
		}
	}
}

// instance distinguishes this run from others of the same agent. Process ids repeat on other machines.
func (r *runner) instance() string {
	pid := strconv.Itoa(os.Getpid())
	host, err := os.Hostname()
	if err != nil || strings.HasPrefix(r.s.store, "file:") || strings.HasPrefix(r.s.store, "mem:") {
		return pid
	}
	return pid + "@" + host
}

// nested reports whether an enclosing run holds the agent's lease in this very store. A run whose parent has died, or
// that uses another store, is on its own.
func (r *runner) nested(ctx context.Context) (bool, error) {
	if os.Getenv(envSlot) != r.req.Agent {
		return false, nil
	}
	status, err := r.s.gate.Status(ctx)
	if err != nil {
		return false, err
	}
	for _, a := range status.Agents {
		if a.Name == r.req.Agent && a.LeaseExpiresAt != nil {
			return true, nil
		}
	}
	return false, nil
}

// turn waits for the job's turn. Without a resource it returns at once.
func (r *runner) turn(ctx context.Context, wait time.Duration) (t sluice.Ticket, err error) {
	if r.req.Resource == "" {
		return t, nil
	}
	if !r.quiet {
		defer r.s.showWaiting(ctx, r.stderr, r.req)()
	}
	if wait <= 0 {
		t, err = r.s.gate.Try(ctx, r.req)
	} else {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if t, err = r.s.gate.Acquire(within, r.req); err == nil && t.Stale() {
			if err = t.Renew(within); err != nil {
				_ = t.Cancel()                       // if the store was unreachable, it still has the ticket
				if errors.Is(err, sluice.ErrEnded) { // the store took this process for dead
					t, err = r.s.gate.Acquire(within, r.req)
				}
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// Only now is it certain that the wait was too short. The time to retry may be known by now.
		t, err = r.s.gate.Try(ctx, r.req)
	}
	if err != nil {
		return t, failed(ctx, err)
	}
	return t, nil
}

// waiting shows what the run waits for, if that takes longer than a moment.
func (r *runner) waiting(what func() string) (stop func()) {
	if r.quiet {
		return func() {}
	}
	return showLine(context.Background(), r.stderr, quiet, func(context.Context) string { return "sluice: " + what() })
}
