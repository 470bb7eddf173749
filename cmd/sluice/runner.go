package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// runner takes a job through the gate, with as many attempts as it needs and may have.
type runner struct {
	job
	s      *session
	gate   *runGate // nil if there is none
	keep   *keeper
	path   string // of the program
	env    []string
	config string // configuration file, if there is one
	stderr io.Writer
	quiet  bool

	began       time.Time // before the first turn
	sent        int
	code        int       // of the last attempt
	first, last time.Time // start
	waits       []deadletter.Wait
}

// result is the outcome of a job.
type result struct {
	code   int
	gaveUp string   // why it was given up after at least one attempt; empty if it was not
	why    *failure // the error to print; nil if the child has printed it
}

// run runs the job to its end. An error means that it never began.
func (r *runner) run(ctx context.Context) (result, error) {
	until := time.Now().Add(r.wait)
	if (r.newWork || r.scatter > 0) && !r.observes() {
		waited, spread, err := r.awaitWindow(ctx, until)
		if err != nil {
			return result{}, err
		}
		if until = until.Add(waited); spread {
			r.scatter = 0
		}
	}
	if r.newWork && !r.observes() {
		if err := r.mayStart(ctx, until); err != nil {
			return result{}, err
		}
	}
	slept, err := r.spread(ctx)
	if err != nil {
		return result{}, err
	}
	until = until.Add(slept)
	lease, err := r.join(ctx, until)
	if err != nil {
		return result{}, err
	}
	if lease != nil {
		defer func() { _ = lease.Leave() }() // on an error the lease expires
	}
	if r.req.TTL = cmp.Or(r.req.TTL, shortLife); r.req.TTL > shortLife {
		r.req.TTL = shortLife // keepAlive extends it
	}
	r.began = time.Now()
	t, err := r.turn(ctx, min(time.Until(until), r.walls.Deadline))
	for err == nil {
		var code int
		var held bool
		if code, held, err = r.once(t); err != nil {
			break
		}
		if code != exitNotYet || r.keep.stopped() || r.observes() {
			return result{code: code}, nil
		}
		next := r.walls.Next(retry.Failure{Sent: r.sent, Elapsed: time.Since(r.began), Class: r.req.Class, Held: held}, rand.Float64)
		if next.Give {
			return r.atTheWall(next), nil
		}
		if err = r.pause(ctx, next); err != nil {
			break
		}
		r.req.Retry = true
		asked := time.Now()
		t, err = r.turn(ctx, r.left())
		if r.req.Resource != "" {
			r.note("turn", time.Since(asked))
		}
	}
	if r.sent == 0 || r.keep.stopped() {
		return result{}, err
	}
	f := asFailure(err)
	return result{code: f.code, gaveUp: f.message, why: f}, nil
}

// observes reports whether all resources of the run are in observe mode: then its command starts at once, and only
// once.
func (r *runner) observes() bool {
	if r.req.Resource != "" {
		return inside.Of(r.s.gate).Observes(r.req.Resource)
	}
	for name := range r.s.file.Resources {
		if !inside.Of(r.s.gate).Observes(name) {
			return false
		}
	}
	return len(r.s.file.Resources) > 0
}

// left returns the time until the deadline.
func (r *runner) left() time.Duration { return r.walls.Deadline - time.Since(r.began) }

// once starts the command and waits for its end. It returns its exit code, and whether the resource is held.
func (r *runner) once(t sluice.Ticket) (code int, held bool, err error) {
	r.last = time.Now().UTC().Truncate(time.Millisecond)
	defer r.keepAlive(t)()
	if code, err = r.keep.run(r.path, r.argv, r.env); err != nil {
		_ = t.Cancel() // nothing was sent; if this fails, the ticket expires
		if sig, ok := errors.AsType[*caught](err); ok {
			err = sig.failure(beforeStart)
		}
		return 0, false, err
	}
	if r.sent == 0 {
		r.first = r.last
	}
	r.sent++
	r.code = code
	if r.req.Resource == "" {
		return code, false, nil
	}
	if code <= exitSignal {
		held, err = t.Answer(sluice.Answer{Verdict: verdict(code)})
	}
	err = errors.Join(err, t.Close())
	if err != nil && !errors.Is(err, sluice.ErrEnded) { // the command may have outlived its ticket
		r.say("warning: the gate could not be told how it ended: %s", err)
	}
	return code, held, nil
}

// shortLife is how long a run's ticket lives without a renewal: what a killed run held is free after that, however long
// its command might have taken.
const shortLife = time.Minute

// keepAlive renews the ticket until stop is called.
func (r *runner) keepAlive(t sluice.Ticket) (stop func()) {
	if r.req.Resource == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(r.req.TTL / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = t.Keep(ctx, r.req.TTL) // the next tick tries again; if none succeeds, the ticket expires
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// verdict returns what the exit code of a command says about the provider. Only success counts as such. Exit code 75
// asks for a retry but does not say why: if it counted as a refusal, one broken script would pause all callers. Callers
// that see the provider's response report refusals.
func verdict(code int) store.Verdict {
	if code == 0 {
		return store.VerdictOK
	}
	return store.VerdictError
}

// atTheWall returns the result of a job that may not be tried again.
func (r *runner) atTheWall(next retry.Decision) result {
	f := &failure{code: exitNotYet}
	f.message = fmt.Sprintf("gave up after %s, the last of which exited with %d", attempts(r.sent), exitNotYet)
	if next.Reason == retry.Deadline {
		f.message = fmt.Sprintf("gave up after %s: the next would not start before the deadline%s", attempts(r.sent), timeLeft(next.Left))
	}
	return result{code: exitNotYet, gaveUp: next.Reason.String(), why: f}
}

// timeLeft says how far away the deadline is, if it is not over.
func timeLeft(d time.Duration) string {
	if d = d.Round(time.Millisecond); d <= 0 {
		return ", which has passed"
	}
	return fmt.Sprintf(", which is in %v", d)
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// pause waits before the next attempt.
func (r *runner) pause(ctx context.Context, next retry.Decision) error {
	r.note(next.Reason.String(), next.Wait)
	if next.Reason == retry.Queue {
		r.say("sluice: it exited with %d; the resource is held, so it joins the queue now", exitNotYet)
		return nil
	}
	r.say("sluice: it exited with %d; next attempt (%d of %d) in %v", exitNotYet, r.sent+1, r.walls.Attempts, next.Wait.Round(time.Millisecond))
	return r.sleep(ctx, next.Wait)
}

func (r *runner) note(why string, waited time.Duration) {
	r.waits = append(r.waits, deadletter.Wait{Attempt: r.sent + 1, Waited: deadletter.Millis(waited), Why: why})
	if n := len(r.waits); n > 2*deadletter.MaxWaits {
		r.waits = append(r.waits[:0], r.waits[n-deadletter.MaxWaits:]...)
	}
}

// sleep waits for d, unless a signal asks to end.
func (r *runner) sleep(ctx context.Context, d time.Duration) error {
	if !sleep.For(ctx, d) {
		return failed(ctx, ctx.Err())
	}
	return nil
}

// beforeStart describes what a signal interrupted.
const beforeStart = "waiting to start the command"

// failed converts an error of the gate, or a signal that came in the meantime, into the failure of the program.
func failed(ctx context.Context, err error) error {
	if sig := signalOf(ctx); sig != nil && err != nil {
		return sig.failure(beforeStart)
	}
	return fail(err)
}

func (r *runner) say(format string, args ...any) {
	if !r.quiet {
		fmt.Fprintf(r.stderr, "%s\n", harmless(fmt.Sprintf(format, args...)))
	}
}
