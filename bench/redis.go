package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// RedisRow is the performance of one limiter with a number of callers in one process. They share a limit in Redis,
// which runs on the same machine.
type RedisRow struct {
	Callers int     `json:"callers"`
	Name    string  `json:"name"`
	Rate    float64 `json:"acquires_per_second"` // all callers together, with each close that is needed
	Best    float64 `json:"best_acquires_per_second"`
	P50     float64 `json:"p50_us"` // of the acquire alone
	P99     float64 `json:"p99_us"`
	Server  float64 `json:"redis_cpu_us_per_acquire"`
	Client  float64 `json:"client_cpu_us_per_acquire"`
	Calls   float64 `json:"calls_per_acquire"` // commands sent to Redis
	Ratio   float64 `json:"ratio"`             // rate compared with redis_rate's and as many callers
	Failed  float64 `json:"failed"`            // share of acquires that were wrongly refused
}

// redisContender is one way to share a limit in Redis.
type redisContender struct {
	name string
	open func(ctx context.Context, server *redisrun.Server, callers int) (redisTaker, error)
}

// redisTaker is an opened contender. Callers are numbered from 0.
type redisTaker struct {
	take func(ctx context.Context, caller int) (bool, error) // false: refused
	end  func(caller int) error                              // ends what the caller took; may be nil
	done func() error
}

const (
	// redisRate is the limit of every contender, per second and as a burst. No contender reaches it, but it is small
	// enough for redis_rate's arithmetic to notice each request.
	redisRate = 1_000_000

	redisKey      = "hot"
	oneCaller     = 1
	manyCallers   = 128
	mostCallers   = 512
	redisWarmPart = 5 // part of a turn's length for the warm-up
	redisTimed    = 8 // with many callers, only one acquire in this many is timed, because timing each would distort the figures
)

var redisCallers = []int{oneCaller, 16, manyCallers, mostCallers}

// redisTurn is a contender with a number of callers, and its results. Each turn has its own connections, because
// clients that have begun to pipeline for many callers do not stop for one.
type redisTurn struct {
	redisContender
	redisTaker
	callers int
	seen    []RedisRow
}

// measureRedis starts its own server, and stops it even if it is interrupted.
func measureRedis(opts Options, progress io.Writer) (rows []RedisRow, flat []FlatRow, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal stops at once
	if opts.has(partRedis) {
		rows, err = measureShared(ctx, opts, progress)
	}
	if err == nil && opts.has(partFlat) {
		flat, err = measureFlat(ctx, opts, progress)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %w", err)
	}
	return rows, flat, err
}

func measureShared(ctx context.Context, opts Options, progress io.Writer) (rows []RedisRow, err error) {
	server, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return measureHotKey(ctx, server, redisContenders, redisCallers, opts, progress)
}

func measureHotKey(ctx context.Context, server *redisrun.Server, contenders []redisContender, crowds []int, opts Options, progress io.Writer) (_ []RedisRow, err error) {
	var turns []*redisTurn
	defer func() {
		for _, t := range turns {
			err = errors.Join(err, t.done())
		}
	}()
	for _, n := range crowds {
		for _, c := range contenders {
			taker, err := c.open(ctx, server, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			turns = append(turns, &redisTurn{redisContender: c, redisTaker: taker, callers: n})
		}
	}
	for round := range opts.Rounds {
		fmt.Fprintf(progress, "measuring: callers that share a limit in Redis, round %d of %d\n", round+1, opts.Rounds)
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			row, err := t.measure(ctx, server, opts.Redis)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.name, callers(t.callers), err)
			}
			t.seen = append(t.seen, row)
		}
	}
	return redisRows(turns), nil
}

// measure runs one turn.
func (t *redisTurn) measure(ctx context.Context, server *redisrun.Server, length time.Duration) (row RedisRow, err error) {
	if _, err := t.run(ctx, length/redisWarmPart); err != nil {
		return row, err
	}
	runtime.GC()
	before, err := usageOf(ctx, server)
	if err != nil {
		return row, err
	}
	got, err := t.run(ctx, length)
	if err != nil {
		return row, err
	}
	after, err := usageOf(ctx, server)
	if err != nil {
		return row, err
	}
	return judgeRedis(got, before, after), nil
}

// redisResult is the result of all callers of a turn.
type redisResult struct {
	asked, passed int
	timed         time.Duration
	took          spread
}

// run lets all callers work at the same time for a while. Their context can be cancelled, as in servers, because some
// clients use another code path then.
func (t *redisTurn) run(ctx context.Context, length time.Duration) (redisResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		over    atomic.Bool
		each    = make([]redisResult, t.callers)
		all     sync.WaitGroup
		expires = time.AfterFunc(length, func() { over.Store(true) })
		began   = time.Now()
	)
	defer expires.Stop()
	for i := range each {
		all.Go(func() {
			// Callers share nothing until the end, because they are many and the cores few.
			r := redisResult{took: spread{}}
			if err := t.loop(ctx, &over, i, &r); err != nil {
				cancel(err)
			}
			each[i] = r
		})
	}
	all.Wait()
	sum := redisResult{timed: time.Since(began)}
	for _, r := range each {
		sum.asked += r.asked
		sum.passed += r.passed
		sum.took.merge(r.took)
	}
	return sum, context.Cause(ctx)
}

// loop acquires until the turn is over, at least once.
func (t *redisTurn) loop(ctx context.Context, over *atomic.Bool, caller int, r *redisResult) error {
	every := redisTimed
	if t.callers == 1 {
		every = 1
	}
	for {
		timed := r.asked%every == 0
		var began time.Time
		if timed {
			began = time.Now()
		}
		ok, err := t.take(ctx, caller)
		if err != nil {
			return err
		}
		if timed {
			r.took.add(time.Since(began))
		}
		r.asked++
		if ok {
			r.passed++
			if t.end != nil {
				if err := t.end(caller); err != nil {
					return err
				}
			}
		}
		if over.Load() || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func judgeRedis(got redisResult, before, after usage) RedisRow {
	row := RedisRow{P50: micros(got.took.quantile(0.50)), P99: micros(got.took.quantile(0.99))}
	if got.timed > 0 {
		row.Rate = float64(got.passed) / got.timed.Seconds()
	}
	if got.asked > 0 {
		n := float64(got.asked)
		row.Failed = 1 - float64(got.passed)/n
		row.Server, row.Client = micros(after.server-before.server)/n, micros(after.client-before.client)/n
		row.Calls = float64(after.calls-before.calls) / n
	}
	return row
}

func redisRows(turns []*redisTurn) []RedisRow {
	var rows []RedisRow
	for _, t := range turns {
		row := RedisRow{
			Callers: t.callers,
			Name:    t.name,
			Rate:    medianOf(t.seen, func(r RedisRow) float64 { return r.Rate }),
			P50:     medianOf(t.seen, func(r RedisRow) float64 { return r.P50 }),
			P99:     medianOf(t.seen, func(r RedisRow) float64 { return r.P99 }),
			Server:  medianOf(t.seen, func(r RedisRow) float64 { return r.Server }),
			Client:  medianOf(t.seen, func(r RedisRow) float64 { return r.Client }),
			Calls:   medianOf(t.seen, func(r RedisRow) float64 { return r.Calls }),
			Failed:  medianOf(t.seen, func(r RedisRow) float64 { return r.Failed }),
		}
		for _, one := range t.seen {
			row.Best = max(row.Best, one.Rate)
		}
		rows = append(rows, row)
	}
	for i := range rows {
		if base := findRedis(rows, rows[i].Callers, nameRedisRate).Rate; base > 0 {
			rows[i].Ratio = rows[i].Rate / base
		}
	}
	return rows
}

func findRedis(rows []RedisRow, callers int, name string) RedisRow {
	for _, r := range rows {
		if r.Callers == callers && r.Name == name {
			return r
		}
	}
	return RedisRow{}
}
