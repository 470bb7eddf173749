package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
)

// Fleet is a store that several processes share, on one clock.
type Fleet struct {
	// Start starts another process.
	Start   func() Process
	Advance func(d time.Duration)
}

// Process is one process of a fleet.
type Process struct {
	Store store.Store
	// Beat does what the process does in the background every second.
	Beat func()
	// Kill ends the process without notice to the store.
	Kill func()
}

// FleetSizes tests limits for which processes state different sizes. The smallest size that a live process states
// applies.
func FleetSizes(t *testing.T, open func(t *testing.T) Fleet) {
	for name, f := range map[string]func(w *world){
		"all make a limit smaller and larger again": func(w *world) {
			a, b, c := w.start(100), w.start(100), w.start(100)
			for _, p := range []*proc{a, b, c} {
				p.restate(50)
				w.size(50)
			}
			a.restate(100)
			b.restate(100)
			w.beat()
			w.size(50)
			c.restate(100)
			w.size(100)
		},
		"the one that made it smaller leaves": func(w *world) {
			a, b := w.start(100), w.start(100)
			b.restate(10)
			w.size(10)
			b.leave()
			w.beat()
			w.size(100)
			a.restate(100)
			w.size(100)
		},
		"the one that made it smaller dies": func(w *world) {
			w.start(100)
			w.start(70)
			w.start(10).kill()
			w.settle()
			w.size(70)
		},
		"a newcomer": func(w *world) {
			a, _ := w.start(10), w.start(100)
			w.size(10)
			w.start(1000)
			w.settle()
			w.size(10)
			w.start(5)
			w.size(5)
			a.kill()
			w.settle()
			w.size(5)
		},
	} {
		t.Run(name, func(t *testing.T) { f(&world{fail: t.Fatalf, Fleet: open(t)}) })
	}
	t.Run("whatever they state", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { randomSizes(rt, &world{fail: rt.Fatalf, Fleet: open(t)}) })
	})
}

// randomSizes lets processes start, state sizes and end. No process may get a request beyond the smallest size that a
// live process states.
func randomSizes(t *rapid.T, w *world) {
	defer w.end()
	size := rapid.Int64Range(1, 12)
	w.start(size.Draw(t, "size"))
	for range rapid.IntRange(1, 15).Draw(t, "steps") {
		p := rapid.SampledFrom(w.alive).Draw(t, "process")
		switch what := rapid.SampledFrom([]string{"start", "restate", "restate", "leave", "kill", "ask", "ask", "beat", "settle"}).Draw(t, "what"); {
		case what == "start" && len(w.alive) < 4:
			w.start(size.Draw(t, "size"))
		case what == "restate":
			p.restate(size.Draw(t, "size"))
		case what == "leave" && len(w.alive) > 1:
			p.leave()
		case what == "kill" && len(w.alive) > 1:
			p.kill()
		case what == "ask":
			p.ask()
		case what == "beat":
			w.beat()
		case what == "settle":
			w.settle()
			w.size(w.least())
		}
		if got := w.alive[0].limit().Size; got > w.least() {
			t.Fatalf("the size is %d, and a process states %d", got, w.least())
		}
	}
}

// world is a fleet and its live processes.
type world struct {
	Fleet
	fail  func(format string, args ...any)
	alive []*proc
	made  int
}

// proc is a live process.
type proc struct {
	Process
	w      *world
	name   string
	pool   store.Pool
	states int64
}

func (w *world) start(size int64) *proc {
	w.made++
	p := &proc{Process: w.Start(), w: w, name: fmt.Sprint("process", w.made)}
	w.alive = append(w.alive, p)
	p.open(size, false)
	return p
}

// open opens the pool with this size. The previous session stays open.
func (p *proc) open(size int64, restate bool) {
	sp := spec(rolling(size, time.Hour))
	sp.Member, sp.Restate = p.name, restate
	pool, err := p.Store.Pool(context.Background(), sp)
	if err != nil {
		p.w.fail("opening the pool: %v", err)
	}
	p.states, p.pool = size, pool
}

func (p *proc) restate(size int64) {
	old := p.pool
	p.open(size, true)
	if err := old.Close(); err != nil {
		p.w.fail("closing a session: %v", err)
	}
}

func (p *proc) leave() {
	p.w.gone(p)
	if err := p.Store.Close(); err != nil {
		p.w.fail("leaving: %v", err)
	}
}

func (p *proc) kill() {
	p.w.gone(p)
	p.Kill()
}

func (w *world) gone(p *proc) {
	w.alive = slices.DeleteFunc(w.alive, func(x *proc) bool { return x == p })
}

// ask tries to take one, and checks the limit if it is granted.
func (p *proc) ask() {
	op := want("a", 1).try().op
	op.TTL = time.Minute
	ops := []store.Op{op}
	if err := p.pool.Apply(context.Background(), ops); err != nil {
		p.w.fail("asking: %v", err)
	}
	if l := p.limit(); ops[0].Result.State == store.Granted && l.Used > p.w.least() {
		p.w.fail("%d were let go, and a process states %d", l.Used, p.w.least())
	}
}

func (p *proc) limit() store.LimitState {
	s, err := p.pool.Snapshot(context.Background())
	if err != nil || len(s.Limits) != 1 {
		p.w.fail("snapshot %+v: %v", s.Limits, err)
	}
	return s.Limits[0]
}

// least returns the smallest size that a live process states.
func (w *world) least() int64 {
	return slices.MinFunc(w.alive, func(a, b *proc) int { return int(a.states - b.states) }).states
}

// size fails the test unless all processes see this size.
func (w *world) size(size int64) {
	for _, p := range w.alive {
		if l := p.limit(); l.Size != size {
			w.fail("%s sees the size %d of %q, want %d", p.name, l.Size, l.By, size)
		}
	}
}

// beat advances the clock by a second, with the background work of all processes.
func (w *world) beat() {
	w.Advance(time.Second)
	for _, p := range w.alive {
		if err := p.pool.Apply(context.Background(), []store.Op{{Kind: store.OpPoll, ID: store.ID{N: 1}}}); err != nil {
			w.fail("a poll: %v", err)
		}
		p.Beat()
	}
}

// settle advances the clock until the store knows which processes have died.
func (w *world) settle() {
	for range 20 {
		w.beat()
	}
}

func (w *world) end() {
	for len(w.alive) > 0 {
		w.alive[0].leave()
	}
}
