package provider

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// reader reads the fields of one answer and counts what made no sense.
type reader struct {
	fields  map[string][]string // those of interest, by lower-case name
	names   []string            // of them, sorted: what is read must not depend on a map's order
	base    time.Time           // when the answer was made, on the provider's clock if it says so
	model   string              // that was asked for, in lower case
	refused bool                // the answer is a 429
	overage bool                // what is beyond a subscription is paid for
	ignored int
}

func newReader(r *Response, now time.Time) *reader {
	rd := &reader{fields: map[string][]string{}, base: now, model: strings.ToLower(r.Model), refused: r.Status == 429}
	if !r.Received.IsZero() {
		rd.base = r.Received
	}
	raw := make([]string, 0, 16)
	for name := range r.Header {
		if len(name) <= maxName && ofInterest(name) {
			raw = append(raw, name)
		}
	}
	slices.Sort(raw)
	if len(raw) > maxFields {
		rd.ignored += len(raw) - maxFields
		raw = raw[:maxFields]
	}
	for _, name := range raw {
		rd.take(strings.ToLower(name), r.Header[name])
	}
	if at, ok := parseDate(rd.first("date")); ok {
		rd.base = at
	}
	return rd
}

// ofInterest reports a field that speaks of limits or of time, in whatever case. Every field of every answer
// is asked about, so nothing is made of the name.
func ofInterest(name string) bool {
	switch len(name) {
	case len("age"), len("date"), len("retry-after"), len("retry-after-ms"):
		for _, f := range [...]string{"date", "age", "retry-after", "retry-after-ms"} {
			if strings.EqualFold(name, f) {
				return true
			}
		}
	}
	if len(name) > len(codexPrefix) && strings.EqualFold(name[:len(codexPrefix)], codexPrefix) {
		return true
	}
	return containsFold(name, "ratelimit") || containsFold(name, "rate-limit")
}

// containsFold is strings.Contains without regard to case; word is in lower case and plain ASCII.
func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

func (rd *reader) take(name string, values []string) {
	if _, known := rd.fields[name]; !known && fine(values) { // as nearly all are
		if len(values) > 0 {
			rd.names = append(rd.names, name)
			rd.fields[name] = values[:len(values):len(values)]
		}
		return
	}
	for i, v := range values {
		if i >= maxLimits || len(v) > maxValue {
			rd.ignored++
			continue
		}
		if _, known := rd.fields[name]; !known {
			rd.names = append(rd.names, name)
		}
		rd.fields[name] = append(rd.fields[name], v)
	}
}

// fine reports values that are all within bounds.
func fine(values []string) bool {
	for _, v := range values {
		if len(v) > maxValue {
			return false
		}
	}
	return len(values) <= maxLimits
}

// has reports a field that is there, even if it is blank.
func (rd *reader) has(name string) bool { return len(rd.fields[name]) > 0 }

// first is the first line of a field, empty if there is none.
func (rd *reader) first(name string) string {
	if v := rd.fields[name]; len(v) > 0 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

// list reads a field as a list of members, over all of its lines.
func (rd *reader) list(name string) []member {
	var all []member
	for _, line := range rd.fields[name] {
		members, bad := parseList(line)
		rd.ignored += bad
		all = append(all, members...)
	}
	if len(all) > maxLimits {
		rd.ignored += len(all) - maxLimits
		all = all[:maxLimits]
	}
	return all
}

// plain reads a field that is a number and nothing else, as most are.
func (rd *reader) plain(name string) (int64, bool) {
	v := rd.fields[name]
	if len(v) != 1 {
		return 0, false
	}
	return parseAmount(v[0])
}

// amount counts a value that is no amount.
func (rd *reader) amount(s string) int64 {
	n, ok := parseAmount(s)
	if !ok {
		rd.ignored++
		return unstated
	}
	return n
}

// hint reads how long the provider asks to wait. Retry-After is rounded, and
// retry-after-ms is exact if both mean the same; where they do not, the longer one is safe.
func (rd *reader) hint() (time.Duration, bool) {
	var fine, coarse time.Duration
	var isFine, isCoarse bool
	if s := rd.first("retry-after-ms"); s != "" {
		var n float64
		if n, isFine = parseMillis(s); isFine {
			fine = time.Duration(n * float64(time.Millisecond))
		} else {
			rd.ignored++
		}
	}
	if s := rd.first("retry-after"); s != "" {
		if coarse, isCoarse = retry.ParseRetryAfter(s, rd.base); !isCoarse {
			coarse, isCoarse = parseSpan(s) // 7.66s, which some write
		}
		if !isCoarse {
			rd.ignored++
		}
	}
	if isFine && coarse-fine < time.Second && fine > 0 {
		return min(fine, retry.MaxHint), true
	}
	return min(max(fine, coarse), retry.MaxHint), isFine || isCoarse
}

func parseMillis(s string) (float64, bool) {
	if len(s) > longestTime || !isDecimal(s) {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n > float64(MaxReset/time.Millisecond) {
		return 0, false
	}
	return n, true
}

// hinted reports a Retry-After that makes sense. One that does not counts as none.
func (rd *reader) hinted() bool {
	ignored := rd.ignored
	_, ok := rd.hint()
	rd.ignored = ignored // whoever reads it counts it
	return ok
}

// cached reports an answer that a cache gave: the provider has not seen the request.
func (rd *reader) cached() bool {
	n, ok := parseAmount(rd.first("age"))
	return ok && n > 0
}

// parseAmount reads a whole number; a fraction, such as some write of what remains, is cut
// off.
func parseAmount(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	if len(s) > longestTime || !isDecimal(s) {
		return 0, false
	}
	whole, _, _ := strings.Cut(s, ".")
	if whole == "" {
		whole = "0"
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > store.MaxAmount {
		return 0, false
	}
	return n, true
}
