package sluice

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// Diagnosis is what an audit of a gate found.
type Diagnosis struct {
	Resources []ResourceDiagnosis `json:"resources"`
}

// ResourceDiagnosis sets all callers of a resource against its quota.
type ResourceDiagnosis struct {
	Name string `json:"name"`
	// QuotaPerMin is the tightest limit on requests, by the minute; 0 if none is known.
	QuotaPerMin float64 `json:"quota_per_min"`
	MeanPerMin  float64 `json:"mean_per_min"`
	PeakPerMin  float64 `json:"peak_per_min"` // if the busiest minutes of all callers coincide
	Ratio       float64 `json:"ratio"`        // of the peak to the quota
	// Verdict is contention from a ratio of 0.8 on, else ok.
	Verdict string `json:"verdict"`
	// OneMoreRatio is the ratio with one more caller like the average of these.
	OneMoreRatio float64        `json:"one_more_ratio"`
	Callers      []CallerReport `json:"callers"`
	Advice       []Advice       `json:"advice"`
}

// Advice is a setting that is worth a look, and why.
type Advice struct {
	Setting string `json:"setting"` // such as resources.github.use
	Text    string `json:"text"`
}

// Diagnose audits every resource: what its callers have sent since a moment, on average and at
// their busiest, the sum against the quota, and what is worth changing.
func (g *Gate) Diagnose(ctx context.Context, since time.Time) (Diagnosis, error) {
	d := Diagnosis{Resources: []ResourceDiagnosis{}}
	v, err := g.look(ctx, false)
	if err != nil {
		return d, err
	}
	cycles := v.graph.Cycles()
	for i, name := range g.names() {
		r := g.resources[name]
		h, err := r.history(ctx, since)
		if err != nil {
			return d, err
		}
		d.Resources = append(d.Resources, r.diagnose(&v.snaps[i], r.report(&h), cycles))
	}
	return d, nil
}

func (r *resource) diagnose(snap *store.Snapshot, rep ResourceReport, cycles [][]string) ResourceDiagnosis {
	var callers []policy.Caller
	for i := range rep.Callers {
		c := &rep.Callers[i]
		callers = append(callers, policy.Caller{Name: c.Name, MeanPerMin: c.MeanPerS * 60, PeakPerMin: float64(c.PeakPerMin)})
	}
	audit := policy.Weigh(r.quotaPerMin(snap), callers)
	facts := r.facts(snap)
	facts.Audit, facts.Callers, facts.Cycles = audit, len(callers), cycles
	d := ResourceDiagnosis{
		Name: r.name, QuotaPerMin: audit.QuotaPerMin, MeanPerMin: audit.MeanPerMin, PeakPerMin: audit.PeakPerMin,
		Ratio: audit.Ratio, Verdict: audit.Verdict, OneMoreRatio: audit.OneMoreRatio, Callers: rep.Callers, Advice: []Advice{},
	}
	for _, a := range policy.Advise(facts) {
		d.Advice = append(d.Advice, Advice(a))
	}
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Limit >= len(r.limits) || l.Scope != "" || r.differs(l) == "" {
			continue
		}
		d.Advice = append(d.Advice, Advice{
			Setting: fmt.Sprintf("resources.%s.limits.%s", r.name, r.limits[l.Limit].Name),
			Text: fmt.Sprintf("%d is in force, as %s states it; this configuration says %d. Where members differ the smaller one holds: give all the same",
				l.Size, r.differs(l), sizeOf(&r.limits[l.Limit])),
		})
	}
	if a, ok := r.silence(snap); ok {
		d.Advice = append(d.Advice, a)
	}
	return d
}

// silence is what to say of processes that are not heard of, and whose shares others cannot use.
func (r *resource) silence(snap *store.Snapshot) (Advice, bool) {
	silent := 0
	for i := range snap.Members {
		if snap.Members[i].Silent {
			silent++
		}
	}
	if silent == 0 {
		return Advice{}, false
	}
	who := fmt.Sprintf("%d of %d processes have", silent, len(snap.Members))
	if silent == 1 {
		who = fmt.Sprintf("1 of %d processes has", len(snap.Members))
	}
	kept := ""
	for i := range snap.Limits {
		if l := &snap.Limits[i]; l.Limit < len(r.limits) && l.Scope == "" && l.Withheld > 0 {
			kept += fmt.Sprintf(", %d of %s", l.Withheld, r.limits[l.Limit].Name)
		}
	}
	if kept != "" {
		kept = " (" + kept[2:] + ")"
	}
	return Advice{
		Setting: "leases.expire",
		Text: fmt.Sprintf("%s not been heard of for more than 3 s: killed, or cut off from the store and going on within their shares. These%s are withheld from everybody else until "+
			"a lease and one window are over. If they were killed, a shorter lease gives them back sooner; if they were cut off, look at the network between them and the store", who, kept),
	}, true
}

// quotaPerMin returns the tightest limit on requests that all callers share, by the minute;
// 0 if none is known. Where no limit counts requests, those in the unit of the first count as such.
func (r *resource) quotaPerMin(snap *store.Snapshot) (least float64) {
	unit := Requests
	if t := r.total(snap); t != nil {
		unit = r.limits[t.Limit].Unit
	}
	for _, l := range snap.Limits {
		if l.Limit >= len(r.limits) || l.Size == 0 {
			continue
		}
		def := &r.limits[l.Limit]
		if def.Unit != unit || def.Kind == Concurrency || def.Per != 0 {
			continue
		}
		size := l.Size
		switch {
		case l.Kind != Bucket:
		case def.Size > 0:
			size = def.Size // what it gives back, not what it holds
		case def.Burst > 0:
			continue // an answer has stated its rate, which is not told
		}
		if q := float64(size) * time.Minute.Seconds() / l.Window.Seconds(); least == 0 || q < least {
			least = q
		}
	}
	return least
}

// facts are what advice rests on.
func (r *resource) facts(snap *store.Snapshot) policy.Facts {
	f := policy.Facts{Resource: r.name, Throttled7d: snap.Throttled7d, Use: int(r.use), HeaderTime: snap.HeaderTime.Microseconds()}
	if len(r.limits) == 0 {
		f.Unknown = []string{""}
	}
	for i := range snap.Limits {
		if l := &snap.Limits[i]; l.Limit < len(r.limits) && !ours(&r.limits[l.Limit]) {
			addFacts(&f, &r.limits[l.Limit], l, clockAt(snap.Now))
		}
	}
	return f
}

// countedAs says in words how a limit is counted.
func countedAs(k Kind, window time.Duration) string {
	if k == Bucket {
		return "a bucket that refills in " + span(window)
	}
	return "a " + k.String() + " window of " + span(window)
}

// span writes a window as a configuration does.
func span(window time.Duration) string {
	switch window {
	case time.Minute:
		return "min"
	case time.Hour:
		return "h"
	case 24 * time.Hour:
		return "day"
	}
	return window.Round(time.Second).String()
}

// addFacts adds what there is to say of one of the provider's limits.
func addFacts(f *policy.Facts, def *store.Limit, l *store.LimitState, c clock) {
	name := def.Name
	if def.Kind != Concurrency {
		f.GuardOff = f.GuardOff || def.Guard == GuardOff
		f.GuardStrict = f.GuardStrict || def.Guard == GuardStrict
		if w := def.Window.Microseconds(); def.Guard == GuardStrict && (f.Window == 0 || w < f.Window) {
			f.Window = w
		}
	}
	if l.Size == 0 {
		if !slices.Contains(f.Unknown, name) { // it may have a meter for each model
			f.Unknown = append(f.Unknown, name)
		}
		return
	}
	if part := float64(l.Outside) / float64(l.Size); part > f.Outside {
		f.Outside, f.OutsideLimit, f.OutsideFlow = part, name, def.Kind != Fixed
	}
	if l.Kind != def.Kind || l.Window != def.Window {
		f.Recounted, f.Assumed = name, countedAs(def.Kind, def.Window)
		f.Counted, f.CountedSize = countedAs(l.Kind, l.Window), fmt.Sprintf("size: %d/%s", l.Size, span(l.Window))
	}
	if slack := l.Slack.Microseconds(); l.Widened && slack > f.Slack {
		f.Slack, f.SlackLimit = slack, name
	}
	if l.Cut > f.Cut {
		f.Cut, f.CutLimit = l.Cut, name
	}
	if l.Breaker.Tripped {
		f.BreakerLimit, f.BreakerUntil = name, c.time(resetOf(l)).Format(time.RFC3339)
	}
}
