package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

const (
	waitingCallers = 1000
	waitingRate    = 5000 // per second
	waitingBurst   = 50
)

// WaitedRow is how one contender serves many callers that all have to wait.
type WaitedRow struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // part of what the rate admits that was released in time
	// Peak is the highest ratio at any time of the released callers to what the rate had admitted by then. Above 1 the
	// limiter released too many.
	Peak float64 `json:"peak"`
	CPU  float64 `json:"cpu_us_per_release"`
	// Overtaken is the share of callers that woke after a caller that had asked later. Go wakes timers in steps, so the
	// scheduler causes some of it.
	Overtaken float64 `json:"overtaken"`
	// Inversions counts grants that a later request got first, by the limiter's own record; -1: it keeps none.
	Inversions int     `json:"grant_inversions"`
	Ratio      float64 `json:"cpu_ratio"` // compared with x/time/rate
}

// grant is the limiter's own record of a release: its place in the order of requests, and when it was granted. It is
// zero if the limiter keeps no record.
type grant struct{ place, at int64 }

// waiter is a limiter that can make callers wait. head is the number that it may release at the start, before the rate
// counts.
type waiter struct {
	name  string
	head  int
	build func() (wait func(context.Context) (grant, error), done func(), err error)
}

var waiters = []waiter{
	{nameXTime, waitingBurst, func() (func(context.Context) (grant, error), func(), error) {
		l := rate.NewLimiter(waitingRate, waitingBurst)
		return func(ctx context.Context) (grant, error) { return grant{}, l.Wait(ctx) }, nothing, nil
	}},
	{"uber/ratelimit", 1, func() (func(context.Context) (grant, error), func(), error) {
		l := uber.New(waitingRate)
		return func(ctx context.Context) (grant, error) { l.Take(); return grant{}, ctx.Err() }, nothing, nil
	}},
	{"failsafe-go smooth", 1, func() (func(context.Context) (grant, error), func(), error) {
		l := ratelimiter.NewSmooth[any](waitingRate, time.Second)
		return func(ctx context.Context) (grant, error) { return grant{}, l.AcquirePermit(ctx) }, nothing, nil
	}},
}

// release records when a caller was let through, and the order in which it asked.
type release struct {
	at    time.Duration
	asked int64
	grant grant
}

func measureWaiting(opts Options) ([]WaitedRow, error) {
	seen := make([][]WaitedRow, len(waiters))
	for round := range opts.Rounds {
		for i := range waiters {
			i = (i + round) % len(waiters)
			row, err := waitOnce(waiters[i], opts.Wait)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", waiters[i].name, err)
			}
			seen[i] = append(seen[i], row)
		}
	}
	var rows []WaitedRow
	base := 0.0
	for i, w := range waiters {
		row := WaitedRow{
			Name:      w.name,
			Share:     medianOf(seen[i], func(r WaitedRow) float64 { return r.Share }),
			CPU:       medianOf(seen[i], func(r WaitedRow) float64 { return r.CPU }),
			Overtaken: medianOf(seen[i], func(r WaitedRow) float64 { return r.Overtaken }),
		}
		for _, one := range seen[i] { // one bad round breaks these promises
			row.Peak = max(row.Peak, one.Peak)
			row.Inversions += one.Inversions
		}
		row.Inversions = max(-1, row.Inversions)
		if w.name == nameXTime {
			base = row.CPU
		}
		rows = append(rows, row)
	}
	for i := range rows {
		if base > 0 {
			rows[i].Ratio = rows[i].CPU / base
		}
	}
	return rows, nil
}

func waitOnce(w waiter, length time.Duration) (WaitedRow, error) {
	runtime.GC()
	cpuBefore := cpuTime()
	began := time.Now() // before the limiter exists, so that no release seems too early
	wait, done, err := w.build()
	if err != nil {
		return WaitedRow{}, err
	}
	defer done()
	// Without a deadline, because a limiter that knows it would refuse the last waiters.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var (
		asked   atomic.Int64
		callers sync.WaitGroup
		perEach = make([][]release, waitingCallers)
	)
	for i := range perEach {
		perEach[i] = make([]release, 0, 2*int(length.Seconds()+1)*waitingRate/waitingCallers)
		callers.Go(func() {
			for {
				place := asked.Add(1)
				g, err := wait(ctx)
				if err != nil {
					return
				}
				perEach[i] = append(perEach[i], release{time.Since(began), place, g})
			}
		})
	}
	time.Sleep(length - time.Since(began))
	end, cpu := time.Since(began), cpuTime()-cpuBefore
	cancel()
	callers.Wait()
	return judge(w, slices.Concat(perEach...), end, cpu), nil
}

// judge compares the releases with the rate. A release is recorded after the caller woke, so never earlier than the
// grant.
func judge(w waiter, all []release, end, cpu time.Duration) WaitedRow {
	all = slices.DeleteFunc(all, func(r release) bool { return r.at > end })
	slices.SortFunc(all, func(a, b release) int { return int(a.at - b.at) })
	row := WaitedRow{Name: w.name, Inversions: -1}
	var latest int64
	overtaken := 0
	for i, r := range all {
		admitted := float64(w.head) + waitingRate*r.at.Seconds()
		row.Peak = max(row.Peak, float64(i+1)/admitted)
		if r.asked < latest {
			overtaken++
		}
		latest = max(latest, r.asked)
	}
	if len(all) == 0 {
		return row
	}
	row.Share = float64(len(all)-w.head) / (waitingRate * end.Seconds())
	row.CPU = float64(cpu.Microseconds()) / float64(len(all))
	row.Overtaken = float64(overtaken) / float64(len(all))
	if all[0].grant != (grant{}) {
		row.Inversions = inversions(all)
	}
	return row
}

// inversions counts grants that are later than the grant of a request behind them.
func inversions(all []release) int {
	byPlace := slices.SortedFunc(slices.Values(all), func(a, b release) int { return int(a.grant.place - b.grant.place) })
	count, latest := 0, int64(0)
	for _, r := range byPlace {
		if r.grant.at < latest {
			count++
		}
		latest = max(latest, r.grant.at)
	}
	return count
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
