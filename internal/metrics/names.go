package metrics

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	prefix  = "sluice_"
	unknown = "unknown" // not stated
	other   = "other"   // names beyond the bound
	rest    = "(rest)"  // the sum of what is not shown one by one
	maxText = 128       // bytes of a label
)

// family describes the metrics under one name.
type family struct {
	name      string
	labels    []string
	histogram bool
}

// maker creates metrics and records their families.
type maker struct {
	registry *prometheus.Registry
	families []family
}

func (m *maker) note(name string, labels []string, histogram bool) string {
	m.families = append(m.families, family{prefix + name, labels, histogram})
	return prefix + name
}

func (m *maker) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.note(name, labels, false), Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *maker) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.note(name, labels, true), Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *maker) desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(m.note(name, labels, false), help, labels, nil)
}

// clean converts any text into a valid label of at most maxText bytes.
func clean(s string) string {
	if len(s) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// names bounds how many different labels of each kind there are. Names normally come from the configuration; the bounds
// are for names that clients send.
type names struct {
	resources, classes, limits, reasons, verdicts, budgets bounded
}

func newNames() *names {
	return &names{
		resources: bounded{most: 512}, classes: bounded{most: 16}, limits: bounded{most: 64}, reasons: bounded{most: 32}, verdicts: bounded{most: 16},
		budgets: bounded{most: 64},
	}
}

// bounded is a set of names of limited size.
type bounded struct {
	most int
	mu   sync.RWMutex
	all  map[string]bool
}

// label returns the name, or other if there is no room for it, or unknown if it is empty.
func (b *bounded) label(name string) string {
	if name == "" {
		return unknown
	}
	name = clean(name)
	b.mu.RLock()
	known := b.all[name]
	b.mu.RUnlock()
	if known {
		return name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.all[name]:
		return name
	case len(b.all) >= b.most:
		return other
	case b.all == nil:
		b.all = map[string]bool{}
	}
	b.all[name] = true
	return name
}

// optional is label for names that may be empty.
func (b *bounded) optional(name string) string {
	if name == "" {
		return ""
	}
	return b.label(name)
}
