package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Report compares the log with a run of the same calls through the gate.
type Report struct {
	File     string    `json:"file"`
	Format   string    `json:"format"`
	Resource string    `json:"resource,omitempty"`
	Others   []string  `json:"other_resources,omitempty"` // not replayed
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Lines    int       `json:"lines"`
	Skipped  int       `json:"skipped"`
	Cached   int       `json:"cached"`
	Ignored  []Ignored `json:"ignored"`
	Callers  int       `json:"callers"`

	Limits     []Limit `json:"limits"`
	LimitsFrom string  `json:"limits_from"` // given, or log
	// Explained compares the log's refusals with those of the limits.
	Explained   Explained `json:"explained"`
	Assumptions []string  `json:"assumptions"`

	Log  Figures `json:"log"`
	Gate Figures `json:"gate"`
	// IdealS is how long the same work takes if each call arrives exactly when the limits have room for it.
	IdealS float64 `json:"ideal_s"`

	ByCaller []CallerFigures `json:"by_caller"` // most calls first, the first 1000
}

// Limit is a limit that the log was replayed against.
type Limit struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Unit     string `json:"unit"`
	Size     string `json:"size"` // such as 120/min, or a number of slots
	Burst    int64  `json:"burst,omitempty"`
	PerModel bool   `json:"per_model,omitempty"`
}

// Explained says how well the limits explain the log.
type Explained struct {
	Sends  int     `json:"sends"`
	Log    int     `json:"log"`    // refusals of the log
	Model  int     `json:"model"`  // refusals by the limits
	Both   int     `json:"both"`   // sends that both refuse
	Differ int     `json:"differ"` // sends that only one of the two refuses
	Agree  float64 `json:"agree"`  // fraction of the sends on which both agree
	// Reliable is set if both agree on at least 95% of the sends, and the limits explain the log's refusals.
	Reliable bool `json:"reliable"`
}

// agreeing is the fraction of the sends on which reliable limits agree with the log.
const agreeing = 0.95

func explained(e sim.Explained) Explained {
	out := Explained{Sends: e.Sends, Log: e.Refused, Model: e.Model, Both: (e.Refused + e.Model - e.Differ) / 2, Differ: e.Differ}
	out.Agree = round(1 - float64(e.Differ)/float64(max(e.Sends, 1)))
	out.Reliable = out.Agree >= agreeing && (e.Refused == 0 || explains(e.Differ, e.Refused))
	return out
}

// Figures are the results of either the log or the gate.
type Figures struct {
	Calls      int     `json:"calls"`
	Finished   int     `json:"finished"`
	Sent       int     `json:"sent"`
	Throttled  int     `json:"throttled"`
	Failed     int     `json:"failed"` // responses that were neither successful nor a refusal
	RetryShare float64 `json:"retry_share"`
	PeakRate   int     `json:"peak_rate"` // most sends in any second
	// DurationS is the time from the first wanted call to the end of the last one.
	DurationS float64 `json:"duration_s"`
	USD       float64 `json:"usd"`        // of finished calls
	WastedUSD float64 `json:"wasted_usd"` // price of the refused sends, had they been answered
	Classes   []Waits `json:"classes"`

	Accepted sim.Counts `json:"-"` // over time
	Refused  sim.Counts `json:"-"`
}

// Waits is how long calls of a class waited: from when they were wanted until the request was sent that the provider
// accepted, or until they were given up.
type Waits struct {
	Name     string  `json:"name"`
	Calls    int     `json:"calls"`
	MeanS    float64 `json:"wait_mean_s"`
	P95S     float64 `json:"wait_p95_s"`
	LongestS float64 `json:"wait_longest_s"`
}

// CallerFigures are the log's figures of one caller.
type CallerFigures struct {
	Name      string `json:"name"`
	Class     string `json:"class"`
	Calls     int    `json:"calls"`
	Sent      int    `json:"sent"`
	Throttled int    `json:"throttled"`
	GaveUp    int    `json:"gave_up"`
	AtOnce    int    `json:"at_once"` // most calls in progress at once
}

const maxCallers = 1000

// Run replays the log through the gate.
func (r *Replay) Run() (*Report, error) {
	ran, err := sim.Replay(r.sc, r.net, r.setup.Seed, r.setup.Progress)
	if err != nil {
		return nil, err
	}
	l := r.log
	rep := &Report{
		File: l.File, Format: l.Format, Resource: l.Resource, Others: l.Others, From: r.start.UTC(), Lines: l.Lines, Skipped: l.Skipped, Cached: l.Cached,
		Ignored: append([]Ignored{}, l.Ignored...),
		Callers: len(r.work.callers), LimitsFrom: "given", IdealS: ran.Ideal, Assumptions: r.assumptions(), ByCaller: r.byCaller(),
	}
	if r.fitted {
		rep.LimitsFrom = "log"
	}
	for i := range r.sc.Limits {
		rep.Limits = append(rep.Limits, limitOf(&r.sc.Limits[i]))
	}
	rep.Explained = explained(sim.Explain(r.sc.Limits, r.arrivals()))
	rep.Log = r.logged()
	rep.To = r.start.Add(time.Duration(rep.Log.DurationS * float64(time.Second))).UTC()
	rep.Gate = r.gated(ran)
	return rep, nil
}

func limitOf(l *sim.Limit) Limit {
	out := Limit{Name: l.Name, Unit: l.Unit, Kind: l.Kind.String(), Size: fmt.Sprint(l.Size), PerModel: l.PerModel}
	if l.Kind != store.Concurrency {
		out.Size = sim.Rate{N: l.Size, Window: l.Window}.String()
	}
	if l.Kind == store.Bucket {
		out.Burst = l.Burst
	}
	return out
}

// assumptions returns what the replay assumes, in sentences.
func (r *Replay) assumptions() []string {
	var all []string
	if r.work.matched {
		all = append(all, fmt.Sprintf("A request is a retry if the same caller asked for the same model, was refused at most %v before, and did not just finish another call.", r.setup.RetryWithin))
	} else {
		all = append(all, "The log marks retries, or has none.")
	}
	if r.setup.Follow > 0 {
		all = append(all, fmt.Sprintf("A call that begins within %v of the end of its caller's last one waits for it in the replay too. Others come when the log has them.", r.setup.Follow))
	} else {
		all = append(all, "Every call comes when the log has it.")
	}
	if n := r.net.Median; n > 0 {
		why := "half of the median time of a refusal"
		if r.refusal > maxRoundTrip {
			why = fmt.Sprintf("a replay assumes no more, although the median refusal took %v", r.refusal.Round(time.Millisecond))
		}
		all = append(all, fmt.Sprintf("A message takes %v each way: %s.", n.Round(10*time.Microsecond), why))
	}
	return append(all, "Answers take as long as in the log. The gate is asked without delay.")
}

// logged returns the figures of the log itself.
func (r *Replay) logged() Figures {
	f := Figures{Calls: len(r.work.calls), Sent: len(r.log.Sends)}
	waits := make([][]time.Duration, len(r.setup.Classes))
	var last time.Time
	for i := range r.work.calls {
		c := &r.work.calls[i]
		if c.end.After(last) {
			last = c.end
		}
		f.WastedUSD += float64(c.refusals()) * r.prices[i]
		accepted := c.end
		if c.done {
			f.Finished++
			f.USD += r.prices[i]
			accepted = r.log.Sends[c.sends[len(c.sends)-1]].Start
		}
		class := r.sc.Fleet[c.caller].Class
		waits[class] = append(waits[class], accepted.Sub(c.wanted))
	}
	from := 0
	for i := range r.log.Sends {
		s := &r.log.Sends[i]
		at := s.Start.Sub(r.start)
		if s.Refused {
			f.Throttled++
			f.Refused.Add(at)
		} else {
			f.Accepted.Add(at)
		}
		if s.Failed {
			f.Failed++
		}
		for s.Start.Sub(r.log.Sends[from].Start) >= time.Second {
			from++
		}
		f.PeakRate = max(f.PeakRate, i-from+1)
	}
	f.RetryShare = round(float64(f.Sent-f.Calls) / float64(max(f.Sent, 1)))
	f.DurationS = round(last.Sub(r.start).Seconds())
	f.USD, f.WastedUSD = round(f.USD), round(f.WastedUSD)
	f.Classes = []Waits{}
	for i, all := range waits {
		if len(all) > 0 {
			f.Classes = append(f.Classes, waitsOf(r.setup.Classes[i].Name, all))
		}
	}
	return f
}

func waitsOf(name string, all []time.Duration) Waits {
	slices.Sort(all)
	sum := 0.0
	for _, d := range all {
		sum += d.Seconds()
	}
	at := int(math.Ceil(0.95*float64(len(all)))) - 1
	return Waits{Name: name, Calls: len(all), MeanS: round(sum / float64(len(all))), P95S: round(all[at].Seconds()), LongestS: round(all[len(all)-1].Seconds())}
}

// gated returns the figures of the run behind the gate.
func (r *Replay) gated(ran *sim.Replayed) Figures {
	f := Figures{
		Calls: ran.Calls, Finished: ran.Finished, Sent: ran.Sent, Throttled: ran.Throttled, RetryShare: ran.RetryShare, PeakRate: ran.PeakRate,
		DurationS: ran.Makespan, Classes: []Waits{}, Accepted: ran.Trace.Accepted, Refused: ran.Trace.Refused,
	}
	for i := range r.prices {
		f.USD += r.prices[i]
		if s := &r.log.Sends[r.work.calls[i].sends[len(r.work.calls[i].sends)-1]]; s.Failed {
			f.Failed++ // the gate does not prevent other failures
		}
	}
	mean := f.USD / float64(max(len(r.prices), 1))
	f.USD, f.WastedUSD = round(mean*float64(f.Finished)), round(mean*float64(f.Throttled))
	way := r.net.Median.Seconds() // the simulator's waits end when a request arrives, those of the log when it is sent
	for _, w := range ran.Waits {
		f.Classes = append(f.Classes, Waits{Name: w.Name, Calls: w.Calls, MeanS: max(round(w.Mean-way), 0), P95S: max(round(w.P95-way), 0), LongestS: max(round(w.Longest-way), 0)})
	}
	return f
}

// byCaller returns what the log shows about each caller, most calls first.
func (r *Replay) byCaller() []CallerFigures {
	all := make([]CallerFigures, len(r.work.callers))
	for i := range all {
		all[i] = CallerFigures{Name: r.sc.Fleet[i].Name, Class: r.setup.Classes[r.sc.Fleet[i].Class].Name}
	}
	for i := range r.work.calls {
		c := &r.work.calls[i]
		f := &all[c.caller]
		f.Calls++
		f.Sent += len(c.sends)
		f.Throttled += c.refusals()
		if !c.done {
			f.GaveUp++
		}
	}
	most := r.atOnce()
	for i := range all {
		all[i].AtOnce = most[i]
	}
	slices.SortStableFunc(all, func(a, b CallerFigures) int { return cmp.Compare(b.Calls, a.Calls) })
	return all[:min(len(all), maxCallers)]
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
