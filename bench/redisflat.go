package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// FlatRow is what an acquire costs Redis when there is a number of something that it has nothing to
// do with.
type FlatRow struct {
	What   string  `json:"what"`
	Size   int     `json:"size"`
	Server float64 `json:"redis_cpu_us_per_acquire"`
	Best   float64 `json:"best_redis_cpu_us_per_acquire"`
	Ratio  float64 `json:"ratio"`            // to the smallest size
	Idle   float64 `json:"redis_cpu_idle"`   // the part of a processor that Redis uses while nobody asks
	Failed string  `json:"failed,omitempty"` // why there are no figures
}

// flatContender is something of which there can be many, and what is asked of Redis then.
type flatContender struct {
	whats []string
	// prepare makes so many of it, and returns a step for each question.
	prepare func(ctx context.Context, server *redisrun.Server, size int) (steps []flatStep, done func() error, err error)
}

// flatStep is a few acquires. It returns how many.
type flatStep func(context.Context) (int, error)

// Sluice adds itself in sluiceflat.go; of nobody else there is anything to show.
var flatContenders []flatContender

// flatSizes are those up to the largest.
func flatSizes(largest int) []int {
	sizes := slices.DeleteFunc([]int{minCrowd, 1000}, func(n int) bool { return n >= largest })
	return append(sizes, largest)
}

// flatTurn is a question at a size. Each size has its own server: what one of them does by itself is
// not the others'.
type flatTurn struct {
	what   string
	size   int
	server *redisrun.Server
	step   flatStep
	seen   []flatSeen
	err    error // it is over with this one
}

// flatSeen is processor time for each acquire in microseconds, and for each second of rest.
type flatSeen struct{ acquire, idle float64 }

func measureFlat(ctx context.Context, opts Options, progress io.Writer) ([]FlatRow, error) {
	var rows []FlatRow
	for _, c := range flatContenders {
		some, err := c.measure(ctx, opts, progress)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// measure goes on where a size cannot be had: that is a result too.
func (c flatContender) measure(ctx context.Context, opts Options, progress io.Writer) (_ []FlatRow, err error) {
	var turns []*flatTurn
	for _, size := range flatSizes(opts.Crowd) {
		if ctx.Err() != nil {
			break
		}
		for _, what := range c.whats {
			fmt.Fprintf(progress, "preparing: what an acquire costs Redis %s, %d\n", what, size)
		}
		server, failed := redisrun.Start(redisrun.Options{})
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		steps, done, failed := c.prepareWithin(ctx, server, size)
		if done != nil {
			defer func() {
				if err := done(); err != nil {
					fmt.Fprintf(progress, "leaving %d: %v\n", size, err)
				}
			}()
		}
		for i, what := range c.whats {
			t := &flatTurn{what: what, size: size, server: server, err: failed}
			if failed == nil {
				t.step = steps[i]
			}
			turns = append(turns, t)
		}
	}
	for round := range opts.Rounds {
		for i := range turns {
			if t := turns[(i+round)%len(turns)]; t.err == nil && ctx.Err() == nil {
				t.err = t.measure(ctx, opts.Redis)
			}
		}
	}
	return flatRows(turns), ctx.Err()
}

// flatPatience bounds how long it takes to have so many of something.
const flatPatience = 3 * time.Minute

func (c flatContender) prepareWithin(ctx context.Context, server *redisrun.Server, size int) ([]flatStep, func() error, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, flatPatience, fmt.Errorf("not prepared within %v", flatPatience))
	defer cancel()
	steps, done, err := c.prepare(ctx, server, size)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return steps, done, err
}

func (t *flatTurn) measure(ctx context.Context, length time.Duration) error {
	if _, err := t.run(ctx, length/redisWarmPart); err != nil {
		return err
	}
	runtime.GC()
	idle, took, err := t.spent(func() error { return rest(ctx, length) })
	if err != nil {
		return err
	}
	n := 0
	busy, _, err := t.spent(func() (err error) {
		n, err = t.run(ctx, length)
		return err
	})
	if err != nil {
		return err
	}
	t.seen = append(t.seen, flatSeen{micros(busy) / float64(n), idle.Seconds() / took.Seconds()})
	return nil
}

// spent returns the processor time that the server needs meanwhile, and how long it takes.
func (t *flatTurn) spent(f func() error) (cpu, took time.Duration, err error) {
	before, err := t.server.CPU()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	after, err := t.server.CPU()
	return after - before, took, err
}

// rest does nothing for a while.
func rest(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *flatTurn) run(ctx context.Context, length time.Duration) (acquires int, err error) {
	for end := time.Now().Add(length); ; {
		n, err := t.step(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		if acquires += n; !time.Now().Before(end) {
			return acquires, nil
		}
	}
}

// flatRows sorts by question: the sizes of each follow each other.
func flatRows(turns []*flatTurn) []FlatRow {
	var rows []FlatRow
	smallest := map[string]float64{}
	for _, t := range turns {
		row := FlatRow{What: t.what, Size: t.size, Server: medianOf(t.seen, func(s flatSeen) float64 { return s.acquire })}
		for i, s := range t.seen {
			if i == 0 || s.acquire < row.Best {
				row.Best = s.acquire
			}
			row.Idle += s.idle / float64(len(t.seen)) // it may come and go: no median
		}
		if t.err != nil {
			row = FlatRow{What: t.what, Size: t.size, Failed: t.err.Error()}
		}
		if _, later := smallest[t.what]; !later {
			smallest[t.what] = row.Server
		}
		if base := smallest[t.what]; base > 0 {
			row.Ratio = row.Server / base
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b FlatRow) int { return cmp.Compare(a.What, b.What) })
	return rows
}
