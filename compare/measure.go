package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// Result is the result of the fleet with one contender.
type Result struct {
	Name     string  `json:"name"`
	About    string  `json:"about"`
	Calls    int     `json:"calls"`
	Finished int     `json:"finished"`
	Refused  int     `json:"refused"`  // 429s, by the provider's log
	Accepted int     `json:"accepted"` // by the same log
	Used     float64 `json:"quota_used"`
	Took     float64 `json:"took_s"`
	OfIdeal  float64 `json:"times_ideal"`
	Urgent   float64 `json:"urgent_median_s"`
	UrgentAt float64 `json:"urgent_p95_s"`
	Jain     float64 `json:"jain"`
	Median   float64 `json:"median_ms"` // of a single caller without limits
	Added    float64 `json:"added_ms"`
	Rate     float64 `json:"requests_per_s"`
	Memory   float64 `json:"memory_mb"` // peak of the programs in between; 0: none
	Why      string  `json:"why_failed,omitempty"`

	Foretold *Foretold `json:"foretold,omitempty"` // of the run without a gate

	log   []arrival
	began time.Time
}

// measure runs the fleet with one contender, then measures the contender's overhead without a limit.
func measure(ctx context.Context, c contender, s *setting) (*Result, error) {
	r := &Result{Name: c.name, About: c.about, Calls: calls(agents())}
	err := with(ctx, c, s, limitSize, func(w *way, p *provider, l limit) error {
		done, began, err := runFleet(ctx, w, l)
		if err != nil {
			return err
		}
		r.judge(done, p.arrivals(), began)
		r.Memory = peakMemory(w.running)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = with(ctx, c, s, 0, func(w *way, _ *provider, l limit) error {
		if err := r.load(ctx, w, l); err != nil {
			return err
		}
		r.Memory = max(r.Memory, peakMemory(w.running))
		return nil
	})
	return r, err
}

// with opens a contender with its own provider, Redis and directory, and calls do. A size of 0 means no limit.
func with(ctx context.Context, c contender, s *setting, size int64, do func(*way, *provider, limit) error) error {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		return err
	}
	defer server.Stop()
	p, err := newProvider(size)
	if err != nil {
		return err
	}
	defer p.close()
	host, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	own := *s
	own.dir, own.target, own.redis, own.size = dir, p.url, redisAddress{host, number}, size
	if size == 0 {
		own.size = 100_000_000
	}
	l := limit{Size: own.size, Window: window.Milliseconds(), Redis: own.redis, File: filepath.Join(dir, "sent.json")}
	if err := os.WriteFile(l.File, []byte("[]"), 0o600); err != nil {
		return err
	}
	w, err := c.open(ctx, &own)
	if err != nil {
		return err
	}
	defer w.close()
	return do(w, p, l)
}

// judge computes the figures from the provider's log and the agents' reports.
func (r *Result) judge(done []ended, log []arrival, began time.Time) {
	slices.SortFunc(log, func(a, b arrival) int { return a.at.Compare(b.at) })
	r.log, r.began = log, began
	var accepted []time.Time
	for _, a := range log {
		if a.accepted {
			accepted = append(accepted, a.at)
		} else {
			r.Refused++
		}
	}
	r.Accepted = len(accepted)
	var urgent []time.Duration
	failures := map[string]int{}
	last := began
	for i := range done {
		e := &done[i]
		if e.Failed != "" {
			failures[e.Failed]++
			continue
		}
		r.Finished++
		if at := time.UnixMilli(e.Done); at.After(last) {
			last = at
		}
		if e.Class == "p0" {
			urgent = append(urgent, e.took())
		}
	}
	if missing := r.Calls - len(done); missing > 0 {
		failures[fmt.Sprintf("not over after %s", patience)] = missing
	}
	for why, n := range failures {
		if r.Why == "" || n > failures[r.Why] {
			r.Why = why
		}
	}
	r.Took = last.Sub(began).Seconds()
	r.OfIdeal = r.Took / ideal(r.Calls).Seconds()
	r.Urgent, r.UrgentAt = quantile(urgent, 0.5).Seconds(), quantile(urgent, 0.95).Seconds()
	r.Jain = jain(done)
	if len(accepted) > 0 {
		span := accepted[len(accepted)-1].Sub(accepted[0])
		r.Used = float64(len(accepted)) / (limitSize + limitSize*span.Seconds()/window.Seconds())
	}
}

// ideal returns how long the calls take if each is sent as soon as the bucket has room for it.
func ideal(n int) time.Duration {
	return time.Duration(n-limitSize)*window/limitSize + latency
}

// jain returns the fairness between the background agents, which all want the same at the same time. It is Jain's index
// over the number of calls that each had done when half of all their calls were done. 1 means equal.
func jain(done []ended) float64 {
	counts, want := map[string]float64{}, 0
	for _, a := range agents() {
		if a.Class == "p2" {
			counts[a.Name] = 0
			for _, b := range a.Bursts {
				want += b.Calls
			}
		}
	}
	slices.SortFunc(done, func(a, b ended) int { return int(a.Done - b.Done) })
	left := want / 2
	for i := range done {
		if e := &done[i]; e.Class == "p2" && e.Failed == "" && left > 0 {
			counts[e.Agent]++
			left--
		}
	}
	var sum, squares float64
	for _, n := range counts {
		sum, squares = sum+n, squares+n*n
	}
	if left > 0 || squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// load measures the cost of a call without a limit.
func (r *Result) load(ctx context.Context, w *way, l limit) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	plan := map[string]any{"gate": w.gate, "limit": l, "model": model, "key": w.key, "base": w.bases[0],
		"warm": 50, "one": 200, "callers": 32, "millis": 5000}
	var said struct {
		One    int     `json:"one"`
		Median float64 `json:"median_ms"`
		Rate   float64 `json:"per_second"`
		Failed int     `json:"failed"`
	}
	err := node(ctx, "load.mjs", plan, func(line []byte) { json.Unmarshal(line, &said) })
	if err != nil {
		return err
	}
	if said.One == 0 && said.Rate == 0 {
		return fmt.Errorf("no request came through where no limit is near: %d failed", said.Failed)
	}
	r.Median, r.Rate = said.Median, said.Rate
	return nil
}

// peakMemory returns the peak memory of the programs and their child processes, in megabytes. It is 0 if the system
// does not report it.
func peakMemory(all []*process) (mb float64) {
	groups := map[string]bool{}
	for _, p := range all {
		groups[strconv.Itoa(p.cmd.Process.Pid)] = true
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) < 3 || !groups[fields[2]] {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(name), "status"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
				mb += kb / 1024
			}
		}
	}
	return mb
}
