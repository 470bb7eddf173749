package sluice

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Bounds of a report. Clients choose the names of agents and models.
const (
	MaxReportCallers = 10_000 // of a resource
	MaxReportModels  = 256    // of a caller
	// ReportOther is the name under which a report sums up the callers and models beyond its bounds.
	ReportOther = "(other)"
)

// Fold keeps the callers, and the models of each caller, that sent most. It adds the others up under [ReportOther].
func (r *ResourceReport) Fold() {
	if len(r.Callers) > MaxReportCallers {
		r.Sort()
		rest, kept := NewCallerReport(ReportOther), r.Callers[:0]
		for i := range r.Callers {
			if c := r.Callers[i]; c.Name != ReportOther && len(kept) < MaxReportCallers-1 {
				kept = append(kept, c)
			} else {
				rest.Add(&c)
			}
		}
		r.Callers = append(kept, rest)
	}
	r.Total.foldModels()
	for i := range r.Callers {
		r.Callers[i].foldModels()
	}
}

func (c *CallerReport) foldModels() {
	if len(c.Models) <= MaxReportModels {
		return
	}
	names := slices.SortedFunc(maps.Keys(c.Models), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Models[b].Sends, c.Models[a].Sends), cmp.Compare(a, b))
	})
	rest, kept := ModelReport{}, 0
	for _, name := range names {
		if name != ReportOther && kept < MaxReportModels-1 {
			kept++
			continue
		}
		rest.add(c.Models[name])
		delete(c.Models, name)
	}
	c.Models[ReportOther] = rest
}

// Add adds another caller's sends to these.
func (c *CallerReport) Add(more *CallerReport) {
	c.FirstSends += more.FirstSends
	c.Retries += more.Retries
	c.Throttled += more.Throttled
	c.Failed += more.Failed
	c.WaitedMS += more.WaitedMS
	c.WouldWait += more.WouldWait
	c.Held += more.Held
	c.HeldMicros += more.HeldMicros
	c.Micros += more.Micros
	c.RetryMicros += more.RetryMicros
	c.Unpriced += more.Unpriced
	c.PeakPerS = max(c.PeakPerS, more.PeakPerS)
	if c.Minutes == nil {
		c.Minutes = map[time.Time]int64{}
	}
	for start, n := range more.Minutes {
		c.Minutes[start] += n
	}
	if c.Units == nil {
		c.Units = map[string]int64{}
	}
	for unit, n := range more.Units {
		c.Units[unit] += n
	}
	if c.Models == nil {
		c.Models = map[string]ModelReport{}
	}
	for name, m := range more.Models {
		sum := c.Models[name]
		sum.add(m)
		c.Models[name] = sum
	}
	c.Rates()
}

// add adds another count of the same model, or of another one. The names that clients wrote stay.
func (m *ModelReport) add(more ModelReport) {
	m.Sends += more.Sends
	m.Retries += more.Retries
	if m.Units == nil {
		m.Units = map[string]int64{}
	}
	for unit, n := range more.Units {
		m.Units[unit] += n
	}
}
