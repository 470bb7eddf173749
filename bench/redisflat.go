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
	Ratio  float64 `json:"ratio"` // to the smallest size
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

type flatTurn struct {
	what string
	size int
	step flatStep
	seen []float64
}

func measureFlat(ctx context.Context, server *redisrun.Server, opts Options, progress io.Writer) ([]FlatRow, error) {
	var rows []FlatRow
	for _, c := range flatContenders {
		some, err := c.measure(ctx, server, opts, progress)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func (c flatContender) measure(ctx context.Context, server *redisrun.Server, opts Options, progress io.Writer) (_ []FlatRow, err error) {
	var turns []*flatTurn
	for _, size := range flatSizes(opts.Crowd) {
		for _, what := range c.whats {
			fmt.Fprintf(progress, "preparing: what an acquire costs Redis %s, %d\n", what, size)
		}
		steps, done, err := c.prepare(ctx, server, size)
		if err != nil {
			return nil, fmt.Errorf("%s, %d: %w", c.whats[0], size, err)
		}
		defer func() { err = errors.Join(err, done()) }()
		for i, what := range c.whats {
			turns = append(turns, &flatTurn{what: what, size: size, step: steps[i]})
		}
	}
	for round := range opts.Rounds {
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			if err := t.measure(ctx, server, opts.Redis); err != nil {
				return nil, fmt.Errorf("%s, %d: %w", t.what, t.size, err)
			}
		}
	}
	return flatRows(turns), nil
}

func (t *flatTurn) measure(ctx context.Context, server *redisrun.Server, length time.Duration) error {
	if _, err := t.run(ctx, length/redisWarmPart); err != nil {
		return err
	}
	runtime.GC()
	before, err := server.CPU()
	if err != nil {
		return err
	}
	n, err := t.run(ctx, length)
	if err != nil {
		return err
	}
	after, err := server.CPU()
	if err != nil {
		return err
	}
	t.seen = append(t.seen, micros(after-before)/float64(n))
	return nil
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
		row := FlatRow{What: t.what, Size: t.size, Server: medianOf(t.seen, func(us float64) float64 { return us })}
		if len(t.seen) > 0 {
			row.Best = slices.Min(t.seen)
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
