package provider

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// reader reads the header fields of one response and counts those that make no sense.
type reader struct {
	fields  map[string][]string // relevant fields, by lower-case name
	names   []string            // their names, sorted: results must not depend on map order
	base    time.Time           // when the response was made, on the provider's clock if it has a Date
	model   string              // the requested model, in lower case
	refused bool                // the response is a 429
	millis  bool                // see vendor
	overage bool                // use beyond a subscription is paid for
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

// ofInterest reports whether a field is about limits or time. The case of the name does not matter. It runs for
// every field of every response, so it does not allocate.
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

// containsFold is strings.Contains without regard to case. word must be lower-case ASCII.
func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

func (rd *reader) take(name string, values []string) {
	if _, known := rd.fields[name]; !known && fine(values) { // nearly all are
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

// fine reports whether all values are within bounds.
func fine(values []string) bool {
	for _, v := range values {
		if len(v) > maxValue {
			return false
		}
	}
	return len(values) <= maxLimits
}

// has reports whether a field is present, even if it is blank.
func (rd *reader) has(name string) bool { return len(rd.fields[name]) > 0 }

// first returns the first line of a field, or an empty string if there is none.
func (rd *reader) first(name string) string {
	if v := rd.fields[name]; len(v) > 0 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

// list reads all lines of a field as one list of items.
func (rd *reader) list(name string) []item {
	var all []item
	for _, line := range rd.fields[name] {
		items, bad := parseList(line)
		rd.ignored += bad
		all = append(all, items...)
	}
	if len(all) > maxLimits {
		rd.ignored += len(all) - maxLimits
		all = all[:maxLimits]
	}
	return all
}

// plain reads a field that consists of one number, as most do.
func (rd *reader) plain(name string) (int64, bool) {
	v := rd.fields[name]
	if len(v) != 1 {
		return 0, false
	}
	return parseAmount(v[0])
}

// amount reads a number. It counts other values as ignored.
func (rd *reader) amount(s string) int64 {
	n, ok := parseAmount(s)
	if !ok {
		rd.ignored++
		return unstated
	}
	return n
}

// hint reads how long the provider asks to wait. Retry-After is rounded; retry-after-ms is exact. hint uses the
// exact one if both agree, and the longer one otherwise, which is safe.
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
			coarse, isCoarse = parseSpan(s) // some providers write 7.66s
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

// hinted reports whether there is a valid Retry-After.
func (rd *reader) hinted() bool {
	ignored := rd.ignored
	_, ok := rd.hint()
	rd.ignored = ignored // the code that uses the hint counts it
	return ok
}

// cached reports whether a cache gave the response. The provider has not seen the request then.
func (rd *reader) cached() bool {
	n, ok := parseAmount(rd.first("age"))
	return ok && n > 0
}

// parseAmount reads a whole number. It cuts off a fraction, which some providers write in remaining amounts.
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
