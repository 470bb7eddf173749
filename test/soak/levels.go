package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Level is a figure that must not keep growing while a daemon runs: its means in the three thirds of the load.
type Level struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Start  float64 `json:"start"`
	Middle float64 `json:"middle"`
	End    float64 `json:"end"`

	slack float64 // growth that is tolerated
}

// drifts reports whether the last third is higher than the middle one by more than a tenth and more than the slack. The
// first third does not count, because caches and leases fill up in it.
func (l Level) drifts() bool { return l.End > l.Middle*1.1 && l.End > l.Middle+l.slack }

// judgedFrom is the shortest load whose levels are checked, because a store's files and caches take minutes to fill.
const judgedFrom = 10 * time.Minute

// sample is what a daemon holds at one time. -1 means unknown.
type sample struct{ descriptors, goroutines, files, keys float64 }

// gauge samples a daemon.
type gauge struct {
	pid  int
	wire *wire
	dir  string
	keys func(context.Context) (float64, error) // nil: the store is not Redis
}

func (g *gauge) look(ctx context.Context) sample {
	s := sample{descriptors: -1, goroutines: -1, files: -1, keys: -1}
	if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.pid)); err == nil {
		s.descriptors = float64(len(open))
	}
	if text, err := g.wire.text(ctx, "/metrics"); err == nil {
		s.goroutines = metric(text, "go_goroutines ")
	}
	n := 0.0
	if err := filepath.WalkDir(g.dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil // a file may have been removed
	}); err == nil {
		s.files = n
	}
	if g.keys != nil {
		if n, err := g.keys(ctx); err == nil {
			s.keys = n
		}
	}
	return s
}

// metric returns the value of the first line with this prefix, or -1 if there is none.
func metric(text, begin string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// levels returns the levels of a load: the samples, and the duration of calls.
func (v *watcher) levels(load *phase) []Level {
	const mb = 1 << 20
	own := make([]float64, len(v.samples))
	for i, n := range v.samples {
		own[i] = float64(n) / mb
	}
	list := []Level{thirds("memory", "MB", 20, own)}
	for _, c := range []struct {
		name  string
		slack float64
		of    func(sample) float64
	}{
		{"descriptors", 32, func(s sample) float64 { return s.descriptors }},
		{"goroutines", 64, func(s sample) float64 { return s.goroutines }},
		{"files", 8, func(s sample) float64 { return s.files }},
		{"Redis keys", 8, func(s sample) float64 { return s.keys }},
	} {
		var known []float64
		for _, s := range v.held {
			if n := c.of(s); n >= 0 {
				known = append(known, n)
			}
		}
		if len(known) > 0 {
			list = append(list, thirds(c.name, "", c.slack, known))
		}
	}
	for _, q := range []struct {
		name  string
		at    float64
		slack float64 // in ms, for a busy machine
	}{{"acquire p50", 0.5, 5}, {"acquire p99", 0.99, 100}} {
		l := Level{Name: q.name, Unit: "ms", slack: q.slack}
		for i, to := range []*float64{&l.Start, &l.Middle, &l.End} {
			*to = load.third[i].at(q.at).Seconds() * 1000
		}
		list = append(list, l)
	}
	return list
}

// thirds returns the level with the means of its samples.
func thirds(name, unit string, slack float64, all []float64) Level {
	l := Level{Name: name, Unit: unit, slack: slack}
	n := len(all)
	for i, to := range []*float64{&l.Start, &l.Middle, &l.End} {
		some := all[n*i/3 : n*(i+1)/3]
		for _, x := range some {
			*to += x / float64(len(some))
		}
	}
	return l
}
