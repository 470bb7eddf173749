package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// MachinesRow is the cost of a number of machines for one Redis. Each machine has its own connection and share, and
// sends whole tickets one by one, so that nothing is batched.
type MachinesRow struct {
	Machines int     `json:"machines"`
	Rate     int     `json:"rate"`          // total target of tickets per second; 0: as many as possible
	Tickets  float64 `json:"tickets_per_s"` // completed
	CPU      float64 `json:"redis_cpu_us_per_ticket"`
	Busy     float64 `json:"redis_cpu"`      // part of a processor that Redis used during the load
	Idle     float64 `json:"redis_cpu_idle"` // the same without requests
	Calls    float64 `json:"redis_calls_per_ticket"`
	Failed   string  `json:"failed,omitempty"`
}

// machine acquires and closes tickets, one at a time.
type machine struct {
	ticket func(context.Context) error
	close  func()
}

// openMachine opens a machine. It is set in sluiceused.go, because only Sluice is measured here, no peer.
var openMachine func(ctx context.Context, url string, number int) (machine, error)

// machineRuns lists the numbers of machines with their rates. With a rate, machines send now and then, as in a fleet.
var machineRuns = []struct{ machines, rate int }{{1, 0}, {10, 0}, {100, 0}, {100, 1000}, {500, 2000}}

func measureMachines(ctx context.Context, opts Options, progress io.Writer) (rows []MachinesRow, err error) {
	if openMachine == nil {
		return nil, nil
	}
	for _, r := range machineRuns {
		fmt.Fprintf(progress, "measuring: %d machines on one Redis\n", r.machines)
		row := MachinesRow{Machines: r.machines, Rate: r.rate}
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
	fleet := make([]machine, row.Machines)
	for i := range fleet {
		if fleet[i], err = openMachine(ctx, server.URL(), i); err != nil {
			return err
		}
		defer fleet[i].close()
		if err := fleet[i].ticket(ctx); err != nil { // makes it a member
			return err
		}
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
	cpu, took, err := spent(func() error { return rest(ctx, length) })
	if err != nil {
		return err
	}
	row.Idle = cpu.Seconds() / took.Seconds()
	before, err := usageOf(ctx, server)
	if err != nil {
		return err
	}
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
	return nil
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
