package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// A limit that far more callers want than it has room for. What the store does between a grant and the next one is lost
// to all of them, so the part of the rate that they use shows it.
const (
	contendedRate = 100 // per second, with a burst of 1
	contendedWarm = time.Second
)

// ContendedRow is how much of a contended limit is used. Callers ask, answer and close at once, and ask again. Each
// process has a gate and a store of its own.
type ContendedRow struct {
	Store     string  `json:"store"`
	Processes int     `json:"processes"`
	Waiters   int     `json:"waiters"` // of each process
	Share     float64 `json:"share"`   // of the rate
	P50       float64 `json:"p50_us"`  // from a grant until its caller has it
	P99       float64 `json:"p99_us"`
	Server    float64 `json:"redis_cpu_us_per_grant,omitempty"`
	Failed    string  `json:"failed,omitempty"`
}

// contender of a contended limit: acquire waits for a grant and returns when the store made it.
type contenderGate struct {
	acquire func(ctx context.Context, caller int) (granted time.Time, end func() error, err error)
	close   func() error
}

// openContended opens the gate of one process. It is set in sluiceused.go, because only Sluice is measured here.
var openContended func(ctx context.Context, url string, process int) (contenderGate, error)

var contendedRuns = []ContendedRow{{Processes: 2, Waiters: 200}, {Processes: 10, Waiters: 40}}

func measureContended(ctx context.Context, opts Options, progress io.Writer) (rows []ContendedRow, err error) {
	if openContended == nil {
		return nil, nil
	}
	for _, kind := range []string{"file", "redis"} {
		for _, row := range contendedRuns {
			row.Store = kind
			fmt.Fprintf(progress, "measuring: %d waiters in each of %d processes on a contended limit, %s\n", row.Waiters, row.Processes, kind)
			if err := row.median(ctx, opts); err != nil {
				row.Failed = err.Error()
			}
			rows = append(rows, row)
		}
	}
	return rows, ctx.Err()
}

// median fills in the medians of all rounds.
func (row *ContendedRow) median(ctx context.Context, opts Options) error {
	var seen []ContendedRow
	for range opts.Rounds {
		one := *row
		if err := one.measure(ctx, 20*opts.Redis); err != nil {
			return err
		}
		seen = append(seen, one)
	}
	row.Share = medianOf(seen, func(r ContendedRow) float64 { return r.Share })
	row.P50 = medianOf(seen, func(r ContendedRow) float64 { return r.P50 })
	row.P99 = medianOf(seen, func(r ContendedRow) float64 { return r.P99 })
	row.Server = medianOf(seen, func(r ContendedRow) float64 { return r.Server })
	return nil
}

func (row *ContendedRow) measure(ctx context.Context, length time.Duration) (err error) {
	if row.Store == "redis" {
		server, err := redisrun.Start(redisrun.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		return row.contend(ctx, server.URL(), length, server.CPU)
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return row.contend(ctx, "file:"+dir, length, func() (time.Duration, error) { return 0, nil })
}

// contend lets all callers ask for a while, and counts what they got after the first second.
func (row *ContendedRow) contend(ctx context.Context, url string, length time.Duration, serverCPU func() (time.Duration, error)) (err error) {
	var gates []contenderGate
	defer func() {
		for _, g := range gates {
			err = errors.Join(err, g.close())
		}
	}()
	for i := range row.Processes {
		g, err := openContended(ctx, url, i)
		if err != nil {
			return err
		}
		gates = append(gates, g)
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	got := make([][]hand, row.Processes*row.Waiters)
	failed := make([]error, len(got))
	var callers sync.WaitGroup
	for i := range got {
		callers.Go(func() { got[i], failed[i] = ask(asking, gates[i/row.Waiters], i) })
	}
	halt := func(err error) error {
		stop()
		callers.Wait()
		return err
	}
	if err := rest(ctx, contendedWarm); err != nil {
		return halt(err)
	}
	from := time.Now()
	before, err := serverCPU()
	if err != nil {
		return halt(err)
	}
	if err := rest(ctx, length); err != nil {
		return halt(err)
	}
	to := time.Now()
	after, err := serverCPU()
	if err := halt(errors.Join(err, errors.Join(failed...))); err != nil {
		return err
	}
	return row.count(got, from, to, after-before)
}

// hand is one grant: when the store made it, and when the caller had it.
type hand struct{ granted, had time.Time }

func ask(ctx context.Context, g contenderGate, caller int) (all []hand, err error) {
	for {
		granted, end, err := g.acquire(ctx, caller)
		if ctx.Err() != nil {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, hand{granted, time.Now()})
		if err := end(); err != nil {
			return all, err
		}
	}
}

// count fills in what was granted in a time.
func (row *ContendedRow) count(got [][]hand, from, to time.Time, cpu time.Duration) error {
	var late []float64
	for _, all := range got {
		for _, h := range all {
			if h.had.Before(from) || h.had.After(to) {
				continue
			}
			late = append(late, float64(h.had.Sub(h.granted).Microseconds()))
		}
	}
	if len(late) == 0 {
		return errors.New("nothing was granted")
	}
	slices.Sort(late)
	n := float64(len(late))
	row.Share = n / (contendedRate * to.Sub(from).Seconds())
	row.P50, row.P99 = late[len(late)/2], late[len(late)*99/100]
	row.Server = float64(cpu.Microseconds()) / n
	return nil
}

func (r Report) printContended(w io.Writer) {
	if len(r.Contended) == 0 {
		return
	}
	fmt.Fprintf(w, "\na contended limit of %d/s, burst 1\tprocesses\twaiters of each\tof the rate\tgrant to caller p50 us\tp99 us\tRedis CPU us/grant\n", contendedRate)
	for _, row := range r.Contended {
		if row.Failed != "" {
			fmt.Fprintf(w, "  %s\t%d\t%s\n", row.Store, row.Processes, row.Failed)
			continue
		}
		server := "-"
		if row.Server > 0 {
			server = strconv.FormatFloat(row.Server, 'f', 1, 64)
		}
		fmt.Fprintf(w, "  %s\t%d\t%d\t%s\t%.0f\t%.0f\t%s\n", row.Store, row.Processes, row.Waiters, percent(row.Share, 1), row.P50, row.P99, server)
	}
}

// contendedBars are those of row J18.
func contendedBars(rows []ContendedRow) (all []Bar) {
	for _, row := range rows {
		if row.Failed == "" {
			all = append(all, atLeast(fmt.Sprintf("contended limit, %s, %d x %d waiters: part of the rate", row.Store, row.Processes, row.Waiters), row.Share, 0.95))
		}
	}
	return all
}
