package sim

import (
	"cmp"
	"context"
	"math"
)

// Report is the result of a scenario under each strategy.
type Report struct {
	Scenario   string    `json:"scenario"`
	About      string    `json:"about"`
	Seed       uint64    `json:"seed"`
	Strategies []Figures `json:"strategies"`         // on the network with the light tail
	HeavyTail  []Figures `json:"heavy_tail"`         // on the network with the heavy tail
	LeftOut    []string  `json:"left_out,omitempty"` // strategies that the scenario does not compare
}

// Figures are the results of one run.
type Figures struct {
	Name       string  `json:"name"`
	Sent       int     `json:"sent"`
	Throttled  int     `json:"throttled"`   // refused by the provider
	RetryShare float64 `json:"retry_share"` // repeated sends / all sends
	PeakRate   int     `json:"peak_rate"`   // most sends in any 1 s
	// Utilization is the number of accepted calls, divided by what the provider's rules admit while work was waiting.
	// An oracle with an endless backlog determines the latter.
	Utilization float64 `json:"utilization"`
	// Makespan is the time from the first demand until the last call finished or was given up. It means little if calls
	// were given up; see Finished.
	Makespan float64 `json:"makespan_s"`
	// Ideal is the shortest makespan for the same work; an oracle determines it.
	Ideal     float64        `json:"ideal_s"`
	WastedUSD float64        `json:"wasted_usd"` // list price of repeated sends
	Starved   []string       `json:"starved"`    // classes that waited three windows without an acceptance
	Classes   []ClassFigures `json:"classes"`

	Calls        int `json:"calls"`
	Finished     int `json:"finished"`
	GaveUp       int `json:"gave_up"` // or not over at the horizon
	Jobs         int `json:"jobs"`
	JobsFinished int `json:"jobs_finished"` // with all calls finished before the deadline

	Trace *Trace `json:"-"`
}

// ClassFigures are the results of one class in a run.
type ClassFigures struct {
	Name     string  `json:"name"`
	Makespan float64 `json:"makespan_s"`
	Ideal    float64 `json:"ideal_s"`
}

// Progress is the progress of [Simulate] and [Ablate].
type Progress struct {
	Strategy   string  // strategy of the current run
	Done, Runs int     // finished runs, and all runs
	Part       float64 // fraction of this run's calls that are over, from 0 to 1
}

// follower reports the progress of a simulation, and stops it when ctx ends.
type follower struct {
	ctx context.Context
	to  func(Progress) // may be nil
	at  Progress
}

// tell reports the progress of the current run. It returns false if the simulation must stop.
func (f *follower) tell(part float64) bool {
	f.at.Part = part
	if f.to != nil {
		f.to(f.at)
	}
	return f.ctx.Err() == nil
}

// still reports the same progress as before.
func (f *follower) still() bool { return f.tell(f.at.Part) }

// follow makes a run report how many of its calls are over.
func (f *follower) follow(r *run) {
	calls := float64(max(r.tally.left, 1))
	r.tick = func() bool { return f.tell(1 - float64(r.tally.left)/calls) }
	r.tick()
}

// Simulate runs sc under every strategy, on both networks. It calls progress, if not nil, before each run and from time
// to time during it. If ctx ends, Simulate returns early with its error.
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
	trace := y.trace // a copy, so that the rest of the tally can be freed
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
	f.Utilization = round(admits(r.sc, y.models, seed, tick).utilization(y.accepted))
	for i := range y.classes {
		if y.classes[i].calls > 0 {
			f.Classes = append(f.Classes, ClassFigures{
				Name: r.sc.classes()[i].Name, Makespan: round(y.classes[i].span.seconds()), Ideal: round(best.classes[i].seconds()),
			})
		}
	}
	return f
}

// round rounds to four decimals; more would be noise.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
