package provider

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Generic is the dialect of providers without a dialect of their own. It reads the IETF's RateLimit fields in all
// drafts, the X-RateLimit fields in all common forms, and Retry-After.
type Generic struct{}

// Name returns "generic".
func (Generic) Name() string { return "generic" }

// Observe reads a response.
func (Generic) Observe(r *Response, now time.Time) Observation {
	rd := newReader(r, now)
	if rd.cached() && r.Status < 400 {
		return Observation{Ignored: rd.ignored} // it never reached the limits, and what it states is old
	}
	o := Observation{Limits: rd.limits()}
	o.Verdict = verdictOf(r, rd, o.Limits)
	o.explain(r.Status, rd)
	if r.Status >= 400 && len(r.Body) > 0 {
		f := readFailure(r.Body, true)
		o.unknownModel(r, &f)
	}
	o.Ignored = rd.ignored
	return o
}

// limits reads all limits that the fields state. If the standard field is present, older fields add only other
// units.
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

// older reads the families of fields, with the policies that draft 06 and earlier put into a separate field.
func (rd *reader) older(policies []Limit) []Limit {
	var all, others []Limit
	families := rd.families()
	for i := range families {
		f := &families[i]
		if f.limit.Size == 0 { // unlimited or unknown: the rest means nothing
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

// bound drops excess limits, impossible resets, and limits without any value.
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
		if l.Window > 0 && l.ResetIn > l.Window+2*time.Second { // a reset is at most one window away
			l.ResetIn = store.NotStated
			rd.ignored++
		}
	}
	return slices.DeleteFunc(all, func(l Limit) bool { return l.Size < 0 && l.Remaining < 0 && l.ResetIn < 0 })
}

// verdictOf says what a status means. A response that is not about the quota, even a 401 or a 404, proves that the
// limits let the request pass.
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
	case s == 501 || s == 505: // will not work next time either
		return store.VerdictOK
	case s == 408 || s >= 500:
		return store.VerdictError
	}
	return store.VerdictOK
}

// refusal distinguishes a busy limit from an exhausted quota. A Retry-After overrides resets, and then nothing needs
// to be guessed.
func refusal(rd *reader, limits []Limit) store.Verdict {
	if rd.hinted() {
		return store.VerdictThrottled
	}
	if l := binding(limits); l != nil && l.Remaining == 0 && max(l.ResetIn, l.Window) >= longReset && l.ResetIn > 0 {
		return store.VerdictExhausted
	}
	return store.VerdictThrottled
}

// confirm marks a long hint as certain if the response proves it: a quota with nothing left comes back when the hint
// says. Such a pause needs no probe.
func (o *Observation) confirm() {
	if o.Verdict != store.VerdictThrottled || !o.Hinted || o.RetryAfter < longReset {
		return
	}
	if l := binding(o.Limits); l != nil && l.Remaining == 0 && l.ResetIn >= o.RetryAfter-resetSlop {
		o.Verdict = store.VerdictExhausted
	}
}

// resetSlop is how far two statements of the same time may differ, because both are rounded.
const resetSlop = 2 * time.Second

// limited reports whether a limit refused the request although the status does not say so. The last request of a
// window may be refused for another reason: then its body says so.
func limited(body []byte, limits []Limit) bool {
	if mentions(body, "rate limit", "rate-limit", "rate_limit", "ratelimit", "too many requests", "throttl") {
		return true
	}
	l := binding(limits)
	return len(body) == 0 && l != nil && l.Remaining == 0
}

// binding returns the limit that refused the request: of those with nothing left, the one that takes longest to come
// back. If there is none, it returns the only limit, provided that it does not state what is left.
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

// explain sets how long to wait and the cause, for a refused or failed request.
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

// mentions reports whether the beginning of a body contains one of the words, which are in lower case.
func mentions(body []byte, words ...string) bool {
	body = bytes.ToLower(body[:min(len(body), MaxBody)])
	for _, w := range words {
		if bytes.Contains(body, []byte(w)) {
			return true
		}
	}
	return false
}
