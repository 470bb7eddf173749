package sim

import (
	"cmp"
	"context"
	"math"
)

// Report is what became of a scenario under each strategy.
type Report struct {
	Scenario   string    `json:"scenario"`
	About      string    `json:"about"`
	Seed       uint64    `json:"seed"`
	Strategies []Figures `json:"strategies"`         // on a network with a light tail
	HeavyTail  []Figures `json:"heavy_tail"`         // on one with a heavy tail
	LeftOut    []string  `json:"left_out,omitempty"` // strategies that the scenario does not compare
}

// Figures measure one run.
type Figures struct {
	Name       string  `json:"name"`
	Sent       int     `json:"sent"`
	Throttled  int     `json:"throttled"`   // refused by the provider
	RetryShare float64 `json:"retry_share"` // repeated sends / all sends
	PeakRate   int     `json:"peak_rate"`   // most sends in any 1 s
	// Utilization is accepted / what the provider's rule admits while work was
	// waiting, which a clairvoyant with an endless backlog finds out.
	Utilization float64 `json:"utilization"`
	// Makespan is from the first demand to the last call finished or given up. It
	// says little where calls were given up: see Finished.
	Makespan float64 `json:"makespan_s"`
	// Ideal is the makespan of a clairvoyant with the same work.
	Ideal     float64        `json:"ideal_s"`
	WastedUSD float64        `json:"wasted_usd"` // list price of repeated sends
	Starved   []string       `json:"starved"`    // classes that waited three windows in vain
	Classes   []ClassFigures `json:"classes"`

	Calls        int `json:"calls"`
	Finished     int `json:"finished"`
	GaveUp       int `json:"gave_up"` // or not over at the horizon
	Jobs         int `json:"jobs"`
	JobsFinished int `json:"jobs_finished"` // all their calls, in time

	Trace *Trace `json:"-"`
}

// ClassFigures measure one class within a run.
type ClassFigures struct {
	Name     string  `json:"name"`
	Makespan float64 `json:"makespan_s"`
	Ideal    float64 `json:"ideal_s"`
}

// Progress is how far [Simulate] has got.
type Progress struct {
	Strategy   string  // of the run under way
	Done, Runs int     // runs that are over, and all of them
	Part       float64 // of the calls of this run that are over, from 0 to 1
}

// follower tells how far a simulation has got, and hears whether it is to go on.
type follower struct {
	ctx context.Context
	to  func(Progress) // may be nil
	at  Progress
}

// tell says how far the run under way is. It is false if the simulation is to end.
func (f *follower) tell(part float64) bool {
	f.at.Part = part
	if f.to != nil {
		f.to(f.at)
	}
	return f.ctx.Err() == nil
}

// still tells the same as before.
func (f *follower) still() bool { return f.tell(f.at.Part) }

// follow lets a run tell how many of its calls are over.
func (f *follower) follow(r *run) {
	calls := float64(max(r.tally.left, 1))
	r.tick = func() bool { return f.tell(1 - float64(r.tally.left)/calls) }
	r.tick()
}

// Simulate runs sc under every strategy, on both networks. It calls progress,
// if there is one, before each run and now and then during it. It ends early, with
// the error of ctx, when that is done.
func Simulate(ctx context.Context, sc *Scenario, seed uint64, progress func(Progress)) (*Report, error) {
	rep := &Report{Scenario: sc.Name, About: sc.About, Seed: seed}
	run, out := sc.compared()
	rep.LeftOut = out
	f := &follower{ctx: ctx, to: progress, at: Progress{Runs: 2 * len(run)}}
	for _, net := range []struct {
		delay Delay
		into  *[]Figures
	}{{LightTail, &rep.Strategies}, {HeavyTail, &rep.HeavyTail}} {
		f.at.Strategy, f.at.Part = "ideal", 0
		best := newIdeal(sc, net.delay, seed, f.still)
		for _, s := range run {
			f.at.Strategy = s.name
			r := newRun(sc, s.make, net.delay, seed)
			f.follow(r)
			if err := r.finishAll(); err != nil {
				return nil, cmp.Or(ctx.Err(), err)
			}
			*net.into = append(*net.into, figures(s.name, r, best, seed, f.still))
			f.at.Done++
		}
	}
	return rep, ctx.Err()
}

func figures(name string, r *run, best *ideal, seed uint64, tick func() bool) Figures {
	y := r.tally
	trace := y.trace // a copy: the rest of the tally may go
	f := Figures{
		Name: name, Sent: y.sends.n, Throttled: y.throttled, PeakRate: y.sends.peak,
		Makespan: round(y.span.seconds()), Ideal: round(best.span.seconds()),
		WastedUSD: round(float64(y.repeats) * r.sc.Price), Starved: y.starved(),
		Calls: r.sc.calls(), Finished: y.done, GaveUp: r.sc.calls() - y.done,
		Jobs: r.sc.jobs(), JobsFinished: y.jobsDone, Classes: []ClassFigures{},
		Trace: &trace,
	}
	if f.Sent > 0 {
		f.RetryShare = round(float64(y.repeats) / float64(f.Sent))
	}
	f.Utilization = round(admits(r.sc, y.lanes, seed, tick).utilization(y.accepted))
	for i := range y.classes {
		if y.classes[i].calls > 0 {
			f.Classes = append(f.Classes, ClassFigures{
				Name: r.sc.classes()[i].Name, Makespan: round(y.classes[i].span.seconds()), Ideal: round(best.classes[i].seconds()),
			})
		}
	}
	return f
}

// round keeps four decimals: more would be noise.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
