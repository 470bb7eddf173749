package replay

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Setup configures a replay.
type Setup struct {
	Assumptions
	// Limits are the provider's limits. If empty, New derives them from the log's refusals.
	Limits []sim.Limit
	// PerModel makes the derived limits count per model.
	PerModel bool
	// Classes are the priority classes, highest first. The default is p0, p1 and p2.
	Classes []store.Class
	Order   store.Order
	Use     int // percentage of the limits that the gate uses; 0: all
	// Class returns the class of a caller. If it returns "", the class in the log applies, or else the last class.
	Class func(caller string) string
	Seed  uint64
	// Progress is called with the fraction of calls that are over.
	Progress func(part float64)
}

// Replay is a log prepared as the work of a scenario.
type Replay struct {
	log     *Log
	setup   Setup
	work    *work
	sc      *sim.Scenario
	refusal time.Duration // median time of a refusal; 0: unknown
	net     sim.Delay
	start   time.Time
	prices  []float64 // of each call, in dollars
	fitted  bool      // the limits are derived from the log
}

// ErrNoLimits is the error of [New] if the log does not show the provider's limits.
type ErrNoLimits struct{ Refused int }

func (e *ErrNoLimits) Error() string {
	switch {
	case e.Refused == 0:
		return "the log has no refusal that shows the provider's limits"
	case e.Refused == 1:
		return "the log has 1 refusal, which is too few to tell the provider's limits"
	case e.Refused >= fewRefusals:
		return fmt.Sprintf("no limit on requests explains the log's %d refusals: tokens may be limited, or others use the same key", e.Refused)
	}
	return fmt.Sprintf("the log has %d refusals, which are too few to tell the provider's limits", e.Refused)
}

// New prepares a log for a replay.
func New(l *Log, s Setup) (*Replay, error) {
	if s.Classes == nil {
		s.Classes = sim.Classes
	}
	r := &Replay{log: l, setup: s, work: pieces(l, s.Assumptions), start: l.Sends[0].Wanted}
	for i := range l.Sends {
		if w := l.Sends[i].Wanted; w.Before(r.start) {
			r.start = w
		}
	}
	r.refusal = r.refusalTime()
	r.net = sim.Delay{Median: min(r.refusal, maxRoundTrip) / 2}
	if len(s.Limits) == 0 {
		limits, refused := r.fit()
		if limits == nil {
			return nil, &ErrNoLimits{refused}
		}
		r.setup.Limits, r.fitted = limits, true
	}
	for i := range r.setup.Limits {
		if l := &r.setup.Limits[i]; l.Kind == store.Fixed { // windows begin at round times, independent of the log's start
			l.Phase = r.start.Truncate(l.Window).Add(l.Window).Sub(r.start)
		}
	}
	r.layOut()
	return r, nil
}

// maxRoundTrip bounds the estimate of the network round trip.
const maxRoundTrip = time.Second

// refusalTime returns the median time of a refusal. It estimates the network round trip, because the provider refuses
// without delay.
func (r *Replay) refusalTime() time.Duration {
	var all []time.Duration
	for i := range r.log.Sends {
		if s := &r.log.Sends[i]; s.Refused && s.End.After(s.Start) {
			all = append(all, s.First.Sub(s.Start))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// layOut turns the calls into a scenario.
func (r *Replay) layOut() {
	r.sc = &sim.Scenario{
		Name: "replay", Limits: r.setup.Limits, Policy: sim.Policy{Headers: true, RetryAfter: true}, Classes: r.setup.Classes,
		Order: r.setup.Order, Use: r.setup.Use,
	}
	classes := r.classes()
	for i, name := range r.work.callers {
		a := sim.Agent{Name: cmp.Or(name, NoCaller), Class: classes[i], Workers: len(r.work.calls)}
		r.sc.Fleet = append(r.sc.Fleet, a)
	}
	usual := r.usual()
	r.prices = make([]float64, len(r.work.calls))
	var last time.Time
	for i := range r.work.calls {
		c := &r.work.calls[i]
		s := &r.log.Sends[c.sends[len(c.sends)-1]]
		rec := sim.Recorded{Agent: c.caller, At: c.wanted.Sub(r.start), Follows: c.follows, Think: c.think, Request: sim.Request{Model: s.Model, Input: s.Input, Output: s.Output}}
		rec.Service, rec.Body = r.took(s)
		u := usual[key{c.caller, s.Model}]
		if u == nil {
			u = usual[key{-1, ""}]
		}
		if !c.done && u != nil { // its real usage is unknown
			rec.Request.Input, rec.Request.Output, rec.Service, rec.Body = u.input/u.n, u.output/u.n, u.service/time.Duration(u.n), u.body/time.Duration(u.n)
			r.prices[i] = u.usd / float64(u.n)
		} else {
			r.prices[i] = price(s)
		}
		r.sc.Recorded = append(r.sc.Recorded, rec)
		if c.end.After(last) {
			last = c.end
		}
	}
	r.sc.Horizon = 20*last.Sub(r.start) + 24*time.Hour
}

// took returns how long the provider took to answer, without the network.
func (r *Replay) took(s *Send) (service, body time.Duration) {
	return max(s.First.Sub(s.Start)-2*r.net.Median, 0), s.End.Sub(s.First)
}

type key struct {
	caller int
	model  string
}

// sums adds up the usage of accepted calls.
type sums struct {
	n             int64
	input, output int64
	service, body time.Duration
	usd           float64
}

// usual returns the mean usage of calls by caller and model. Caller -1 stands for all callers.
func (r *Replay) usual() map[key]*sums {
	all := map[key]*sums{}
	for i := range r.work.calls {
		c := &r.work.calls[i]
		if !c.done {
			continue
		}
		s := &r.log.Sends[c.sends[len(c.sends)-1]]
		service, body := r.took(s)
		for _, k := range []key{{c.caller, s.Model}, {-1, ""}} {
			if all[k] == nil {
				all[k] = &sums{}
			}
			u := all[k]
			u.n++
			u.input, u.output, u.service, u.body, u.usd = u.input+s.Input, u.output+s.Output, u.service+service, u.body+body, u.usd+price(s)
		}
	}
	return all
}

// price returns the cost of a send: the log's, or else the list price.
func price(s *Send) float64 {
	if s.Priced {
		return s.USD
	}
	if s.Input+s.Output == 0 || s.Named == "" {
		return 0
	}
	micros, known := provider.DefaultPrices().Micros(s.Named, &provider.Usage{Input: s.Input, Output: s.Output})
	if !known {
		return 0
	}
	return float64(micros) / 1e6
}

// classes returns the indices of the callers' classes.
func (r *Replay) classes() []int {
	stated := map[string]string{}
	for i := range r.log.Sends {
		if s := &r.log.Sends[i]; s.Class != "" && stated[s.Caller] == "" {
			stated[s.Caller] = s.Class
		}
	}
	all := make([]int, len(r.work.callers))
	for i, caller := range r.work.callers {
		name := ""
		if r.setup.Class != nil {
			name = r.setup.Class(caller)
		}
		if name == "" {
			name = stated[caller]
		}
		if all[i] = slices.IndexFunc(r.setup.Classes, func(c store.Class) bool { return c.Name == name }); all[i] < 0 {
			all[i] = len(r.setup.Classes) - 1
		}
	}
	return all
}

// arrivals returns the sends as they arrived at the provider.
func (r *Replay) arrivals() []sim.Arrival {
	var all []sim.Arrival
	usual := map[string]*sums{} // by model: expected usage of a refused send
	for i := range r.log.Sends {
		if s := &r.log.Sends[i]; !s.Refused {
			if usual[s.Model] == nil {
				usual[s.Model] = &sums{}
			}
			u := usual[s.Model]
			u.n, u.input, u.output = u.n+1, u.input+s.Input, u.output+s.Output
		}
	}
	for i := range r.log.Sends {
		s := &r.log.Sends[i]
		a := sim.Arrival{At: s.Start.Sub(r.start) + r.net.Median, Request: sim.Request{Model: s.Model, Input: s.Input, Output: s.Output}, Accepted: !s.Refused}
		if u := usual[s.Model]; s.Refused && u != nil && s.Input == 0 {
			a.Request.Input, a.Request.Output = u.input/u.n, u.output/u.n
		}
		a.Service, a.Body = r.took(s)
		all = append(all, a)
	}
	return all
}
