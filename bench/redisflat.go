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

// FlatRow is the cost of an acquire for Redis in the presence of a number of unrelated things, such as agents or
// waiters.
type FlatRow struct {
	What   string  `json:"what"`
	Size   int     `json:"size"`
	Server float64 `json:"redis_cpu_us_per_acquire"`
	Best   float64 `json:"best_redis_cpu_us_per_acquire"`
	Ratio  float64 `json:"ratio"`            // compared with the smallest size
	Idle   float64 `json:"redis_cpu_idle"`   // part of a processor that Redis uses while no caller acquires
	Failed string  `json:"failed,omitempty"` // why there are no figures
}

// flatContender is something that can exist in large numbers, with the steps to measure then.
type flatContender struct {
	whats []string
	// prepare creates size of them, and returns a step for each of whats.
	prepare func(ctx context.Context, server *redisrun.Server, size int) (steps []flatStep, done func() error, err error)
}

// flatStep makes a few acquires. It returns their number.
type flatStep func(context.Context) (int, error)

// flatContenders are the contenders. Only Sluice has any, in sluiceflat.go.
var flatContenders []flatContender

// flatSizes returns the sizes to measure, up to the largest.
func flatSizes(largest int) []int {
	sizes := slices.DeleteFunc([]int{minCrowd, 1000}, func(n int) bool { return n >= largest })
	return append(sizes, largest)
}

// flatTurn is one of whats at one size. Each size has its own server, so that its background work does not affect the
// others.
type flatTurn struct {
	what   string
	size   int
	server *redisrun.Server
	step   flatStep
	seen   []flatSeen
	err    error // set when it failed; then it is not measured again
}

// flatSeen is Redis's processor time in microseconds per acquire, and its part of a processor while idle.
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

// measure measures all sizes. If a size cannot be prepared, that is a result too, and it goes on with the others.
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

// flatPatience bounds the time to prepare one size.
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

// spent returns the processor time that the server uses during f, and how long f takes.
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

// rest waits for length or until ctx ends.
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

// flatRows returns the rows grouped by what they measure, with ascending sizes.
func flatRows(turns []*flatTurn) []FlatRow {
	var rows []FlatRow
	smallest := map[string]float64{}
	for _, t := range turns {
		row := FlatRow{What: t.what, Size: t.size, Server: medianOf(t.seen, func(s flatSeen) float64 { return s.acquire })}
		for i, s := range t.seen {
			if i == 0 || s.acquire < row.Best {
				row.Best = s.acquire
			}
			row.Idle += s.idle / float64(len(t.seen)) // a mean, because idle work comes and goes
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
