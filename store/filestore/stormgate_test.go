//go:build linux || darwin

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// A storm through the gate, as programs use the store.

const (
	gateSize   = 1000
	gatePlaces = 64
	gateWindow = 250 * time.Millisecond
)

func openGate(ctx context.Context, k *task) (*sluice.Gate, error) {
	return sluice.Open(ctx, sluice.Config{Store: "file:" + k.Dir, Resources: map[string]sluice.Resource{"api": {
		Guard: store.GuardOff, TTL: k.TTL,
		Limits: []sluice.Limit{
			{Name: "window", Kind: sluice.Rolling, Size: gateSize, Window: gateWindow},
			{Name: "places", Kind: sluice.Concurrency, Size: gatePlaces},
		},
	}}})
}

var _ = role("gate", func(k task) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	gate, err := openGate(ctx, &k)
	if err != nil {
		giveUp("open: %v", err)
	}
	k.run(func(agent string, log *journal) {
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "api", Agent: agent})
		if err != nil {
			giveUp("acquire: %v", err)
		}
		log.add("g", ticket.ID(), ticket.GrantedAt().UnixMicro())
		time.Sleep(rand.N(k.Hold)) // the request takes its time
		log.add("e", ticket.ID(), time.Now().UnixMicro())
		if err := ticket.Close(); err != nil {
			giveUp("close: %v", err)
		}
	})
	if err := gate.Close(); err != nil {
		giveUp("close the gate: %v", err)
	}
})

func TestStormThroughTheGate(t *testing.T) {
	t.Parallel()
	s := &storm{role: "gate", every: 50 * time.Millisecond, window: gateWindow}
	s.task = task{Count: 1000, Crowd: 12, Hold: 20 * time.Millisecond, TTL: 500 * time.Millisecond}
	s.look = func(t *testing.T) (r rest) {
		t.Helper()
		gate, err := openGate(context.Background(), &s.task)
		if err != nil {
			t.Fatalf("after %d kills: %v", s.hurt, err)
		}
		defer gate.Close()
		status, err := gate.Status(context.Background())
		if err != nil {
			t.Fatalf("after %d kills: %v", s.hurt, err)
		}
		api := status.Resources[0]
		for _, n := range api.Waiting {
			r.waiting += n
		}
		for _, l := range api.Limits {
			r.used += l.Used
		}
		r.inFlight, r.sent = api.InFlight, api.Sent
		return r
	}
	grants := s.run(t)
	// A gate states times by the time of day, which every process reckons for itself.
	const doubt = 5 * time.Millisecond
	checkRolling(t, begins(grants), gateSize, gateWindow-doubt)
	for i := range grants {
		if g := &grants[i]; g.end != 0 {
			g.end = max(g.begin+1, g.end-doubt.Microseconds())
		}
	}
	checkPlaces(t, grants, gatePlaces, s.task.TTL-doubt)
}

// Requests that arrive some time after their grant, from processes that are stopped and go on at any
// moment. With a strict guard no window of the provider's has more arrivals than the limit.

var _ = role("sender", func(k task) {
	ctx := context.Background()
	s, p := inChild(k.Dir, k.Spec, k.clock()...)
	w := watch(p)
	k.run(func(agent string, log *journal) {
		var r store.Result
		for {
			var err error
			if r, err = w.acquire(ctx, p, ask(agent, patience, k.TTL)); err != nil {
				giveUp("acquire: %v", err)
			}
			if rand.IntN(4) == 0 {
				time.Sleep(rand.N(k.Hold)) // on its way
			}
			arrives := monotonic()
			if p.Now().Sub(r.GrantedAt) < k.TTL {
				log.add("g", fmt.Sprintf("%x-%d", r.ID.Session, r.ID.N), arrives)
				break
			}
			// A busy machine has held it up for longer than its ticket lives: others count on it not being sent.
			if err := p.Apply(ctx, []store.Op{{Kind: store.OpCancel, ID: r.ID}}); err != nil {
				giveUp("cancel: %v", err)
			}
		}
		if rand.IntN(4) == 0 {
			time.Sleep(rand.N(k.Hold)) // on its way back
		}
		for _, kind := range []store.OpKind{store.OpAnswer, store.OpClose} {
			if err := p.Apply(ctx, []store.Op{{Kind: kind, ID: r.ID, Verdict: store.VerdictOK}}); err != nil {
				giveUp("%v", err)
			}
		}
	})
	if err := s.Close(); err != nil {
		giveUp("close the store: %v", err)
	}
})

// monotonic is a clock that all processes of a machine share.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		giveUp("clock: %v", err)
	}
	return t.Nano() / 1000
}

const (
	arrivalSize   = 200
	arrivalWindow = 250 * time.Millisecond
)

func newArrivals(ttl time.Duration) *storm {
	s := newStorm(300, 6, 3*time.Millisecond, ttl,
		store.Limit{Kind: store.Rolling, Size: arrivalSize, Window: arrivalWindow, Guard: store.GuardStrict})
	s.role, s.every = "sender", 60*time.Millisecond
	return s
}

func TestArrivalsStayWithinTheLimitWhileProcessesAreStopped(t *testing.T) {
	t.Parallel()
	s := newArrivals(patience)
	s.wound = func(c *child) {
		_ = c.cmd.Process.Signal(syscall.SIGSTOP)
		time.AfterFunc(10*time.Millisecond+rand.N(290*time.Millisecond), func() { _ = c.cmd.Process.Signal(syscall.SIGCONT) })
	}
	checkRolling(t, begins(s.run(t)), arrivalSize, arrivalWindow)
}

// A killed process never reports on its request. The request counts until its ticket expires, and a window longer.
func TestArrivalsStayWithinTheLimitWhileProcessesAreKilled(t *testing.T) {
	t.Parallel()
	s := newArrivals(500 * time.Millisecond)
	checkRolling(t, begins(s.run(t)), arrivalSize, arrivalWindow)
}

// victim is a gate whose process kills itself when its tickets are over, and the store has not been told so.
var _ = role("victim", func(k task) {
	gate, err := openGate(context.Background(), &k)
	if err != nil {
		giveUp("open: %v", err)
	}
	var tickets []sluice.Ticket
	for range k.Crowd {
		ticket, err := gate.Acquire(context.Background(), sluice.Request{Resource: "api", Agent: "victim"})
		if err != nil {
			giveUp("acquire: %v", err)
		}
		tickets = append(tickets, ticket)
	}
	for _, ticket := range tickets {
		_, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK})
		if err = errors.Join(err, ticket.Close()); err != nil {
			giveUp("end: %v", err)
		}
	}
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
})

// Reports that a process had not sent when it was killed keep no slots: the store ends its tickets as usual.
func TestKilledWithReportsUnsent(t *testing.T) {
	t.Parallel()
	k := task{Dir: t.TempDir(), Crowd: 40, TTL: time.Hour}
	gate, err := openGate(t.Context(), &k)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	victim := start(t, "victim", k)
	select {
	case <-victim.done:
	case <-time.After(patience):
		t.Fatal("it has not ended")
	}
	if status, ok := victim.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it ended with %v\n%s", victim.cmd.ProcessState, victim.errs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n := 0; n < gatePlaces; {
		switch _, err := gate.Try(ctx, sluice.Request{Resource: "api", Agent: "living"}); {
		case err == nil:
			n++
		case !errors.Is(err, sluice.ErrNotNow) || ctx.Err() != nil:
			t.Fatalf("after %d of %d: %v", n, gatePlaces, err)
		default:
			time.Sleep(10 * time.Millisecond) // who is refused has dead processes looked for
		}
	}
}
