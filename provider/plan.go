package provider

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// A subscription is limited over windows. Responses state only the used fraction of each, so Sluice counts them in
// millionths. None of this is documented: windows come and go, so they are found by the names of their fields.

// PlanSize is the size of a subscription's window.
const PlanSize = 1_000_000

// The names and lengths of the limits for subscription windows. A window of another length belongs to the next
// longer one.
const (
	plan5h      = "plan-5h"
	plan7d      = "plan-7d"
	planOfModel = "-model" // suffix for windows that count only some models

	length5h = 5 * time.Hour
	length7d = 7 * 24 * time.Hour
)

// planCause is the cause of a subscription's refusal.
const planCause = "the limit of the subscription is reached"

// mostUtilized bounds the used fraction of a window. Some are exceeded a little, or paid for beyond the limit.
const mostUtilized = 10

// planLimits returns the windows of a preset. The week comes first, see internal/pool.
func planLimits() []sluice.Limit {
	window := func(name string, length time.Duration, per ...sluice.Scope) sluice.Limit {
		return sluice.Limit{Name: name, Kind: sluice.Fixed, Window: length, Unit: planUnit(name), Per: per, Plan: true}
	}
	return []sluice.Limit{
		window(plan7d, length7d), window(plan5h, length5h),
		window(plan7d+planOfModel, length7d, sluice.PerModel), window(plan5h+planOfModel, length5h, sluice.PerModel),
	}
}

// planUnit returns the unit of a window's limit.
func planUnit(name string) string { return strings.ReplaceAll(name, "-", "_") }

// planLimit returns a window of which only the length is known. ofModel says that it counts only some models.
func planLimit(length time.Duration, ofModel bool) Limit {
	name := plan7d
	switch {
	case length <= length5h+time.Minute:
		name = plan5h
	case length > length7d+time.Minute:
		name = "plan-" + strconv.Itoa(int(length.Hours()/24)) + "d" // in no preset
	}
	if ofModel {
		name += planOfModel
	}
	l := newLimit(name)
	l.Unit, l.Kind, l.Window, l.Size = planUnit(name), sluice.Fixed, length, PlanSize
	return l
}

// isPlan reports whether the limit is a subscription window.
func (l *Limit) isPlan() bool { return l.Kind == sluice.Fixed && strings.HasPrefix(l.Name, "plan-") }

// part reads the used fraction of a window: 0.42 with whole 1, or 42 with whole 100.
func (rd *reader) part(text string, whole float64) (used int64, ok bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > longestTime || !isDecimal(text) || n > whole*mostUtilized {
		rd.ignored++
		return 0, false
	}
	return int64(math.Round(min(n/whole, 1) * PlanSize)), true
}

// within drops a reset that is too far away for the window.
func (rd *reader) within(l *Limit) {
	if l.ResetIn > l.Window+resetSlop {
		l.ResetIn = store.NotStated
		rd.ignored++
	}
}

const unifiedPrefix = "anthropic-ratelimit-unified-"

// unified reads the windows of a Claude subscription.
func unified(rd *reader, all []Limit) []Limit {
	known := all[:0]
	for _, l := range all {
		if !strings.HasPrefix(l.Name, "unified") {
			known = append(known, l)
		}
	}
	claim := rd.claim()
	for _, name := range rd.names {
		id, ok := strings.CutPrefix(name, unifiedPrefix)
		if !ok || len(known) >= maxLimits {
			continue
		}
		rejected := false
		if id, ok = strings.CutSuffix(id, "-utilization"); !ok {
			// A window that refuses may not state its use.
			if id, ok = strings.CutSuffix(id, "-status"); !ok || rd.has(unifiedPrefix+id+"-utilization") {
				continue
			}
			rejected = true
		}
		length, models := unifiedWindow(id)
		if length == 0 {
			continue
		}
		refuses := strings.EqualFold(rd.first(unifiedPrefix+id+"-status"), "rejected") || rd.refused && claim != "" && strings.ReplaceAll(id, "_", "-") == claim
		if models != "" && !strings.Contains(rd.model, models) && (!rd.refused || !refuses) {
			continue // the window does not count the requested model
		}
		l := planLimit(length, models != "")
		if !rejected {
			used, ok := rd.part(rd.first(name), 1)
			if !ok {
				continue
			}
			l.Remaining = PlanSize - used
		}
		if refuses {
			l.Remaining = 0
		}
		if l.Remaining < 0 {
			continue
		}
		if reset := rd.first(unifiedPrefix + id + "-reset"); reset != "" {
			l.ResetIn = rd.reset(reset)
			rd.within(&l)
		}
		known = fuller(known, l)
	}
	status := strings.ToLower(rd.first(unifiedPrefix + "overage-status"))
	rd.overage = strings.HasPrefix(status, "allowed") || strings.EqualFold(rd.first(unifiedPrefix+"overage-in-use"), "true")
	return known
}

// unifiedWindow parses the name of a window: 5h, 7d, 7d-sonnet, 7d_oi. It returns 0 for other names.
func unifiedWindow(id string) (length time.Duration, models string) {
	id, models, _ = strings.Cut(strings.ReplaceAll(id, "_", "-"), "-")
	if len(id) < 2 || len(id) > 4 {
		return 0, ""
	}
	n, err := strconv.Atoi(id[:len(id)-1])
	if err != nil || n <= 0 {
		return 0, ""
	}
	switch id[len(id)-1] {
	case 'm':
		length = time.Duration(n) * time.Minute
	case 'h':
		length = time.Duration(n) * time.Hour
	case 'd':
		length = time.Duration(n) * 24 * time.Hour
	}
	if length > MaxReset {
		return 0, ""
	}
	return length, models
}

// claim returns the window that the response is about, by the name in its header fields.
func (rd *reader) claim() string {
	claim := strings.ToLower(rd.first(unifiedPrefix + "representative-claim"))
	for _, c := range [...]struct{ word, window string }{{"five_hour", "5h"}, {"seven_day", "7d"}} {
		if rest, ok := strings.CutPrefix(claim, c.word); ok {
			return c.window + strings.ReplaceAll(rest, "_", "-")
		}
	}
	return claim
}

// fuller adds a window. Of two with the same name, the one with less left stays.
func fuller(all []Limit, l Limit) []Limit {
	for i := range all {
		if all[i].Name == l.Name {
			if l.Remaining < all[i].Remaining {
				all[i] = l
			}
			return all
		}
	}
	return append(all, l)
}

const codexPrefix = "x-codex-"

// codex reads the windows of a ChatGPT plan, as Codex receives them.
func codex(rd *reader, all []Limit) []Limit {
	active := strings.ToLower(rd.first(codexPrefix + "active-limit"))
	for _, name := range rd.names {
		id, ok := strings.CutPrefix(name, codexPrefix)
		if !ok || len(all) >= maxLimits {
			continue
		}
		if id, ok = strings.CutSuffix(id, "-used-percent"); !ok {
			continue
		}
		length := time.Duration(0)
		family, ok := strings.CutSuffix(id, "primary")
		if ok {
			length = length5h
		} else if family, ok = strings.CutSuffix(id, "secondary"); ok {
			length = length7d
		}
		family = strings.TrimSuffix(family, "-")
		if !ok || family != "" && family != active {
			continue // for other models
		}
		if minutes := rd.first(codexPrefix + id + "-window-minutes"); minutes != "" {
			n, ok := parseAmount(minutes)
			if !ok || n == 0 || n > int64(MaxReset/time.Minute) {
				rd.ignored++
				continue
			}
			length = time.Duration(n) * time.Minute
		}
		used, ok := rd.part(rd.first(name), 100)
		if !ok {
			continue
		}
		l := planLimit(length, family != "")
		l.Remaining = PlanSize - used
		if at := rd.first(codexPrefix + id + "-reset-at"); at != "" {
			l.ResetIn = rd.reset(at)
		} else if after := rd.first(codexPrefix + id + "-reset-after-seconds"); after != "" {
			l.ResetIn = rd.delay(after)
		}
		rd.within(&l)
		all = fuller(all, l)
	}
	rd.overage = strings.EqualFold(rd.first(codexPrefix+"credits-has-credits"), "true")
	return all
}

// usedUp adds the window that refused a request, if the response states only when it comes back.
func (o *Observation) usedUp() {
	if !o.Hinted || o.RetryAfter <= 0 || o.RetryAfter > length7d+resetSlop {
		return
	}
	for i := range o.Limits {
		if o.Limits[i].isPlan() && o.Limits[i].Remaining == 0 {
			return
		}
	}
	length := length5h
	if o.RetryAfter > length5h+resetSlop {
		length = length7d
	}
	l := planLimit(length, false)
	l.Remaining, l.ResetIn = 0, o.RetryAfter
	for i := range o.Limits {
		if o.Limits[i].Name == l.Name {
			o.Limits[i] = l
			return
		}
	}
	o.Limits = append(o.Limits, l)
}
