package provider

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Generic is the dialect of providers that have none of their own: the IETF's RateLimit
// fields in all their drafts, the X-RateLimit fields in all common forms, and Retry-After.
type Generic struct{}

// Name returns "generic".
func (Generic) Name() string { return "generic" }

// Observe reads an answer.
func (Generic) Observe(r *Response, now time.Time) Observation {
	rd := newReader(r, now)
	if rd.cached() && r.Status < 400 {
		return Observation{Ignored: rd.ignored} // it never reached the limits, and what it says of them is old
	}
	o := Observation{Limits: rd.limits()}
	o.Verdict = verdictOf(r, rd, o.Limits)
	o.explain(r.Status, rd)
	o.Ignored = rd.ignored
	return o
}

// limits reads everything that the fields state of limits. Where the standard's field is there,
// older ones add only what it does not speak of.
func (rd *reader) limits() []Limit {
	var all, policies []Limit
	for _, prefix := range ietfPrefixes {
		policies = rd.policies(prefix + "ratelimit-policy")
		if all = rd.state(prefix+"ratelimit", policies); len(all) > 0 || len(policies) > 0 {
			break
		}
	}
	if len(all) == 0 {
		return rd.bound(rd.older(policies))
	}
	for _, l := range rd.older(nil) {
		if !slices.ContainsFunc(all, func(known Limit) bool { return known.Unit == l.Unit }) {
			all = append(all, l)
		}
	}
	return rd.bound(all)
}

// older reads the families of fields, with the policies that draft 06 and earlier put into a
// field of its own.
func (rd *reader) older(policies []Limit) []Limit {
	var all, others []Limit
	families := rd.families()
	for i := range families {
		f := &families[i]
		if f.limit.Size == 0 { // not limited, or not told: what remains of nothing says nothing
			rd.ignored++
			continue
		}
		if f.settle() {
			all = append(all, f.limit)
		}
		others = append(others, f.others...)
	}
	return withPolicies(all, append(others, policies...))
}

// bound drops what is beyond bounds, resets that cannot be true, and limits of which nothing
// is left.
func (rd *reader) bound(all []Limit) []Limit {
	if len(all) > maxLimits {
		rd.ignored += len(all) - maxLimits
		all = all[:maxLimits]
	}
	for i := range all {
		l := &all[i]
		if l.Size == 0 {
			l.Size = unstated
			rd.ignored++
		}
		if l.Window > 0 && l.ResetIn > l.Window+2*time.Second { // a window is over after its length
			l.ResetIn = store.NotStated
			rd.ignored++
		}
	}
	return slices.DeleteFunc(all, func(l Limit) bool { return l.Size < 0 && l.Remaining < 0 && l.ResetIn < 0 })
}

// verdictOf tells what a status means. An answer that is not about the quota, a 401 or a 404
// too, proves that the limits let the request pass.
func verdictOf(r *Response, rd *reader, limits []Limit) store.Verdict {
	hinted := rd.hinted()
	switch s := r.Status; {
	case s < 200 || s > 599:
		return store.VerdictNone
	case s == 429:
		return refusal(rd, limits)
	case s == 402 && hinted: // credits that come back by themselves
		return store.VerdictExhausted
	case s == 402:
		return store.VerdictBilling
	case s == 403 && (hinted || limited(r.Body, limits)):
		return refusal(rd, limits)
	case s == 503 || s == 529:
		return store.VerdictOverloaded
	case s == 501 || s == 505: // will not work the next time either
		return store.VerdictOK
	case s == 408 || s >= 500:
		return store.VerdictError
	}
	return store.VerdictOK
}

// refusal tells a busy limit from a quota that is gone for long. A Retry-After overrules
// resets, and with it nothing needs to be guessed.
func refusal(rd *reader, limits []Limit) store.Verdict {
	if rd.hinted() {
		return store.VerdictThrottled
	}
	if l := binding(limits); l != nil && l.Remaining == 0 && max(l.ResetIn, l.Window) >= longReset && l.ResetIn > 0 {
		return store.VerdictExhausted
	}
	return store.VerdictThrottled
}

// confirm tells a long hint that the answer proves from one that has to be believed: a quota with nothing left
// comes back when the hint says. Nobody need test that pause.
func (o *Observation) confirm() {
	if o.Verdict != store.VerdictThrottled || !o.Hinted || o.RetryAfter < longReset {
		return
	}
	if l := binding(o.Limits); l != nil && l.Remaining == 0 && l.ResetIn >= o.RetryAfter-resetSlop {
		o.Verdict = store.VerdictExhausted
	}
}

// resetSlop is how far two statements of the same moment may be apart: both are rounded.
const resetSlop = 2 * time.Second

// limited reports a refusal because of a limit that does not have the status of one. The last
// request of a window may be refused for another reason: then its body says so.
func limited(body []byte, limits []Limit) bool {
	if mentions(body, "rate limit", "rate-limit", "rate_limit", "ratelimit", "too many requests", "throttl") {
		return true
	}
	l := binding(limits)
	return len(body) == 0 && l != nil && l.Remaining == 0
}

// binding is the limit that an answer was refused for: of those with nothing left the one that
// takes longest to come back, else the only one there is if it does not say what is left.
func binding(limits []Limit) *Limit {
	var found *Limit
	for i := range limits {
		if l := &limits[i]; l.Remaining == 0 && (found == nil || l.ResetIn > found.ResetIn) {
			found = l
		}
	}
	if found == nil && len(limits) == 1 && limits[0].Remaining < 0 {
		found = &limits[0]
	}
	return found
}

// explain fills in how long to wait and why, where something was refused or failed.
func (o *Observation) explain(status int, rd *reader) {
	switch o.Verdict {
	case store.VerdictNone, store.VerdictOK:
		return
	}
	o.Cause = "status " + strconv.Itoa(status)
	defer o.confirm()
	if o.RetryAfter, o.Hinted = rd.hint(); o.Hinted {
		return
	}
	o.RetryAfter = 0
	if o.Verdict != store.VerdictThrottled && o.Verdict != store.VerdictExhausted {
		return
	}
	if l := binding(o.Limits); l != nil && l.ResetIn > 0 {
		o.RetryAfter, o.Hinted = l.ResetIn, true
		if l.Name != "" {
			o.Cause += ": " + l.Name
		}
	}
}

// mentions reports whether the beginning of a body has one of some words, which are in lower
// case.
func mentions(body []byte, words ...string) bool {
	body = bytes.ToLower(body[:min(len(body), MaxBody)])
	for _, w := range words {
		if bytes.Contains(body, []byte(w)) {
			return true
		}
	}
	return false
}
