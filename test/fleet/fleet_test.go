//go:build linux || darwin

package fleet_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/redisrun"
)

const (
	processes = 20
	callers   = 50 // of each
)

// shares are of each class when all want more than there is.
var shares = []struct {
	class string
	share float64
}{{sluice.P0, 0.40}, {sluice.P1, 0.35}, {sluice.P2, 0.25}}

// fleet is many processes that ask all the time.
type fleet struct {
	t         *testing.T
	redis     *redisrun.Server
	look      *sluice.Gate
	processes []*process

	from, to  stamp // what is measured
	cpu       time.Duration
	late      time.Duration // timers, on average, in that stretch
	idle      float64       // part of that stretch in which the processors had nothing to do
	uses      []use         // of the whole run, by time
	processor time.Duration
}

// run starts the processes, lets every goroutine get something, measures for a stretch of time, and stops them. classOf says
// of which class a process is.
func run(t *testing.T, stretch time.Duration, classOf func(i int) string) *fleet {
	t.Helper()
	f := &fleet{t: t, redis: redisrun.New(t)}
	url := f.redis.URL() + "?timeout=1m" // twenty processes start at once
	for i := range processes {
		f.processes = append(f.processes, start(t, task{URL: url, Name: fmt.Sprint("process", i), Class: classOf(i), Callers: callers}))
	}
	for _, p := range f.processes {
		p.expect(saysReady)
	}
	config := gateConfig(url)
	config.ReadOnly = true
	var err error
	if f.look, err = sluice.Open(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.look.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, p := range f.processes {
		p.begin()
	}
	for _, p := range f.processes {
		p.expect(saysServed) // from here on everything is as it will be
	}
	f.contended()
	f.measure(stretch)
	f.contended()
	f.collect()
	return f
}

// contended sees to it that some of every class that asks at all are waiting.
func (f *fleet) contended() {
	f.t.Helper()
	s, err := f.look.Status(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	asking := map[string]int{}
	for _, p := range f.processes {
		asking[p.task.Class] += callers
	}
	for class, n := range asking {
		if w := s.Resources[0].Waiting[class]; w == 0 {
			f.t.Errorf("nobody of class %s waits, of %d: there is no contention to measure", class, n)
		}
	}
}

// measure lets time pass.
func (f *fleet) measure(stretch time.Duration) {
	f.t.Helper()
	before, err := f.redis.CPU()
	if err != nil {
		f.t.Fatal(err)
	}
	f.from = now()
	idle := idleTime(f.t)
	f.late = lateness(stretch)
	f.idle = (idleTime(f.t) - idle).Seconds() / (stretch.Seconds() * float64(runtime.NumCPU()))
	f.to = now()
	stretches.Add(1)
	if !f.keepsUp() {
		waived.Add(1)
	}
	after, err := f.redis.CPU()
	if err != nil {
		f.t.Fatal(err)
	}
	f.cpu = after - before
}

// lateness lets time pass, and returns how late timers were meanwhile, on average: whether the machine keeps up with what it
// has to run, whatever the store does.
func lateness(stretch time.Duration) time.Duration {
	const every = 10 * time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var late time.Duration
	n := 0
	for begin := time.Now(); time.Since(begin) < stretch; n++ {
		due := time.Now().Add(every)
		timer.Reset(every)
		<-timer.C
		late += time.Since(due)
	}
	return late / time.Duration(max(n, 1))
}

// keepsUp reports whether the machine was fast enough for what depends on it to be judged. What does not is judged always.
// A machine whose processors are never idle may have given the fleet less than it wanted, however punctual its timers are.
func (f *fleet) keepsUp() bool { return f.late <= 3*time.Millisecond && f.idle >= 0.05 }

// stretches counts what was measured, and waived how often the machine did not keep up with it.
var stretches, waived atomic.Int64

// collect stops the processes and gathers what they tell.
func (f *fleet) collect() {
	f.t.Helper()
	for _, p := range f.processes {
		p.stop()
	}
	for i, p := range f.processes {
		o := p.outcome()
		for _, e := range o.Errors {
			f.t.Errorf("%s: %s", p.task.Name, e)
		}
		if o.Lost > 0 {
			f.t.Logf("%s could not reach the store %d times: %s", p.task.Name, o.Lost, o.Why)
		}
		for _, u := range o.Uses {
			u.worker, u.class = i, p.task.Class
			f.uses = append(f.uses, u)
		}
		f.processor += o.CPU
	}
	byTime(f.uses)
}

func (f *fleet) stretch() time.Duration { return f.to.sub(f.from) }

// measured are the uses of the stretch that is measured.
func (f *fleet) measured() []use {
	after := func(at stamp) int {
		i, _ := slices.BinarySearchFunc(f.uses, at, func(u use, at stamp) int {
			if u.At < at {
				return -1
			}
			return 1
		})
		return i
	}
	return f.uses[after(f.from):after(f.to)]
}

// legal checks that the limit was kept all the time, and that no ticket was granted twice.
func (f *fleet) legal() {
	f.t.Helper()
	worst, err := checkBucket(f.uses, rate, burst)
	if err != nil {
		f.t.Errorf("the limit was broken: %v", err)
	}
	if err := checkTickets(f.uses); err != nil {
		f.t.Error(err)
	}
	f.t.Logf("%d grants to %d processes x %d goroutines, %d of them in the %v that are measured; at most %.2f in the bucket of %d, at most %d in a second",
		len(f.uses), processes, callers, len(f.measured()), f.stretch().Round(time.Millisecond), worst, burst, mostWithin(f.uses, time.Second))
	f.t.Logf("timers were late by %v on average, and the processors idle for %.0f%% of the time", f.late.Round(10*time.Microsecond), 100*f.idle)
	if !f.keepsUp() {
		f.t.Logf("the machine does not keep up: how much was used, and by each goroutine, says nothing here")
	}
	f.t.Logf("Redis used %.0f%% of a processor, %.0f µs a grant; the processes %.0f µs a grant, starts included",
		100*f.cpu.Seconds()/f.stretch().Seconds(), f.cpu.Seconds()*1e6/float64(len(f.measured())), f.processor.Seconds()*1e6/float64(len(f.uses)))
}

// used returns how much of what the limit allows was used, in the stretch that is measured.
func (f *fleet) used() float64 {
	return float64(len(f.measured())) / (rate * f.stretch().Seconds())
}

// nobodyStarves checks that the goroutines of a class take turns: each has at least half of the mean.
func (f *fleet) nobodyStarves(class string) {
	f.t.Helper()
	type who struct{ worker, caller int }
	count, last := map[who]int{}, map[who]stamp{}
	for i, p := range f.processes {
		for c := range callers {
			if p.task.Class == class {
				count[who{i, c}], last[who{i, c}] = 0, f.from
			}
		}
	}
	total, gap := 0, time.Duration(0)
	for _, u := range f.measured() {
		if w := (who{u.worker, u.Caller}); u.class == class {
			gap = max(gap, u.At.sub(last[w]))
			last[w] = u.At
			count[w]++
			total++
		}
	}
	least, most := math.MaxInt, 0
	for w, n := range count {
		gap = max(gap, f.to.sub(last[w]))
		least, most = min(least, n), max(most, n)
	}
	mean := float64(total) / float64(len(count))
	f.t.Logf("%s: %d goroutines got %d to %d each, in turns of %.2f s; the longest gap was %.2f s",
		class, len(count), least, most, f.stretch().Seconds()/mean, gap.Seconds())
	if least == 0 && mean >= 4 || f.keepsUp() && (least == 0 || float64(least) < mean/2) {
		f.t.Errorf("a goroutine of class %s got %d, where the mean is %.1f", class, least, mean)
	}
}

// A thousand goroutines in twenty processes want more than there is all the time: each class gets its share.
//
// If every grant were drawn by lot, the part of a class with share s would have a relative standard deviation of
// sqrt((1-s)/(s*n)) after n grants: for 5% to be three of those at a share of 25%, n must be 10,800. The order is not
// drawn by lot, and keeps much closer to the shares than that.
func TestClassesGetTheirShares(t *testing.T) {
	const enough, tolerance = 10_800, 0.05
	f := run(t, 1200*time.Millisecond*enough/rate, func(i int) string { return shares[i%len(shares)].class })
	f.legal()
	count := map[string]int{}
	for _, u := range f.measured() {
		count[u.class]++
	}
	n := len(f.measured())
	for _, s := range shares {
		got := float64(count[s.class]) / float64(n)
		t.Logf("%s: %d grants, %.3f%% of all, its share is %.0f%%: off by %+.2f%% of it; by lot %.2f%% would be usual",
			s.class, count[s.class], 100*got, 100*s.share, 100*(got/s.share-1), 100*math.Sqrt((1-s.share)/(s.share*float64(n))))
		// On a machine that is too slow for so many, less is certain.
		if math.Abs(got/s.share-1) > max(tolerance, 3*math.Sqrt((1-s.share)/(s.share*float64(n)))) {
			t.Errorf("class %s got %.2f%%, and its share is %.0f%%", s.class, 100*got, 100*s.share)
		}
		f.nobodyStarves(s.class)
	}
	t.Logf("%.2f%% of the limit was used", 100*f.used())
	if n < enough && f.keepsUp() {
		t.Errorf("%d grants are too few to tell: %d are needed", n, enough)
	}
}

// What other classes leave is for whoever wants it: the lowest alone gets everything.
func TestALoneClassGetsEverything(t *testing.T) {
	f := run(t, 7*time.Second, func(int) string { return sluice.P2 })
	f.legal()
	f.nobodyStarves(sluice.P2)
	t.Logf("%.2f%% of the limit was used", 100*f.used())
	if f.used() < 0.97 && f.keepsUp() {
		t.Errorf("a lone class got %.2f%% of the limit", 100*f.used())
	}
}
