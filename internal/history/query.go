package history

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// Bounds of an answer.
const (
	MaxPoints  = 1500 // of one series
	MaxSeries  = 2000 // of one kind
	MaxEvents  = 5000
	withPoints = 64 // series of one kind that have points
	maxSums    = 8192
)

// Query asks for a part of the history.
type Query struct {
	Since, Until time.Time
	// Step is the time between points, in whole minutes.
	Step time.Duration
	// Resources, Models and Agents select which kinds of series have points in addition to totals.
	Resources, Models, Agents bool
	// Most is the maximum number of series of a kind. The others are added up under Other.
	Most int
	// Events is the maximum number of events. The newest are returned.
	Events int
	Kind   string // of events; empty: all
}

// Usual returns the usual step for a length of time, which gives at most a few hundred points.
func Usual(length time.Duration) time.Duration {
	for _, step := range [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute} {
		if length/step <= 360 {
			return step
		}
	}
	return time.Hour
}

// Answer is a part of the history.
type Answer struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	StepMS int64     `json:"step_ms"`
	// KeptSince is the first minute with figures, or nil if there are none.
	KeptSince  *time.Time      `json:"kept_since"`
	Resources  []Series        `json:"resources"`
	Models     []Series        `json:"models"`
	Agents     []Series        `json:"agents"`
	Events     []inspect.Event `json:"events"` // newest first
	MoreEvents int             `json:"more_events"`
}

// Series has the figures of one name.
type Series struct {
	Resource string           `json:"resource,omitempty"` // of a model
	Name     string           `json:"name"`
	Total    Sum              `json:"total"`
	Classes  map[string]int64 `json:"classes,omitempty"`
	Points   []Point          `json:"points,omitempty"`
}

// Sum is a set of figures for display.
type Sum struct {
	Figures
	USD        float64 `json:"usd"`
	GuessedUSD float64 `json:"guessed_usd"`
	P50MS      *int64  `json:"latency_p50_ms"`
	P95MS      *int64  `json:"latency_p95_ms"`
}

func sumOf(f *Figures) Sum {
	s := Sum{Figures: *f, USD: dollars(f.Micros), GuessedUSD: dollars(f.Guessed)}
	if p := f.quantile(0.5); p > 0 {
		p95 := f.quantile(0.95)
		s.P50MS, s.P95MS = &p, &p95
	}
	return s
}

func dollars(micros int64) float64 { return math.Max(0, float64(micros)/1e6) }

// Point is one step of a series. Its JSON omits zero values.
type Point struct {
	At      time.Time
	Figures *Figures
	Classes map[string]int64
}

// MarshalJSON implements [json.Marshaler].
func (p Point) MarshalJSON() ([]byte, error) {
	f := p.Figures
	return json.Marshal(struct {
		At        time.Time        `json:"at"`
		Sends     int64            `json:"sends,omitempty"`
		Retries   int64            `json:"retries,omitempty"`
		Waits     int64            `json:"waits,omitempty"`
		WaitedMS  int64            `json:"waited_ms,omitempty"`
		Throttled int64            `json:"throttled,omitempty"`
		Refused   int64            `json:"refused,omitempty"`
		Errors    int64            `json:"errors,omitempty"`
		Answers   int64            `json:"answers,omitempty"`
		P50       int64            `json:"latency_p50_ms,omitempty"`
		P95       int64            `json:"latency_p95_ms,omitempty"`
		Input     int64            `json:"input_tokens,omitempty"`
		Output    int64            `json:"output_tokens,omitempty"`
		Tokens    int64            `json:"tokens,omitempty"`
		USD       float64          `json:"usd,omitempty"`
		Guessed   float64          `json:"guessed_usd,omitempty"`
		Elsewhere int64            `json:"elsewhere,omitempty"`
		Classes   map[string]int64 `json:"classes,omitempty"`
	}{
		p.At, f.Sends, f.Retries, f.Waits, f.WaitedMS, f.Throttled, f.Refused, f.Errors, f.Answers, f.quantile(0.5), f.quantile(0.95), f.Input, f.Output, f.Tokens,
		dollars(f.Micros), dollars(f.Guessed), f.Elsewhere, p.Classes,
	})
}

// lookup lets one query at a time read the files, and caches answers for a moment.
type lookup struct {
	mu   sync.Mutex
	last map[Query]kept
}

type kept struct {
	at     time.Time
	answer *Answer
	err    error
}

const lookFor = 2 * time.Second // a minute changes little in that time

// Read answers a query. Answers are shared and must not be changed.
func (b *Book) Read(q Query) (*Answer, error) {
	b.look.mu.Lock()
	defer b.look.mu.Unlock()
	now := time.Now()
	q.Step = max(q.Step.Truncate(time.Minute), time.Minute)
	q.Since = q.Since.Truncate(q.Step).UTC()
	asked := q
	asked.Until = q.Until.Truncate(lookFor)
	if k, ok := b.look.last[asked]; ok && now.Sub(k.at) < lookFor && now.Sub(k.at) >= 0 {
		return k.answer, k.err
	}
	a, err := b.read(&q)
	if len(b.look.last) >= 8 || b.look.last == nil {
		b.look.last = map[Query]kept{}
	}
	b.look.last[asked] = kept{now, a, err}
	return a, err
}

// sum is a series that is being added up.
type sum struct {
	key
	row
	points map[int64]*row
}

func (b *Book) read(q *Query) (*Answer, error) {
	a := &Answer{Since: q.Since, Until: q.Until.UTC(), StepMS: q.Step.Milliseconds(), Events: []inspect.Event{}}
	all := [kinds]map[key]*sum{{}, {}, {}}
	step := int64(q.Step / time.Minute)
	points := [kinds]bool{q.Resources, q.Models, q.Agents}
	first, last := minuteOf(q.Since), minuteOf(q.Until)
	collect := func(at int64, k key, r *row) {
		if at < first || at > last {
			return
		}
		kind := k.kind()
		s := all[kind][k]
		if s == nil {
			if len(all[kind]) >= maxSums {
				k = others[kind]
				s = all[kind][k]
			}
			if s == nil {
				s = &sum{key: k}
				all[kind][k] = s
			}
		}
		merge(&s.row, r)
		if !points[kind] {
			return
		}
		if s.points == nil {
			s.points = map[int64]*row{}
		}
		p := s.points[at-at%step]
		if p == nil {
			p = &row{}
			s.points[at-at%step] = p
		}
		merge(p, r)
	}
	err := b.visit(q, a, collect)
	if err != nil {
		return nil, err
	}
	for kind, to := range [kinds]*[]Series{&a.Resources, &a.Models, &a.Agents} {
		*to = ranked(all[kind], q.Most, kind)
	}
	return a, b.events(q, a)
}

// visit calls collect for every row of a time: those in files, and those still in memory.
func (b *Book) visit(q *Query, a *Answer, collect func(int64, key, *row)) error {
	b.write.Lock() // a minute is either in a file or not
	defer b.write.Unlock()
	var oldest time.Time
	b.mu.Lock()
	kept := slices.Clone(b.kept)
	for _, m := range append(slices.Clone(b.over), b.now) {
		if oldest.IsZero() && !m.empty() {
			oldest = timeOf(m.at)
		}
		for _, rows := range m.rows {
			for k, r := range rows {
				collect(m.at, k, r)
			}
		}
	}
	b.mu.Unlock()
	for i, frame := range kept {
		_ = decode(frame, newNames(), func(at int64) bool { // it is whole: this process encoded it
			if i == 0 {
				oldest = timeOf(at)
			}
			return !timeOf(at + 1).Before(q.Since)
		}, collect)
	}
	if b.files != nil {
		if err := b.files.read(q.Since, q.Until, collect); err != nil {
			return err
		}
		if at, ok := b.files.oldest(); ok && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	if !oldest.IsZero() {
		a.KeptSince = &oldest
	}
	return nil
}

func merge(to, from *row) {
	to.add(&from.Figures)
	for class, n := range from.classes {
		to.class(class, n)
	}
}

// ranked returns series, the most active first, and adds up those beyond most.
func ranked(all map[key]*sum, most, kind int) []Series {
	list := slices.SortedFunc(maps.Values(all), func(x, y *sum) int {
		return cmp.Or(cmp.Compare(y.weight(), x.weight()), cmp.Compare(x.resource, y.resource), cmp.Compare(x.model, y.model), cmp.Compare(x.agent, y.agent))
	})
	rest := &sum{key: others[kind]}
	out := []Series{}
	for i, s := range list {
		if i >= most || i >= withPoints && s.points != nil || s.key == rest.key {
			merge(&rest.row, &s.row)
			for at, p := range s.points {
				if rest.points == nil {
					rest.points = map[int64]*row{}
				}
				if rest.points[at] == nil {
					rest.points[at] = &row{}
				}
				merge(rest.points[at], p)
			}
			continue
		}
		out = append(out, s.series())
	}
	if rest.Figures != (Figures{}) {
		out = append(out, rest.series())
	}
	return out
}

func (s *sum) series() Series {
	one := Series{Name: cmp.Or(s.agent, s.model, s.resource), Total: sumOf(&s.Figures), Classes: s.classes}
	if s.model != "" {
		one.Resource = s.resource
	}
	for _, at := range slices.Sorted(maps.Keys(s.points)) {
		p := s.points[at]
		one.Points = append(one.Points, Point{At: timeOf(at), Figures: &p.Figures, Classes: p.classes})
	}
	return one
}

// events adds the newest events of a time.
func (b *Book) events(q *Query, a *Answer) error {
	if q.Events == 0 {
		return nil
	}
	var list []inspect.Event
	total := 0
	add := func(e inspect.Event) {
		if q.Kind != "" && e.Kind != q.Kind {
			return
		}
		total++
		list = append(list, e)
		if len(list) >= 2*q.Events {
			list = append(list[:0], list[len(list)-q.Events:]...)
		}
	}
	b.mu.Lock()
	memory := slices.Concat(b.alarms.kept, b.alarms.pending)
	b.mu.Unlock()
	if b.files != nil {
		if err := b.files.readEvents(q.Since, q.Until, add); err != nil {
			return err
		}
	}
	for _, e := range memory {
		if !e.Time.Before(q.Since) && !e.Time.After(q.Until) {
			add(e)
		}
	}
	slices.SortStableFunc(list, func(x, y inspect.Event) int { return y.Time.Compare(x.Time) })
	a.Events = append(a.Events, list[:min(len(list), q.Events)]...)
	a.MoreEvents = total - len(a.Events)
	return nil
}
