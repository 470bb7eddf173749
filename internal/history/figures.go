package history

import (
	"math/bits"
	"strings"
	"time"
	"unicode/utf8"
)

// Figures are the counts of one name over some time.
type Figures struct {
	Sends     int64 `json:"sends"`
	Retries   int64 `json:"retries"`
	Waits     int64 `json:"waits"` // sends that were held first
	WaitedMS  int64 `json:"waited_ms"`
	Throttled int64 `json:"throttled"` // refused by the provider: 429 and the like
	Refused   int64 `json:"refused"`   // refused by the gate
	Errors    int64 `json:"errors"`    // other error responses, and requests without a response
	Answers   int64 `json:"answers"`
	LatencyMS int64 `json:"latency_ms"` // sum, from the send to the response header
	Input     int64 `json:"input_tokens"`
	Output    int64 `json:"output_tokens"`
	Tokens    int64 `json:"tokens"` // if the provider states only the sum
	Micros    int64 `json:"-"`
	// Guessed is the part of Micros that is an estimate: the price of the model is unknown, or the usage is not
	// stated yet.
	Guessed int64 `json:"-"`
	// Elsewhere counts sends of other machines, which only the store knows of. They are not part of Sends.
	Elsewhere int64 `json:"elsewhere"`
	// Slow counts responses by latency: see latencyBuckets.
	Slow [latencyBuckets]int64 `json:"-"`
}

// latencyBuckets is the number of latency buckets. Bucket n holds responses of less than 2^n * 16 ms, the last one
// all others.
const latencyBuckets = 16

// bucketOf returns the bucket of a latency.
func bucketOf(d time.Duration) int {
	ms := max(d.Milliseconds(), 0)
	return min(bits.Len64(uint64(ms)>>4), latencyBuckets-1)
}

// quantile estimates the latency, in milliseconds, that a fraction of the responses stayed below. It returns 0 if
// there were none.
func (f *Figures) quantile(part float64) int64 {
	total := int64(0)
	for _, n := range f.Slow {
		total += n
	}
	if total == 0 {
		return 0
	}
	want, seen := part*float64(total), 0.0
	for i, n := range f.Slow {
		if n == 0 {
			continue
		}
		if seen+float64(n) >= want { // within a bucket, responses are assumed to be spread evenly
			low, high := int64(0), int64(16)<<i
			if i > 0 {
				low = high / 2
			}
			return low + int64(float64(high-low)*(want-seen)/float64(n))
		}
		seen += float64(n)
	}
	return 16 << (latencyBuckets - 1)
}

// fields returns the figures in the order of the file. New ones go to the end.
func (f *Figures) fields() [15]*int64 {
	return [...]*int64{
		&f.Sends, &f.Retries, &f.Waits, &f.WaitedMS, &f.Throttled, &f.Refused, &f.Errors, &f.Answers, &f.LatencyMS, &f.Input, &f.Output, &f.Tokens,
		&f.Micros, &f.Guessed, &f.Elsewhere,
	}
}

// add adds other figures.
func (f *Figures) add(g *Figures) {
	to, from := f.fields(), g.fields()
	for i := range to {
		*to[i] += *from[i]
	}
	for i := range f.Slow {
		f.Slow[i] += g.Slow[i]
	}
}

// weight decides which rows of a minute are kept if not all fit.
func (f *Figures) weight() int64 {
	return f.Sends + f.Throttled + f.Refused + f.Errors + f.Answers + f.Elsewhere
}

// key is what a row of figures is about. Model is set with Resource. The row of an agent has neither.
type key struct{ resource, model, agent string }

func (k key) kind() int {
	switch {
	case k.agent != "":
		return ofAgent
	case k.model != "":
		return ofModel
	}
	return ofResource
}

// The kinds of rows.
const (
	ofResource = iota
	ofModel
	ofAgent
	kinds
)

// row is what was counted for one key in one minute.
type row struct {
	Figures
	classes map[string]int64 // sends by class, for resources
}

func (r *row) class(name string, n int64) {
	if name == "" {
		return
	}
	if r.classes == nil {
		r.classes = map[string]int64{}
	}
	if _, known := r.classes[name]; !known && len(r.classes) >= maxClasses {
		name = Other
	}
	r.classes[name] += n
}

// minute has all rows of one minute.
type minute struct {
	at   int64 // minutes since 1970
	rows [kinds]map[key]*row
}

func newMinute(at int64) *minute {
	m := &minute{at: at}
	for i := range m.rows {
		m.rows[i] = map[key]*row{}
	}
	return m
}

func (m *minute) empty() bool {
	for _, rows := range m.rows {
		if len(rows) > 0 {
			return false
		}
	}
	return true
}

var mostRows = [kinds]int{maxResources, maxModels, maxAgents}

var others = [kinds]key{{resource: Other}, {resource: Other, model: Other}, {agent: Other}}

// row returns the row of a key, or the row of Other if there is no room.
func (m *minute) row(k key) *row {
	kind := k.kind()
	rows := m.rows[kind]
	if r := rows[k]; r != nil {
		return r
	}
	if len(rows) >= mostRows[kind] {
		k = others[kind]
		if r := rows[k]; r != nil {
			return r
		}
	}
	r := &row{}
	rows[k] = r
	return r
}

// short bounds the length of a name.
func short(s string) string {
	if len(s) > maxName {
		cut := maxName
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
