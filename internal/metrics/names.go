package metrics

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	prefix  = "sluice_"
	unknown = "unknown" // where nobody said
	other   = "other"   // names beyond those that there is room for
	rest    = "(rest)"  // the sum of what is not shown by itself
	maxText = 128       // bytes of a label
)

// family is what there is under one name.
type family struct {
	name      string
	labels    []string
	histogram bool
}

// maker makes metrics, and remembers which.
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

// clean makes a label of any text: valid, not empty where something is to be there, and not long.
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

// names bounds how many different labels of a kind there are. All are from the configuration, as far as is known:
// the bounds are for what is not.
type names struct {
	resources, classes, limits, reasons, verdicts, budgets bounded
}

func newNames() *names {
	return &names{
		resources: bounded{most: 512}, classes: bounded{most: 16}, limits: bounded{most: 64}, reasons: bounded{most: 32}, verdicts: bounded{most: 16},
		budgets: bounded{most: 64},
	}
}

// bounded is a set of names that does not grow beyond a size.
type bounded struct {
	most int
	mu   sync.RWMutex
	all  map[string]bool
}

// label is the name if there is room for it.
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

// optional is the same where there may be no name.
func (b *bounded) optional(name string) string {
	if name == "" {
		return ""
	}
	return b.label(name)
}
