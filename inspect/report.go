package inspect

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Report is what was sent in a period.
type Report struct {
	Since     time.Time        `json:"since"`
	Resources []ResourceReport `json:"resources"`
}

// ResourceReport is what was sent to one resource.
type ResourceReport struct {
	Name string `json:"name"`
	// Since is from when on sends are remembered, if that is later than was asked for.
	Since   time.Time      `json:"since"`
	Total   CallerReport   `json:"total"`
	Callers []CallerReport `json:"callers"` // most sends first
}

// CallerReport is what one agent sent, or all of them.
type CallerReport struct {
	Name       string `json:"name"`
	FirstSends int64  `json:"first_sends"`
	Retries    int64  `json:"retries"`
	Throttled  int64  `json:"throttled"`
	Failed     int64  `json:"failed"` // for other reasons than a limit
	// Peaks are the most in a calendar second and minute; the mean is over the minutes from
	// the first to the last in which anything was sent.
	PeakPerS   int64   `json:"peak_per_s"`
	PeakPerMin int64   `json:"peak_per_min"`
	MeanPerS   float64 `json:"mean_per_s"`
	WaitedMS   int64   `json:"waited_ms"`
	// WouldWait is how many were let through in the mode observe that would have been held or
	// refused; only the event log knows.
	WouldWait int64 `json:"would_wait"`
	// Held is how many waited because a limit was full, and HeldMicros what they cost: sent when they were asked for, they
	// would have gone over it. Only the event log knows.
	Held       int64 `json:"held"`
	HeldMicros int64 `json:"-"`
	// Slowed is how many waited because a budget has to last until its reset. Only the event log knows.
	Slowed int64 `json:"slowed"`
	// Micros is what the sends cost, in millionths of a dollar, and RetryMicros what those of them did that were retries; an
	// estimate where nobody said. Unpriced is how many were for models whose price nobody knows. Only the event log knows.
	Micros      int64 `json:"-"`
	RetryMicros int64 `json:"-"`
	Unpriced    int64 `json:"unpriced"`
	// Answers is how many sends had a good answer, TookS the seconds from when they were asked for to its first byte, all
	// together, and TookSquares the sum of their squares. Only the event log knows.
	Answers            int64   `json:"-"`
	TookS, TookSquares float64 `json:"-"`

	Units  map[string]int64       `json:"units"`
	Models map[string]ModelReport `json:"models"`

	// Minutes are the sends of each minute in which there were any, by its start.
	Minutes map[time.Time]int64 `json:"-"`
}

// ModelReport is what was sent for one model.
type ModelReport struct {
	Sends   int64            `json:"sends"`
	Retries int64            `json:"retries"`
	Units   map[string]int64 `json:"units"`
	// Requested are the names that clients wrote for it on this machine, sorted, the first 16. Empty if they wrote its own.
	Requested []string `json:"requested,omitempty"`
}

// Sort puts the callers in order: most sends first.
func (r *ResourceReport) Sort() {
	slices.SortFunc(r.Callers, func(a, b CallerReport) int {
		return cmp.Or(cmp.Compare(b.FirstSends+b.Retries, a.FirstSends+a.Retries), cmp.Compare(a.Name, b.Name))
	})
}

// NewCallerReport begins the report of a caller.
func NewCallerReport(name string) CallerReport {
	return CallerReport{Name: name, Units: map[string]int64{}, Models: map[string]ModelReport{}}
}

// Rates works out what follows from Minutes: the busiest of them, and the mean.
func (c *CallerReport) Rates() {
	c.PeakPerMin, c.MeanPerS = 0, 0
	var first, last time.Time
	for start, n := range c.Minutes {
		c.PeakPerMin = max(c.PeakPerMin, n)
		if first.IsZero() || start.Before(first) {
			first = start
		}
		if start.After(last) {
			last = start
		}
	}
	if len(c.Minutes) > 0 {
		c.MeanPerS = float64(c.FirstSends+c.Retries) / (last.Sub(first) + time.Minute).Seconds()
	}
}

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
	c.Slowed += more.Slowed
	c.HeldMicros += more.HeldMicros
	c.Micros += more.Micros
	c.RetryMicros += more.RetryMicros
	c.Unpriced += more.Unpriced
	c.Answers += more.Answers
	c.TookS += more.TookS
	c.TookSquares += more.TookSquares
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
