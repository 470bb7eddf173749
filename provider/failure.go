package provider

import (
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// Bounds on what is kept of an error.
const (
	maxWords = 16
	maxWord  = 96
)

// failure is the part of an error body that verdicts depend on. It is never shown to users.
type failure struct {
	there  bool     // the body has an error, and does not merely mention one
	whole  bool     // the body is only an error: its outermost fields count
	words  []string // types, codes and reasons, in lower case
	text   string   // beginning of the message for people, in lower case
	number int      // a code that is an HTTP status
	delay  string   // how long to wait
	reset  string   // when to try again
}

// readFailure finds the error in a body that may be incomplete. whole says that the status marks the response as an
// error.
func readFailure(body []byte, whole bool) failure {
	f := failure{whole: whole}
	s := newScanner(&failureSink{f: &f})
	s.write(body[:min(len(body), MaxBody)])
	s.write([]byte{'\n'}) // ends a number
	return f
}

type failureSink struct{ f *failure }

func (k *failureSink) scalar(s *scanner) {
	if s.objs <= maxPath {
		k.f.note(s, inner(s))
	}
}
func (*failureSink) closed(*scanner) {}
func (*failureSink) done()           {}

// note records a value if it is part of an error. from is the level at which the relevant path begins.
func (f *failure) note(s *scanner, from int) {
	if s.is(from, "status_details") { // where OpenAI's realtime API puts it
		from++
	}
	depth := s.objs - from
	switch {
	case depth == 1:
		f.outermost(s, from)
	case depth < 2 || !s.is(from, "error") && !s.is(from, "errors"):
	default:
		f.there = f.there || s.is(from, "error")
		f.field(s, s.at(s.objs-1))
	}
}

// outermost reads a field of the outermost object. Many bodies that are not errors have a message.
func (f *failure) outermost(s *scanner, from int) {
	switch {
	case s.is(from, "error"):
		if s.quoted {
			f.there = true
			f.field(s, "message")
			f.word(s)
		}
	case s.is(from, "object") && string(s.value()) == "error":
		f.there = true
	case s.is(from, "code"), s.is(from, "message"), f.whole && (s.is(from, "type") || s.is(from, "status") || s.is(from, "__type")):
		f.field(s, s.at(from))
	}
}

func (f *failure) field(s *scanner, field string) {
	switch strings.ToLower(field) {
	case "type", "__type", "code", "status", "reason", "error_code", "quotaid", "rate_limit_reason":
		f.word(s)
	case "message":
		if s.quoted && f.text == "" {
			f.text = strings.ToLower(string(s.value()))
		}
	case "retrydelay":
		if s.quoted && s.size <= longestTime {
			f.delay = string(s.value())
		}
	case "x-ratelimit-reset", "resets_at", "resets_in_seconds":
		if s.size <= longestTime {
			f.reset = string(s.value())
		}
	}
}

func (f *failure) word(s *scanner) {
	if n, ok := s.count(); ok && n >= 400 && n < 600 {
		f.number = int(n)
	}
	if s.quoted && s.size <= maxWord && s.size > 0 && len(f.words) < maxWords {
		f.words = append(f.words, strings.ToLower(string(s.value())))
	}
}

// rule says what an error means. Empty fields match everything.
type rule struct {
	status  int    // HTTP status, or the one that the body states
	word    string // one of failure.words
	says    string // a part of the text or of a word
	verdict store.Verdict
	scope   sluice.Scope
	daily   bool // the quota comes back at the end of the day
	plan    bool // a window of a subscription is used up
	cause   string
}

func (r *rule) fits(status int, f *failure) bool {
	if r.status != 0 && r.status != status {
		return false
	}
	if r.word != "" && !slices.Contains(f.words, r.word) {
		return false
	}
	return r.says == "" || strings.Contains(f.text, r.says) ||
		slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(w, r.says) })
}

// wait reads how long an error asks to wait. The error may have a duration, a time, or a text such as "Please try
// again in 7m12s".
func (f *failure) wait(base time.Time) (time.Duration, bool) {
	if d, ok := parseSpan(f.delay); ok {
		return d, true
	}
	if f.reset != "" {
		if d, ok := parseReset(f.reset, base); ok {
			return d, true
		}
	}
	for _, before := range [...]string{"try again in ", "retry after ", "retry in "} {
		_, rest, ok := strings.Cut(f.text, before)
		if !ok {
			continue
		}
		amount, unit, _ := strings.Cut(rest[:min(len(rest), longestTime)], " ")
		amount = strings.TrimRight(amount, ".,;")
		if d, ok := parseSpan(amount); ok {
			return d, true
		}
		if d, ok := parseDelay(amount); ok && strings.HasPrefix(unit, "second") {
			return d, true
		}
	}
	return 0, false
}
