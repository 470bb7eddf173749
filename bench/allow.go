package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// AllowRow is the cost of one contender in one shape, when nothing has to wait.
type AllowRow struct {
	Shape  string  `json:"shape"`
	Name   string  `json:"name"`
	NS     float64 `json:"ns_per_op"`
	Best   float64 `json:"best_ns_per_op"` // of all rounds, with the least noise
	Allocs float64 `json:"allocs_per_op"`
	Failed float64 `json:"failed"` // share of calls that were wrongly refused
	Ratio  float64 `json:"ratio"`  // to x/time/rate in the same shape
}

type sample struct{ ns, allocs, failed float64 }

// turn is a contender that is ready to be measured.
type turn struct {
	name string
	take func(string) bool
	done func()
	ops  int // operations that take about one slice
	seen []sample
}

func measureShape(s shape, opts Options) ([]AllowRow, error) {
	keys := keyNames(s.keys)
	var turns []*turn
	defer func() {
		for _, t := range turns {
			t.done()
		}
	}()
	for _, c := range s.contenders {
		take, done, err := c.build(keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		t := &turn{name: c.name, take: take, done: done}
		turns = append(turns, t)
		t.calibrate(s, keys, opts.Slice)
	}
	for round := range opts.Rounds {
		// Each round starts with another contender, so that none always follows the one that heats the machine most.
		for i := range turns {
			t := turns[(i+round)%len(turns)]
			t.seen = append(t.seen, t.measure(s.threads, keys, t.ops))
		}
	}
	return allowRows(s.name, turns), nil
}

// calibrate finds the number of operations for one slice. It first takes each key once, because the benchmark measures
// use, not creation.
func (t *turn) calibrate(s shape, keys []string, slice time.Duration) {
	for _, key := range keys {
		t.take(key)
	}
	for ops := 1000; ; ops *= 2 {
		got := t.measure(s.threads, keys, ops)
		took := time.Duration(got.ns * float64(ops))
		if took >= slice/10 {
			t.ops = max(1, int(float64(slice)/got.ns))
			return
		}
	}
}

// measure spreads ops over the threads. The time per operation is the wall time divided by all of them, as with
// testing.B.RunParallel.
func (t *turn) measure(threads int, keys []string, ops int) sample {
	var (
		failed atomic.Int64
		ready  sync.WaitGroup
		over   sync.WaitGroup
		start  = make(chan struct{})
		each   = max(1, ops/threads)
	)
	for thread := range threads {
		ready.Add(1)
		over.Go(func() {
			at := thread * len(keys) / threads
			ready.Done()
			<-start
			failed.Add(int64(t.loop(keys, at, each)))
		})
	}
	ready.Wait()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	close(start)
	over.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	n := float64(each * threads)
	return sample{
		ns:     float64(took.Nanoseconds()) / n,
		allocs: float64(after.Mallocs-before.Mallocs) / n,
		failed: float64(failed.Load()) / n,
	}
}

func (t *turn) loop(keys []string, at, ops int) (failed int) {
	for range ops {
		if !t.take(keys[at]) {
			failed++
		}
		if at++; at == len(keys) {
			at = 0
		}
	}
	return failed
}

func allowRows(shape string, turns []*turn) []AllowRow {
	var rows []AllowRow
	for _, t := range turns {
		rows = append(rows, AllowRow{
			Shape:  shape,
			Name:   t.name,
			NS:     medianOf(t.seen, func(s sample) float64 { return s.ns }),
			Best:   slices.MinFunc(t.seen, func(a, b sample) int { return cmp.Compare(a.ns, b.ns) }).ns,
			Allocs: medianOf(t.seen, func(s sample) float64 { return s.allocs }),
			Failed: medianOf(t.seen, func(s sample) float64 { return s.failed }),
		})
	}
	base := find(rows, shape, nameXTime).NS
	for i := range rows {
		if base > 0 {
			rows[i].Ratio = rows[i].NS / base
		}
	}
	return rows
}

func find(rows []AllowRow, shape, name string) AllowRow {
	for _, r := range rows {
		if r.Shape == shape && r.Name == name {
			return r
		}
	}
	return AllowRow{}
}

func medianOf[T any](all []T, value func(T) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	values := make([]float64, 0, len(all))
	for _, one := range all {
		values = append(values, value(one))
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}
