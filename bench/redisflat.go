package main

import (
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

// flatContender is something of which there can be many.
type flatContender struct {
	what string
	// prepare makes so many of it. A step is a few acquires, and returns how many.
	prepare func(ctx context.Context, server *redisrun.Server, size int) (step func(context.Context) (int, error), done func() error, err error)
}

// Sluice adds itself in sluiceflat.go; of nobody else there is anything to show.
var flatContenders []flatContender

// flatSizes are those up to the largest.
func flatSizes(largest int) []int {
	sizes := slices.DeleteFunc([]int{minCrowd, 1000}, func(n int) bool { return n >= largest })
	return append(sizes, largest)
}

type flatTurn struct {
	size int
	step func(context.Context) (int, error)
	done func() error
	seen []float64
}

func measureFlat(ctx context.Context, server *redisrun.Server, opts Options, progress io.Writer) ([]FlatRow, error) {
	var rows []FlatRow
	for _, c := range flatContenders {
		fmt.Fprintf(progress, "measuring: what an acquire costs Redis %s\n", c.what)
		some, err := c.measure(ctx, server, opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func (c flatContender) measure(ctx context.Context, server *redisrun.Server, opts Options) (_ []FlatRow, err error) {
	var turns []*flatTurn
	defer func() {
		for _, t := range turns {
			err = errors.Join(err, t.done())
		}
	}()
	for _, size := range flatSizes(opts.Crowd) {
		step, done, err := c.prepare(ctx, server, size)
		if err != nil {
			return nil, fmt.Errorf("%d of them: %w", size, err)
		}
		turns = append(turns, &flatTurn{size: size, step: step, done: done})
	}
	for round := range opts.Rounds {
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			if err := t.measure(ctx, server, opts.Redis); err != nil {
				return nil, fmt.Errorf("%d of them: %w", t.size, err)
			}
		}
	}
	return flatRows(c.what, turns), nil
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

func flatRows(what string, turns []*flatTurn) []FlatRow {
	var rows []FlatRow
	for _, t := range turns {
		row := FlatRow{What: what, Size: t.size, Server: medianOf(t.seen, func(us float64) float64 { return us })}
		if len(t.seen) > 0 {
			row.Best = slices.Min(t.seen)
		}
		rows = append(rows, row)
	}
	for i := range rows {
		if base := rows[0].Server; base > 0 {
			rows[i].Ratio = rows[i].Server / base
		}
	}
	return rows
}
