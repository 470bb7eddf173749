package topview

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// pane is one of the lists.
type pane int

const (
	resources pane = iota
	agents
	waiting
	panes
)

// Model is the state of the view. It is a value: Update returns a new one.
type Model struct {
	ctx   context.Context // for the commands it starts
	src   Source
	style show.Style

	width, height int
	now           time.Time

	data    Data
	at      time.Time // of the data; zero if there is none yet
	err     error     // of the last read
	begun   time.Time // of the running read
	reading bool
	rates   map[string]series

	focus    pane
	selected [panes]string // by key, so that the selection stays when lists change
	sorts    [panes]int
	filter   string
	typing   bool // the filter is being typed
	asked    *action
	note     string
	noteTill time.Time
	help     bool
}

// action is an action that needs confirmation.
type action struct {
	resource string
	resume   bool
	step     int // index into pauses
}

var pauses = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

const usualPause = 2

func (a *action) length() time.Duration { return pauses[a.step] }

// New returns a view without data.
func New(ctx context.Context, src Source, style show.Style, now time.Time) Model {
	return Model{ctx: ctx, src: src, style: style, now: now, width: 80, height: 24, rates: map[string]series{}, reading: true, begun: now}
}

// Init starts the first read.
func (m Model) Init() tea.Cmd { return tea.Batch(m.read(), tick()) }

// Update handles a key, a size, a tick, or new data.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tickMsg:
		m.now = time.Time(msg)
		if m.reading {
			return m, tick() // one read at a time, however long it takes
		}
		m.reading, m.begun = true, m.now
		return m, tea.Batch(tick(), m.read())
	case dataMsg:
		m.take(msg)
	case doneMsg:
		return m.done(msg)
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		if m.typing {
			m.typeIn(msg.Content)
		}
	}
	return m, nil
}

// take stores the result of a read.
func (m *Model) take(msg dataMsg) {
	m.reading, m.err = false, msg.err
	if msg.at.After(m.now) {
		m.now = msg.at
	}
	if msg.err != nil {
		return // old data is better than none
	}
	m.data, m.at = msg.data, msg.at
	rates := make(map[string]series, len(m.data.Status.Resources))
	for i := range m.data.Status.Resources {
		r := &m.data.Status.Resources[i]
		rates[r.Name] = m.rates[r.Name].add(msg.at, r.Sent)
	}
	m.rates = rates
}

const noteFor = 5 * time.Second

func (m Model) done(msg doneMsg) (tea.Model, tea.Cmd) {
	m.note, m.noteTill = msg.what, m.now.Add(noteFor)
	if msg.err != nil {
		m.note = "that failed: " + msg.err.Error()
	}
	if m.reading {
		return m, nil
	}
	m.reading, m.begun = true, m.now
	return m, m.read() // to show the effect
}

// series holds how many requests were sent per second.
type series struct {
	at    time.Time
	sent  int64
	rates []float64
}

const (
	sampled   = time.Second
	maxSeries = 120
	meanOver  = 5 // samples
)

// add returns the series with a new sample.
func (s series) add(at time.Time, sent int64) series {
	if s.at.IsZero() || sent < s.sent { // the resource is new, or its counters are
		return series{at: at, sent: sent}
	}
	took := at.Sub(s.at)
	if took < sampled {
		return s
	}
	rates := append(slices.Clone(s.rates), float64(sent-s.sent)/took.Seconds())
	return series{at: at, sent: sent, rates: rates[max(len(rates)-maxSeries, 0):]}
}

// mean returns the recent rate.
func (s series) mean() float64 {
	last := s.rates[max(len(s.rates)-meanOver, 0):]
	sum := 0.0
	for _, r := range last {
		sum += r
	}
	return sum / float64(max(len(last), 1))
}

// matches reports whether any of the texts passes the filter.
func (m *Model) matches(texts ...string) bool {
	if m.filter == "" {
		return true
	}
	want := strings.ToLower(m.filter)
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), want) })
}

// fullest returns the most used limit and the used fraction of it; nil if no limit has a known size.
func fullest(r *inspect.ResourceStatus) (l *inspect.LimitStatus, part float64) {
	for i := range r.Limits {
		if one := &r.Limits[i]; one.Limit > 0 {
			if p := float64(one.Used) / float64(one.Limit); l == nil || p > part {
				l, part = one, p
			}
		}
	}
	return l, part
}
