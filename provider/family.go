package provider

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// family is a set of header fields about one limit, such as X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset.
type family struct {
	prefix string // before "ratelimit-", such as "x-"
	about  string // distinguishes several limits, such as "tokens" or "minute"
	limit  Limit
	used   int64
	others []Limit // policies in the same field
}

// millisSlop is how far a reset may be off that is stated in milliseconds, with the time until it is written.
const millisSlop = 50 * time.Millisecond

// roles are the words that say which part of a family a field is. They stand before or after the word for the limit:
// x-ratelimit-limit-tokens, anthropic-ratelimit-tokens-limit. Where one begins with another, the longer comes first.
var roles = [...]string{"limit", "remaining", "reset-after", "reset", "used", "renewalperiod"}

// splitName splits the name of a header field into its parts.
func splitName(name string) (prefix, about, role string, ok bool) {
	prefix, rest, ok := strings.Cut(name, "ratelimit-")
	if !ok {
		if prefix, rest, ok = strings.Cut(name, "rate-limit-"); !ok {
			return "", "", "", false
		}
	}
	for _, role := range roles {
		if rest == role {
			return prefix, "", role, true
		}
		if about, ok := strings.CutPrefix(rest, role+"-"); ok {
			return prefix, about, role, true
		}
		if about, ok := strings.CutSuffix(rest, "-"+role); ok {
			return prefix, about, role, true
		}
	}
	return "", "", "", false
}

// families reads all families. If several are about the same limit, the names of the standard win, then those with
// x-.
func (rd *reader) families() []family {
	var all []family
	for _, name := range rd.names {
		prefix, about, role, ok := splitName(name)
		if !ok {
			continue
		}
		i := slices.IndexFunc(all, func(f family) bool { return f.prefix == prefix && f.about == about })
		if i < 0 {
			all = append(all, newFamily(prefix, about))
			i = len(all) - 1
		}
		rd.fill(&all[i], name, role)
	}
	slices.SortStableFunc(all, func(a, b family) int {
		return cmp.Or(cmp.Compare(a.about, b.about), cmp.Compare(rank(a.prefix), rank(b.prefix)))
	})
	return slices.CompactFunc(all, func(a, b family) bool { return a.about == b.about })
}

func rank(prefix string) int {
	switch prefix {
	case "":
		return 0
	case "x-":
		return 1
	}
	return 2
}

func newFamily(prefix, about string) family {
	l := newLimit(about)
	l.Unit, l.Window = aboutUnit(about)
	return family{prefix: prefix, about: about, limit: l, used: unstated}
}

func (rd *reader) fill(f *family, name, role string) {
	switch role {
	case "limit":
		rd.fillSize(f, name)
	case "remaining":
		f.limit.Remaining = rd.leading(name, &f.limit)
	case "used":
		f.used = rd.leading(name, &f.limit)
	case "reset":
		s := rd.first(name)
		f.limit.ResetIn = rd.reset(s)
		if _, ok := parseSpan(s); ok && rd.millis {
			f.limit.Slop = millisSlop
		}
	case "reset-after": // sorted after reset, and more precise
		if d := rd.delay(rd.first(name)); d >= 0 {
			f.limit.ResetIn = d
		}
	case "renewalperiod":
		f.limit.Window = rd.window(rd.first(name))
	}
}

// fillSize reads 100, or 100;w=60, or 100, 100;w=60, 1000;w=3600. In the last form all but the first are policies.
func (rd *reader) fillSize(f *family, name string) {
	if n, ok := rd.plain(name); ok {
		f.limit.Size = n
		return
	}
	items := rd.list(name)
	if len(items) == 0 {
		return
	}
	f.limit.Size = rd.sized(&items[0], &f.limit)
	for i := range items[1:] {
		m := &items[1+i]
		if _, ok := m.param("w"); !ok {
			continue // a proxy has joined two lines: it is unknown which limit the second is about
		}
		if l, ok := rd.policy(m); ok {
			l.Unit = f.limit.Unit
			f.others = append(f.others, l)
		} else {
			rd.ignored++
		}
	}
}

// leading returns the first number of a field.
func (rd *reader) leading(name string, l *Limit) int64 {
	if n, ok := rd.plain(name); ok {
		return n
	}
	items := rd.list(name)
	if len(items) == 0 {
		return unstated
	}
	return rd.sized(&items[0], l)
}

// sized reads a number that may carry its window: 76;w=21600.
func (rd *reader) sized(m *item, l *Limit) int64 {
	if w, ok := m.param("w"); ok && l.Window == 0 {
		l.Window = rd.window(w)
	}
	return rd.amount(m.value)
}

// settle completes a family's limit from its parts. It reports whether the family states anything.
func (f *family) settle() bool {
	l := &f.limit
	if l.Remaining < 0 && f.used >= 0 && l.Size > 0 {
		l.Remaining = max(l.Size-f.used, 0)
	}
	return l.Size >= 0 || l.Remaining >= 0 || l.ResetIn >= 0
}

// windowWords are the words for windows in names of fields.
var windowWords = map[string]time.Duration{
	"second": time.Second, "sec": time.Second,
	"minute": time.Minute, "min": time.Minute, "minutely": time.Minute,
	"hour": time.Hour, "hourly": time.Hour,
	"day": 24 * time.Hour, "daily": 24 * time.Hour,
}

// aboutUnit derives unit and window from a word in a field's name: tokens-minute, req-minute, input-tokens, day.
func aboutUnit(about string) (unit string, window time.Duration) {
	words := strings.Split(about, "-")
	if w, ok := windowWords[words[len(words)-1]]; ok {
		window, words = w, words[:len(words)-1]
	}
	return plainUnit(strings.Join(words, "_")), window
}

// plainUnit maps synonyms to one unit.
func plainUnit(unit string) string {
	switch unit = strings.TrimPrefix(unit, "project_"); unit {
	case "", "request", "requests", "req", "reqs", "call", "calls":
		return sluice.Requests
	case "token":
		return "tokens"
	}
	return unit
}
