package inspect

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Report lists the sends of a period.
type Report struct {
	Since     time.Time        `json:"since"`
	Resources []ResourceReport `json:"resources"`
}

// ResourceReport lists the sends to one resource.
type ResourceReport struct {
	Name string `json:"name"`
	// Pool is the pool of the store that counts these sends. Empty means Name.
	Pool string `json:"-"`
	// Since is the start of the recorded sends, if that is later than the requested start.
	Since   time.Time      `json:"since"`
	Total   CallerReport   `json:"total"`
	Callers []CallerReport `json:"callers"` // most sends first
	// ThrottledMinutes counts the refusals (429) of each minute that has any, by the start of the minute. It comes from
	// the event log only.
	ThrottledMinutes map[time.Time]int64 `json:"-"`
}

// CallerReport sums up the sends of one agent, or of all agents.
type CallerReport struct {
	Name       string `json:"name"`
	FirstSends int64  `json:"first_sends"`
	Retries    int64  `json:"retries"`
	Throttled  int64  `json:"throttled"`
	Failed     int64  `json:"failed"` // for reasons other than a limit
	// PeakPerS and PeakPerMin are the most sends in a calendar second and minute. MeanPerS is the mean from the first
	// to the last minute with sends.
	PeakPerS   int64   `json:"peak_per_s"`
	PeakPerMin int64   `json:"peak_per_min"`
	MeanPerS   float64 `json:"mean_per_s"`
	WaitedMS   int64   `json:"waited_ms"`
	// WouldWait counts the requests that mode observe let through although the gate would have held or refused them. It
	// comes from the event log only.
	WouldWait int64 `json:"would_wait"`
	// Held counts the requests that waited because a limit was full; sent at once, they would have exceeded it.
	// HeldMicros is what they cost, in millionths of a dollar. Both come from the event log only.
	Held       int64 `json:"held"`
	HeldMicros int64 `json:"-"`
	// Slowed counts the requests that waited because a budget has to last until its reset. It comes from the event log
	// only.
	Slowed int64 `json:"slowed"`
	// Micros is the cost of all sends in millionths of a dollar, RetryMicros that of the retries among them. Costs are
	// estimates where no response stated the usage. Unpriced counts sends for models without a known price. All three
	// come from the event log only.
	Micros      int64 `json:"-"`
	RetryMicros int64 `json:"-"`
	Unpriced    int64 `json:"unpriced"`
	// Answers counts sends with a successful response. TookS is the sum of the seconds from request to first byte, and
	// TookSquares the sum of their squares. All three come from the event log only.
	Answers            int64   `json:"-"`
	TookS, TookSquares float64 `json:"-"`
	// Logged counts the sends that the event log has. First and Last are the times of the first and the last of them.
	Logged      int64     `json:"-"`
	First, Last time.Time `json:"-"`

	Units  map[string]int64       `json:"units"`
	Models map[string]ModelReport `json:"models"`

	// Minutes counts the sends of each minute that has any, by the start of the minute.
	Minutes map[time.Time]int64 `json:"-"`
	// LogMinutes is the part of Minutes that only the event log has.
	LogMinutes map[time.Time]int64 `json:"-"`
}

// ModelReport sums up the sends for one model.
type ModelReport struct {
	Sends   int64            `json:"sends"`
	Retries int64            `json:"retries"`
	Units   map[string]int64 `json:"units"`
	// Requested lists the names under which clients on this machine asked for the model, sorted, at most 16. It is
	// empty if they used the model's own name.
	Requested []string `json:"requested,omitempty"`
}

// Sort sorts the callers, most sends first.
func (r *ResourceReport) Sort() {
	slices.SortFunc(r.Callers, func(a, b CallerReport) int {
		return cmp.Or(cmp.Compare(b.FirstSends+b.Retries, a.FirstSends+a.Retries), cmp.Compare(a.Name, b.Name))
	})
}

// NewCallerReport returns an empty report for a caller.
func NewCallerReport(name string) CallerReport {
	return CallerReport{Name: name, Units: map[string]int64{}, Models: map[string]ModelReport{}}
}

// Rates computes PeakPerMin and MeanPerS from Minutes.
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

// Bounds of a report. They are needed because clients choose the names of agents and models.
const (
	MaxReportCallers = 10_000 // of a resource
	MaxReportModels  = 256    // of a caller
	// ReportOther is the name under which a report sums up the callers and models beyond its bounds.
	ReportOther = "(other)"
)

// Fold keeps the callers with the most sends, and the models with the most sends of each caller. It sums up the rest
// under [ReportOther].
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

func addMinutes(to, more map[time.Time]int64) map[time.Time]int64 {
	if to == nil {
		to = make(map[time.Time]int64, len(more))
	}
	for start, n := range more {
		to[start] += n
	}
	return to
}

// Add adds the sends of another caller.
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
	c.Logged += more.Logged
	if c.First.IsZero() || !more.First.IsZero() && more.First.Before(c.First) {
		c.First = more.First
	}
	if more.Last.After(c.Last) {
		c.Last = more.Last
	}
	c.PeakPerS = max(c.PeakPerS, more.PeakPerS)
	c.Minutes, c.LogMinutes = addMinutes(c.Minutes, more.Minutes), addMinutes(c.LogMinutes, more.LogMinutes)
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

// add adds the counts of more, but keeps m's requested names.
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
