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
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// A limit that far more callers want than it has room for. What the store does between a grant and the next one is lost
// to all of them, so the part of the rate that they use shows it.
const (
	contendedRate = 100 // per second, with a burst of 1
	contendedWarm = time.Second
	lentRedis     = "daemon on redis" // the store is the one that a daemon lends
)

// ContendedRow is how much of a contended limit is used. Callers ask, answer and close at once, and ask again. Each
// process has a gate and a store of its own.
type ContendedRow struct {
	Store     string  `json:"store"`
	Processes int     `json:"processes"`
	Waiters   int     `json:"waiters"`           // of each process
	Bare      bool    `json:"bare,omitempty"`    // only grants are measured: callers send no answers, and arrivals are not guarded
	Stall     float64 `json:"stall_s,omitempty"` // for how long Redis stood still in the middle
	Lost      int     `json:"lost_places"`       // requests whose grant lapsed, or that failed
	Share     float64 `json:"share"`             // of the rate
	P50       float64 `json:"p50_us"`            // from a grant until its caller has it
	P99       float64 `json:"p99_us"`
	Server    float64 `json:"redis_cpu_us_per_grant,omitempty"`
	Failed    string  `json:"failed,omitempty"`

	lost *atomic.Int64 // of one round
}

// contender of a contended limit: acquire waits for a grant and returns when the store made it.
type contenderGate struct {
	acquire func(ctx context.Context, caller int) (granted time.Time, end func() error, err error)
	close   func() error
}

// openContended opens the gate of one process, and openBareContended its store alone. They are set in sluiceused.go, because only Sluice is measured here.
var openContended, openBareContended func(ctx context.Context, url string, row *ContendedRow) (contenderGate, error)

var contendedRuns = []ContendedRow{
	{Processes: 2, Waiters: 200}, {Processes: 10, Waiters: 40},
	{Processes: 2, Waiters: 200, Bare: true}, {Processes: 10, Waiters: 40, Bare: true},
	{Processes: 2, Waiters: 100, Bare: true, Stall: 4},
}

func measureContended(ctx context.Context, opts Options, progress io.Writer) (rows []ContendedRow, err error) {
	if openContended == nil {
		return nil, nil
	}
	for _, kind := range []string{"file", "redis", lentRedis} {
		for _, row := range contendedRuns {
			if row.Store = kind; kind != "redis" && row.Bare {
				continue
			}
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
		one.lost = new(atomic.Int64)
		if err := one.measure(ctx, 20*opts.Redis); err != nil {
			return err
		}
		seen = append(seen, one)
	}
	row.Share = medianOf(seen, func(r ContendedRow) float64 { return r.Share })
	row.P50 = medianOf(seen, func(r ContendedRow) float64 { return r.P50 })
	row.P99 = medianOf(seen, func(r ContendedRow) float64 { return r.P99 })
	row.Server = medianOf(seen, func(r ContendedRow) float64 { return r.Server })
	for _, one := range seen {
		row.Lost += one.Lost
	}
	return nil
}

func (row *ContendedRow) measure(ctx context.Context, length time.Duration) (err error) {
	if row.Store != "file" {
		server, err := redisrun.Start(redisrun.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		url := server.URL()
		if row.Store == lentRedis {
			address, stop, err := openLender(ctx, url)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stop()) }()
			url = address
		}
		return row.contend(ctx, url, func() error { return row.load(ctx, server, length) }, server.CPU)
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return row.contend(ctx, "file:"+dir, func() error { return rest(ctx, length) }, func() (time.Duration, error) { return 0, nil })
}

// load lasts for a length, and as long as Redis stands still in the middle.
func (row *ContendedRow) load(ctx context.Context, server *redisrun.Server, length time.Duration) error {
	if row.Stall == 0 {
		return rest(ctx, length)
	}
	return errors.Join(
		rest(ctx, length/2), server.Pause(), rest(ctx, time.Duration(row.Stall*float64(time.Second))), server.Resume(), rest(ctx, length/2),
	)
}

// contend lets all callers ask for a while, and counts what they got after the first second.
func (row *ContendedRow) contend(ctx context.Context, url string, load func() error, serverCPU func() (time.Duration, error)) (err error) {
	var gates []contenderGate
	defer func() {
		for _, g := range gates {
			err = errors.Join(err, g.close())
		}
	}()
	open := openContended
	if row.Bare {
		open = openBareContended
	}
	for range row.Processes {
		g, err := open(ctx, url, row)
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
	if err := load(); err != nil {
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
		if end == nil { // it lost its place
			continue
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
	row.Lost = int(row.lost.Load())
	return nil
}

func (r Report) printContended(w io.Writer) {
	if len(r.Contended) == 0 {
		return
	}
	fmt.Fprintf(w, "\na contended limit of %d/s, burst 1\tprocesses\twaiters of each\tof the rate\tgrant to caller p50 us\tp99 us\tRedis CPU us/grant\tlost places\n", contendedRate)
	for _, row := range r.Contended {
		if row.Failed != "" {
			fmt.Fprintf(w, "  %s\t%d\t%s\n", row.what(), row.Processes, row.Failed)
			continue
		}
		server := "-"
		if row.Server > 0 {
			server = strconv.FormatFloat(row.Server, 'f', 1, 64)
		}
		fmt.Fprintf(w, "  %s\t%d\t%d\t%s\t%.0f\t%.0f\t%s\t%d\n", row.what(), row.Processes, row.Waiters, percent(row.Share, 1), row.P50, row.P99, server, row.Lost)
	}
}

// what names a row.
func (row *ContendedRow) what() string {
	switch {
	case row.Stall > 0:
		return fmt.Sprintf("%s, bare, Redis stands still for %g s", row.Store, row.Stall)
	case row.Bare:
		return row.Store + ", bare"
	}
	return row.Store
}

// contendedBars are those of row J18, and of stores by themselves.
func contendedBars(rows []ContendedRow) (all []Bar) {
	for _, row := range rows {
		what := func(text string) string {
			return fmt.Sprintf("contended limit, %s, %d x %d waiters: %s", row.what(), row.Processes, row.Waiters, text)
		}
		switch {
		case row.Failed != "":
		case row.Stall > 0:
			all = append(all, bar(what("lost places"), float64(row.Lost), 0, 0))
		case row.Bare:
			all = append(all, atLeast(what("part of the rate"), row.Share, 0.99), bar(what("p99 from grant to waiter, us"), row.P99, 0, 5000))
		case row.Store == lentRedis: // a round trip to the daemon lies between a grant and its answer
			all = append(all, atLeast(what("part of the rate"), row.Share, 0.90))
		default:
			all = append(all, atLeast(what("part of the rate"), row.Share, 0.95))
		}
	}
	return all
}
