package sim

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Ablation shows what each mechanism of the gate contributes. It compares the full gate with the gate without one
// mechanism at a time, on the network with the light tail.
type Ablation struct {
	Scenario string `json:"scenario"`
	About    string `json:"about"`
	Seed     uint64 `json:"seed"`
	// Class is the highest class in the fleet, whose waiting time is measured.
	Class   string    `json:"class"`
	Full    Variant   `json:"full"`
	Without []Variant `json:"without"`
}

// Variant is the result of the gate without one mechanism.
type Variant struct {
	Name        string  `json:"name"` // the mechanism that is left out; "nothing" for the full gate
	Does        string  `json:"does"` // what the mechanism does
	Calls       int     `json:"calls"`
	Finished    int     `json:"finished"`
	Throttled   int     `json:"throttled"`
	Utilization float64 `json:"utilization"`
	Makespan    float64 `json:"makespan_s"`
	// WaitMean and WaitP95 are waiting times of the highest class: from when a worker wants to send a call until the
	// provider accepts it or the call is given up. Calls that still wait at the horizon do not count.
	WaitMean float64 `json:"wait_mean_s"`
	WaitP95  float64 `json:"wait_p95_s"`
	// Jain is Jain's fairness index over the agents of a class, while all of them had work; 1 means even. It is nil if
	// no class had two such agents for long enough.
	Jain *float64 `json:"jain"`
	// Same reports whether every figure equals the full gate's.
	Same bool `json:"same"`
}

// off says what the sluice strategy leaves out, besides the changes to its spec.
type off struct {
	pause   bool // a 429 stops only the caller that gets it
	headers bool // the limits that responses state are ignored
	usage   bool // real usage is neither charged nor learned
}

// mechanism is a part of the gate that can be left out.
type mechanism struct {
	name, does string
	spec       func(*store.Spec)
	off        off
}

var mechanisms = []mechanism{
	{name: "arrival guard", does: "counts a request until it cannot arrive any more", spec: func(sp *store.Spec) {
		for i := range sp.Limits {
			sp.Limits[i].Guard = store.GuardOff
		}
	}},
	{name: "fair order", does: "serves classes by weight and agents in turn; without it first come, first served", spec: func(sp *store.Spec) { sp.Order = store.FIFO }},
	{name: "shares", does: "keeps unused shares of a fixed window for their classes", spec: func(sp *store.Spec) { sp.Shares = false }},
	{name: "light", does: "leaves the rest of a fixed window to the highest class", spec: func(sp *store.Spec) { sp.Light = store.Light{} }},
	{name: "pacing", does: "spreads lower classes over a rolling window", spec: func(sp *store.Spec) { sp.Pace = false }},
	{name: "leases", does: "counts agents as alive between their requests", spec: func(sp *store.Spec) { sp.Lease = -1 }},
	{name: "shared pause", does: "stops everyone after a 429, then ramps up; without it each caller backs off alone", off: off{pause: true}},
	{name: "headers", does: "reads the limits that responses state", off: off{headers: true}},
	{name: "usage", does: "charges what a call really used and learns from it", off: off{usage: true}},
}

// Ablate runs sc with the full gate, and with the gate without each mechanism. It calls progress, if not nil, before
// each run and from time to time during it. If ctx ends, Ablate returns early with its error.
func Ablate(ctx context.Context, sc *Scenario, seed uint64, progress func(Progress)) (*Ablation, error) {
	a := &Ablation{Scenario: sc.Name, About: sc.About, Seed: seed, Without: []Variant{}}
	top := len(sc.classes()) - 1
	for i := range sc.Fleet {
		top = min(top, sc.Fleet[i].Class)
	}
	a.Class = sc.classes()[top].Name
	f := &follower{ctx: ctx, to: progress, at: Progress{Runs: 1 + len(mechanisms)}}
	for _, m := range slices.Concat([]mechanism{{name: "nothing", does: "the gate with its defaults"}}, mechanisms) {
		f.at.Strategy = "without " + m.name
		v, err := m.leaveOut(sc, seed, top, f)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return nil, err
		}
		if f.at.Done++; f.at.Done == 1 {
			a.Full = *v
			continue
		}
		v.Same = v.same(&a.Full)
		a.Without = append(a.Without, *v)
	}
	return a, nil
}

// leaveOut runs the gate without m.
func (m *mechanism) leaveOut(sc *Scenario, seed uint64, top int, f *follower) (*Variant, error) {
	r := newRun(sc, func(d *desk) strategy {
		sp := spec(d.sc)
		if m.spec != nil {
			m.spec(&sp)
		}
		s := openSluice(d, sp)
		s.off = m.off
		return s
	}, LightTail, seed)
	y := r.tally
	y.fairness = newFairness(sc)
	f.follow(r)
	if err := r.finishAll(); err != nil {
		return nil, err
	}
	v := &Variant{
		Name: m.name, Does: m.does, Calls: sc.calls(), Finished: y.done, Throttled: y.throttled,
		Utilization: round(admits(sc, y.models, seed, f.still).utilization(y.accepted)), Makespan: round(y.span.seconds()), Jain: y.fairness.index(),
	}
	v.WaitMean, v.WaitP95 = waits(y.classes[top].waits)
	return v, nil
}

func (v *Variant) same(full *Variant) bool {
	x, y := *v, *full
	even := (x.Jain == nil) == (y.Jain == nil) && (x.Jain == nil || *x.Jain == *y.Jain)
	x.Name, x.Does, x.Jain = y.Name, y.Does, y.Jain
	return even && x == y
}

// waits returns the mean and the 95th percentile in seconds. It sorts all.
func waits(all []store.Time) (mean, p95 float64) {
	if len(all) == 0 {
		return 0, 0
	}
	slices.SortFunc(all, cmp.Compare[store.Time])
	for _, w := range all {
		mean += w.Sub(0).Seconds()
	}
	at := int(math.Ceil(0.95*float64(len(all)))) - 1
	return round(mean / float64(len(all))), round(all[at].Sub(0).Seconds())
}
