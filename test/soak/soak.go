package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"
)

// idleRate is the number of tickets, and of heartbeats, per second of the baseline.
const idleRate = 10

// Result is the result of a soak.
type Result struct {
	OK      bool               `json:"ok"`
	Store   string             `json:"store"`
	Agents  int                `json:"agents"`
	Rate    int                `json:"tickets_per_s"`
	Every   float64            `json:"heartbeat_every_s"`
	Seconds float64            `json:"seconds"`
	Cores   int                `json:"cores"`
	CPU     float64            `json:"daemon_cores_used"`
	Threads int64              `json:"daemon_threads"`
	Idle    map[string]Figures `json:"idle"`
	Load    map[string]Figures `json:"load"`
	Memory  Memory             `json:"memory_bytes"`
	Levels  []Level            `json:"levels"`
	Errors  map[string]int64   `json:"errors"`
	Checks  []Check            `json:"checks"`
}

// calls are the measured calls, in the order of the output.
var calls = []string{"acquire", "answer", "close", "heartbeat"}

func (p *phase) figures() map[string]Figures {
	return map[string]Figures{"acquire": p.acquire.figures(), "answer": p.answer.figures(), "close": p.closed.figures(), "heartbeat": p.beat.figures()}
}

// soak starts a daemon on a store of the given kind, measures it and stops it.
func soak(ctx context.Context, o options, kind string, stderr io.Writer) (r *Result, err error) {
	dir, err := os.MkdirTemp("", "sluice-soak-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := openBase(ctx, o, kind, dir)
	if err != nil {
		return nil, err
	}
	s, err := serve(ctx, o, dir, b.url)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	w := &wire{address: s.address}
	r, err = measure(ctx, o, s, &gauge{pid: s.process.Pid, wire: w, dir: dir, keys: b.keys}, stderr)
	w.close()
	end := errors.Join(s.stop(), b.close())
	if err != nil {
		return nil, errors.Join(err, end)
	}
	if r.Store = kind; kind == "" {
		r.Store = "of --store"
	}
	r.check("the daemon ends well", end == nil, told(end))
	r.OK = true
	for _, c := range r.Checks {
		r.OK = r.OK && c.OK
	}
	return r, nil
}

func told(err error) string {
	if err != nil {
		return err.Error()
	}
	return "exit 0"
}

// measure runs the baseline and the load, then checks the results.
func measure(ctx context.Context, o options, s *served, g *gauge, stderr io.Writer) (*Result, error) {
	pid := s.process.Pid
	idle := &phase{agents: 1, prefix: "idle", tickets: count(idleRate, o.idle), beats: count(idleRate, o.idle), length: o.idle}
	fmt.Fprintf(stderr, "soak: %s of %d tickets and heartbeats a second as a baseline\n", o.idle, idleRate)
	if err := idle.run(ctx, s.address, 2); err != nil {
		return nil, err
	}
	w := &wire{address: s.address}
	defer w.close()
	if err := w.call(ctx, "DELETE", "/v1/agents/idle-0", nil, nil); err != nil {
		return nil, fmt.Errorf("the agent of the baseline cannot leave: %w", err)
	}
	rest, _, _ := memory(pid)
	load := &phase{
		agents: o.agents, prefix: "agent", tickets: count(o.tickets, o.load), length: o.load,
		beats: int(float64(o.agents) * o.load.Seconds() / o.every.Seconds()),
	}
	fmt.Fprintf(stderr, "soak: %s of %d tickets a second, and %d agents with a heartbeat every %s\n", o.load, o.tickets, o.agents, o.every)
	v := watcher{gauge: g, every: max(o.load/60, time.Second)}
	over, watched, busy, begun := make(chan struct{}), make(chan struct{}), cpu(pid), time.Now()
	go func() {
		defer close(watched)
		v.watch(ctx, pid, load, begun, over, stderr)
	}()
	err := load.run(ctx, s.address, o.conns)
	took := time.Since(begun)
	close(over)
	<-watched
	if err != nil {
		return nil, err
	}
	r := &Result{
		Agents: o.agents, Rate: o.tickets, Every: o.every.Seconds(), Seconds: took.Seconds(), Cores: o.cores,
		CPU: (cpu(pid) - busy).Seconds() / took.Seconds(), Threads: v.threads, Idle: idle.figures(), Load: load.figures(), Memory: v.memory(rest), Levels: v.levels(load), Errors: load.errors,
	}
	for kind, n := range maps.All(idle.errors) {
		r.Errors["idle "+kind] += n
	}
	return r, r.examine(ctx, o, w, idle, load)
}

func count(rate int, d time.Duration) int { return max(int(float64(rate)*d.Seconds()), 1) }
