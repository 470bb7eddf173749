package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// aHundredth returns the scale scenario with a hundredth of its agents and quota.
func aHundredth(t *testing.T) *Scenario {
	t.Helper()
	sc := loadScale(t)
	for i := range sc.Limits {
		sc.Limits[i].Size /= 100
		sc.Limits[i].Burst /= 100
	}
	all := sc.Fleet
	sc.Fleet = nil
	for i := range all {
		if i%100 == 0 {
			sc.Fleet = append(sc.Fleet, all[i])
		}
	}
	return sc
}

func loadScale(t *testing.T) *Scenario {
	t.Helper()
	sc, err := Load("scale")
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// holdsAtScale runs a large fleet behind the gate. The provider refuses nothing, almost no quota is lost, higher
// classes do not wait, and the agents of the waiting class are served evenly.
func holdsAtScale(t *testing.T, sc *Scenario, net Delay, seed uint64) {
	t.Helper()
	r := newRun(sc, newSluice, net, seed)
	least, most := sc.calls(), 0
	r.at(Epoch.Add(90*time.Second), func() {
		for _, a := range r.strategy.(*sluice).agents {
			if a.Class == 2 {
				done := a.Jobs*a.Calls - a.left
				least, most = min(least, done), max(most, done)
			}
		}
	})
	if err := r.finishAll(); err != nil {
		t.Fatal(err)
	}
	f := figures("sluice", r, newIdeal(sc, net, seed, nil), seed, nil)
	f.Trace = nil
	wait, p95 := waits(r.tally.classes[0].waits)
	t.Logf("sigma %.1f: %d events, %+v; p0 waits %.2f s, 95%% within %.2f s; after 90 s each p2 has %d to %d calls done", net.Sigma, r.steps, f, wait, p95, least, most)
	if f.Throttled != 0 || f.Finished != f.Calls || len(f.Starved) > 0 {
		t.Errorf("sigma %.1f: %d refused, finished %d of %d, starved %v", net.Sigma, f.Throttled, f.Finished, f.Calls, f.Starved)
	}
	used, longer := 0.98, 1.03
	if net == HeavyTail { // the slowest of a million messages takes seconds, and the end waits for it
		used, longer = 0.95, 1.05
	}
	if f.Utilization < used {
		t.Errorf("sigma %.1f: %.4f of the quota used", net.Sigma, f.Utilization)
	}
	if f.Makespan > longer*f.Ideal {
		t.Errorf("sigma %.1f: took %.1f s, ideal %.1f", net.Sigma, f.Makespan, f.Ideal)
	}
	if least == 0 || most > least+2 {
		t.Errorf("sigma %.1f: after 90 s some p2 have %d calls done, others %d", net.Sigma, least, most)
	}
}

func TestScaleAHundredth(t *testing.T) {
	sc := aHundredth(t)
	for _, net := range []Delay{LightTail, HeavyTail} {
		holdsAtScale(t, sc, net, 1)
	}
}

// The scenario has the size that its description states.
func TestScaleIsAsLargeAsItSays(t *testing.T) {
	sc := loadScale(t)
	machines := map[string]bool{}
	for i := range sc.Fleet {
		machines[sc.Fleet[i].Machine] = true
	}
	if len(sc.Fleet) != 100_000 || len(machines) != 1000 || sc.calls() < 1_000_000 {
		t.Errorf("%d agents on %d machines make %d calls", len(sc.Fleet), len(machines), sc.calls())
	}
	if l := sc.Limits[0]; l.Size*int64(time.Second)/int64(l.Window) != 10_000 {
		t.Errorf("%d a %v", l.Size, l.Window)
	}
	run, out := sc.compared()
	if len(run) < 3 || len(run)+len(out) != len(strategies) {
		t.Errorf("%d strategies run, %v are left out", len(run), out)
	}
}

// Waiting calls cost no memory and no time, because an agent's calls are created when a worker takes them. A queue that
// went through all agents for each call would take minutes here.
func TestManyAgentsManyCalls(t *testing.T) {
	sc, err := Parse("many.yaml", strings.NewReader(`
name: many
provider: {limits: [{name: second, size: 20000/s, burst: 20000}], service: {median: 10ms}}
compare: [sdk default]
agents: [{name: a, count: 20000, calls: 10}]
`))
	if err != nil {
		t.Fatal(err)
	}
	o := newIdeal(sc, LightTail, 1, nil)
	if got, want := o.span.seconds(), 9.0; got < want || got > want+2 {
		t.Errorf("ideal %.1f s, want %.1f and a little", got, want)
	}
}

// The loop runs events in the order of time, and at the same time in the order in which they were scheduled. It does
// not matter where it keeps them: jobs, wheel, heap or present.
func TestLoopKeepsItsOrder(t *testing.T) {
	r := stream(1, drawNetwork)
	l := newLoop()
	type due struct {
		at  store.Time
		seq int
	}
	var last due
	n, done, cancelled := 0, 0, 0
	var events []*event
	var add func()
	happen := func(d due) {
		if l.now != d.at {
			t.Fatalf("what is due at %d happens at %d", d.at-Epoch, l.now-Epoch)
		}
		if d.at < last.at || d.at == last.at && d.seq < last.seq {
			t.Fatalf("%+v happens after %+v", d, last)
		}
		last = d
		done++
		add()
	}
	add = func() {
		for range r.IntN(3) {
			if n > 200_000 {
				return
			}
			n++
			// Now, within the millisecond, within seconds, or beyond what the wheel holds.
			at := l.now + []store.Time{0, store.Time(r.IntN(900)), store.Time(r.IntN(3_000_000)), store.Time(r.IntN(30_000_000))}[r.IntN(4)]
			d := due{at, n}
			if r.IntN(3) == 0 {
				events = append(events, l.at(at, func() { happen(d) }))
			} else {
				l.with(nil, at, func(*call) { happen(d) })
			}
			if r.IntN(20) == 0 && len(events) > 0 {
				e := events[r.IntN(len(events))]
				if e.index != gone {
					cancelled++
				}
				l.cancel(e)
			}
		}
	}
	for n < 200_000 {
		for range 50 {
			add()
		}
		if !l.run(Epoch.Add(365*24*time.Hour), 10_000_000) {
			t.Fatal("it does not end")
		}
	}
	if done+cancelled != n || cancelled == 0 {
		t.Errorf("%d scheduled, %d happened, %d cancelled", n, done, cancelled)
	}
}

// plainQueue is weighted fair order in its simplest form: slow, but easy to check.
type plainQueue struct {
	classes []store.Class
	served  map[int]float64
	turns   map[*agent]int
	waiting map[*agent][]*call
	agents  []*agent // in the order in which they first came
}

func (q *plainQueue) add(c *call) {
	a := c.agent
	if _, known := q.waiting[a]; !known {
		q.agents = append(q.agents, a)
	}
	if len(q.waiting[a]) == 0 {
		class, turn := -1.0, -1
		for _, b := range q.agents {
			if len(q.waiting[b]) == 0 {
				continue
			}
			if s := q.served[b.Class]; class < 0 || s < class {
				class = s
			}
			if b.Class == a.Class && (turn < 0 || q.turns[b] < turn) {
				turn = q.turns[b]
			}
		}
		if turn < 0 {
			q.served[a.Class] = max(q.served[a.Class], class)
		}
		q.turns[a] = max(q.turns[a], turn)
	}
	q.waiting[a] = append(q.waiting[a], c)
}

func (q *plainQueue) each(let func(*call) bool) {
	refused := map[string]bool{}
	for {
		var best *agent
		for _, a := range q.agents {
			if len(q.waiting[a]) == 0 || refused[q.waiting[a][0].asks.Model] {
				continue
			}
			if best == nil || q.before(a, best) {
				best = a
			}
		}
		if best == nil {
			return
		}
		c := q.waiting[best][0]
		if !let(c) {
			refused[c.asks.Model] = true
			continue
		}
		q.waiting[best] = q.waiting[best][1:]
		q.turns[best]++
		q.served[best.Class] += 1 / float64(q.classes[best.Class].Weight)
	}
}

func (q *plainQueue) before(a, b *agent) bool {
	if a.Class != b.Class {
		if sa, sb := q.served[a.Class], q.served[b.Class]; sa != sb {
			return sa < sb
		}
		return a.Class < b.Class
	}
	return q.turns[a] < q.turns[b]
}

func TestFairQueueIsThePlainOne(t *testing.T) {
	for seed := range uint64(200) {
		r := stream(seed, drawNetwork)
		plain := &plainQueue{classes: Classes, served: map[int]float64{}, turns: map[*agent]int{}, waiting: map[*agent][]*call{}}
		quick := &fairQueue{classes: Classes}
		var agents []*agent
		for i := range 8 {
			agents = append(agents, &agent{Agent: &Agent{Class: r.IntN(3)}, index: i})
		}
		for n := range 100 {
			c := &call{agent: agents[r.IntN(len(agents))], number: n, asks: &Request{Model: fmt.Sprint(r.IntN(3))}}
			plain.add(c)
			quick.add(c)
			if r.IntN(4) > 0 {
				continue
			}
			room := map[string]int{"0": r.IntN(5), "1": r.IntN(5), "2": r.IntN(5)}
			offer := func(each func(func(*call) bool)) (order []int) {
				left := map[string]int{}
				for m, k := range room {
					left[m] = k
				}
				each(func(c *call) bool {
					order = append(order, c.number)
					left[c.asks.Model]--
					return left[c.asks.Model] >= 0
				})
				return order
			}
			if a, b := fmt.Sprint(offer(plain.each)), fmt.Sprint(offer(quick.each)); a != b {
				t.Fatalf("seed %d: %s, in its simplest form %s", seed, b, a)
			}
		}
	}
}
