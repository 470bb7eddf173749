package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// MachinesRow is the cost of a number of machines for one Redis. Each machine sends whole tickets one by one. Without
// daemons it has its own connection and share, and nothing is batched. With daemons each daemon batches the requests
// that its machines send at the same time, through its proxy or on the store that it lends.
type MachinesRow struct {
	Machines int     `json:"machines"`
	Daemons  int     `json:"daemons,omitempty"` // in front of Redis, in this process; 0: the machines use Redis directly
	Lent     bool    `json:"lent,omitempty"`    // the machines use the store of their daemon over HTTP; else the daemon's own gate, as its proxy does
	Rate     int     `json:"rate"`              // total target of tickets per second; 0: as many as possible
	Tickets  float64 `json:"tickets_per_s"`     // completed
	CPU      float64 `json:"redis_cpu_us_per_ticket"`
	Busy     float64 `json:"redis_cpu"`      // part of a processor that Redis used during the load
	Idle     float64 `json:"redis_cpu_idle"` // the same without requests
	Calls    float64 `json:"redis_calls_per_ticket"`
	Out      float64 `json:"bytes_out_per_ticket"` // of Redis
	IdleOut  float64 `json:"bytes_out_idle_per_s"` // the same without requests
	Failed   string  `json:"failed,omitempty"`
}

// machine acquires and closes tickets, one at a time.
type machine struct {
	ticket func(context.Context) error
	close  func()
}

// openMachine opens a machine. It is set in sluiceused.go, because only Sluice is measured here, no peer.
var openMachine func(ctx context.Context, url string, number int) (machine, error)

// openProxy opens the gate of a daemon for a number of machines.
var openProxy func(ctx context.Context, url string, machines int) ([]machine, error)

// openLender opens a daemon that lends the store at a URL, and returns its address.
var openLender func(ctx context.Context, url string) (address string, stop func() error, err error)

// machineRuns lists the numbers of machines with their rates. With a rate, machines send now and then, as in a fleet.
var machineRuns = []MachinesRow{
	{Machines: 1}, {Machines: 10}, {Machines: 100}, {Machines: 100, Rate: 1000}, {Machines: 500, Rate: 2000},
}

// daemonRuns lists the same behind daemons. Each daemon has 50 machines with 500 tickets a second; 20 of them have 1,000
// machines with 10,000.
var daemonRuns = []MachinesRow{
	{Machines: 50, Rate: 500, Daemons: 1, Lent: true}, {Machines: 100, Rate: 1000, Daemons: 2, Lent: true},
	{Machines: 50, Rate: 500, Daemons: 1}, {Machines: 100, Rate: 1000, Daemons: 2}, {Machines: 200, Rate: 2000, Daemons: 4},
	{Machines: 400, Rate: 4000, Daemons: 8}, {Machines: 1000, Rate: 10000, Daemons: 20},
}

func measureMachines(ctx context.Context, opts Options, progress io.Writer) (rows []MachinesRow, err error) {
	if openMachine == nil {
		return nil, nil
	}
	var runs []MachinesRow
	if opts.has(partMachines) {
		runs = machineRuns
	}
	if opts.has(partDaemons) {
		runs = slices.Concat(runs, daemonRuns)
	}
	for _, row := range runs {
		fmt.Fprintf(progress, "measuring: %d machines on one Redis, %d daemons\n", row.Machines, row.Daemons)
		if err := row.measure(ctx, 6*opts.Redis); err != nil {
			row.Failed = err.Error()
		}
		rows = append(rows, row)
	}
	return rows, ctx.Err()
}

func (row *MachinesRow) measure(ctx context.Context, length time.Duration) (err error) {
	server, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	fleet, closeAll, err := row.open(ctx, server.URL())
	defer closeAll()
	if err != nil {
		return err
	}
	spent := func(f func() error) (cpu time.Duration, took time.Duration, err error) {
		before, err := server.CPU()
		if err != nil {
			return 0, 0, err
		}
		began := time.Now()
		if err := f(); err != nil {
			return 0, 0, err
		}
		took = time.Since(began)
		after, err := server.CPU()
		return after - before, took, err
	}
	quiet, err := usageOf(ctx, server)
	if err != nil {
		return err
	}
	cpu, took, err := spent(func() error { return rest(ctx, max(length, 2*store.BeatEvery)) })
	if err != nil {
		return err
	}
	row.Idle = cpu.Seconds() / took.Seconds()
	before, err := usageOf(ctx, server)
	if err != nil {
		return err
	}
	row.IdleOut = float64(before.out-quiet.out) / took.Seconds()
	var done atomic.Int64
	if cpu, took, err = spent(func() error { return row.drive(ctx, fleet, length, &done) }); err != nil {
		return err
	}
	after, err := usageOf(ctx, server)
	if err != nil || done.Load() == 0 {
		return errors.Join(err, errors.New("no ticket was done"))
	}
	n := float64(done.Load())
	row.Tickets, row.CPU, row.Busy, row.Calls = n/took.Seconds(), cpu.Seconds()*1e6/n, cpu.Seconds()/took.Seconds(), float64(after.calls-before.calls)/n
	row.Out = float64(after.out-before.out) / n
	return nil
}

// open opens the machines and their daemons. What it returns is to be closed in case of an error too.
func (row *MachinesRow) open(ctx context.Context, url string) (fleet []machine, closeAll func(), err error) {
	var opened []func()
	closeAll = func() {
		for _, f := range slices.Backward(opened) {
			f()
		}
	}
	add := func(m machine) error {
		fleet, opened = append(fleet, m), append(opened, m.close)
		return m.ticket(ctx) // makes it a member
	}
	for range max(row.Daemons, 1) {
		store := url
		switch {
		case row.Daemons > 0 && !row.Lent:
			all, err := openProxy(ctx, url, row.Machines/row.Daemons)
			if err != nil {
				return nil, closeAll, err
			}
			for _, m := range all {
				if err := add(m); err != nil {
					return nil, closeAll, err
				}
			}
			continue
		case row.Lent:
			address, stop, err := openLender(ctx, url)
			if err != nil {
				return nil, closeAll, err
			}
			store, opened = address, append(opened, func() { _ = stop() })
		}
		for i := range row.Machines / max(row.Daemons, 1) {
			m, err := openMachine(ctx, store, i)
			if err == nil {
				err = add(m)
			}
			if err != nil {
				return nil, closeAll, err
			}
		}
	}
	return fleet, closeAll, nil
}

// drive lets every machine take tickets one after the other, at its part of the rate.
func (row *MachinesRow) drive(ctx context.Context, fleet []machine, length time.Duration, done *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var pause time.Duration
	if row.Rate > 0 {
		pause = time.Second * time.Duration(row.Machines) / time.Duration(row.Rate)
	}
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range fleet {
		wg.Go(func() {
			for next := time.Now().Add(pause * time.Duration(i) / time.Duration(row.Machines)); ; next = next.Add(pause) {
				if pause > 0 && rest(ctx, time.Until(next)) != nil || ctx.Err() != nil {
					return
				}
				if err := fleet[i].ticket(context.WithoutCancel(ctx)); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// machinesBars are those of 100 machines that ask now and then, and of 500 that do not. The first is 0.35 times the 99 us that a
// ticket cost Redis when it decided itself (8a841ba, two cores).
func machinesBars(rows []MachinesRow) (all []Bar) {
	for _, row := range rows {
		switch {
		case row.Failed != "" || row.Daemons > 0 || row.Rate == 0:
		case row.Machines == 100:
			all = append(all, bar("100 machines, 10 tickets/s each: Redis CPU us per ticket", row.CPU, 0, 0.35*99))
		case row.Machines == 500:
			all = append(all, bar("500 idle machines: part of a Redis core", row.Idle, 0, 0.01), bar("500 idle machines: MB/s out of Redis", row.IdleOut/1e6, 0, 5))
		}
	}
	return all
}
