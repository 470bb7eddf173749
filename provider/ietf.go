package provider

import (
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// ietfPrefixes are the prefixes of the drafts' fields, best first.
var ietfPrefixes = [...]string{"", "x-", "beta-"}

// newLimit returns a limit without any stated values.
func newLimit(name string) Limit {
	return Limit{
		Name: name, Unit: sluice.Requests, Kind: sluice.Rolling,
		Size: unstated, Remaining: unstated, ResetIn: store.NotStated,
	}
}

// policies reads RateLimit-Policy: 100;w=60 up to draft 07, "name";q=100;w=60 since draft 08.
func (rd *reader) policies(field string) []Limit {
	var all []Limit
	for _, m := range rd.list(field) {
		if l, ok := rd.policy(&m); ok {
			all = append(all, l)
		} else {
			rd.ignored++
		}
	}
	return all
}

func (rd *reader) policy(m *item) (Limit, bool) {
	name, size := m.value, m.value
	if q, ok := m.param("q"); ok {
		size = q
	} else {
		name = ""
	}
	n, ok := parseAmount(size)
	if !ok || n == 0 || len(name) > maxName || m.key != "" {
		return Limit{}, false
	}
	l := newLimit(name)
	l.Size = n
	if unit, ok := m.param("qu"); ok && len(unit) <= maxName {
		l.Unit, l.Kind = unitOf(unit)
	}
	if w, ok := m.param("w"); ok {
		l.Window = rd.window(w)
	}
	return l, true
}

// window reads a window in seconds.
func (rd *reader) window(s string) time.Duration {
	d, ok := parseDelay(s)
	if !ok {
		rd.ignored++
		return 0
	}
	return d
}

// unitOf translates a unit of the drafts.
func unitOf(unit string) (string, sluice.Kind) {
	if unit == "concurrent-requests" {
		return sluice.Requests, sluice.Concurrency
	}
	return plainUnit(strings.ReplaceAll(strings.ToLower(unit), "-", "_")), sluice.Rolling
}

// state reads RateLimit: "name";r=50;t=30 since draft 08, limit=100, remaining=50, reset=30 in draft 07. It takes
// sizes and windows from the policies. Policies that the field does not mention come last.
func (rd *reader) state(field string, policies []Limit) []Limit {
	items := rd.list(field)
	if len(items) == 0 {
		return nil
	}
	var all []Limit
	for i := range items {
		switch m := &items[i]; {
		case m.key != "":
			all = rd.draft07(all, m)
		case len(m.value) > maxName:
			rd.ignored++
		default:
			all = append(all, rd.draft08(m, policies))
		}
	}
	return withPolicies(all, policies)
}

func (rd *reader) draft08(m *item, policies []Limit) Limit {
	l := newLimit(m.value)
	for _, p := range policies {
		if p.Name == m.value {
			l = p
			break
		}
	}
	if r, ok := m.param("r"); ok {
		l.Remaining = rd.amount(r)
	}
	if t, ok := m.param("t"); ok {
		l.ResetIn = rd.delay(t)
	}
	return l
}

// draft07 adds an item of the dictionary. Each limit= begins another limit, because a field can have several lines.
func (rd *reader) draft07(all []Limit, m *item) []Limit {
	if len(all) == 0 || m.key == "limit" {
		all = append(all, newLimit(""))
	}
	l := &all[len(all)-1]
	switch m.key {
	case "limit":
		l.Size = rd.amount(m.value)
		if w, ok := m.param("w"); ok {
			l.Window = rd.window(w)
		}
	case "remaining":
		l.Remaining = rd.amount(m.value)
	case "reset":
		l.ResetIn = rd.reset(m.value)
	default: // extensions are allowed
	}
	return all
}

func (rd *reader) delay(s string) time.Duration {
	d, ok := parseDelay(s)
	if !ok {
		rd.ignored++
		return store.NotStated
	}
	return d
}

func (rd *reader) reset(s string) time.Duration {
	d, ok := parseReset(s, rd.base)
	if !ok {
		rd.ignored++
		return store.NotStated
	}
	return d
}

// withPolicies gives limits without a window the window of the policy of the same size. It appends the remaining
// policies.
func withPolicies(all, policies []Limit) []Limit {
	used := make([]bool, len(policies))
	for i := range all {
		l := &all[i]
		for k, p := range policies {
			if used[k] || p.Name != l.Name || p.Name == "" && p.Size != l.Size || p.Kind == sluice.Concurrency && l.Kind != p.Kind {
				continue
			}
			if used[k] = true; l.Window == 0 {
				l.Window = p.Window
			}
			break
		}
	}
	for k, p := range policies {
		if !used[k] {
			all = append(all, p)
		}
	}
	return all
}
