package provider

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// vendor is a dialect defined as data. All vendors are read in the same way; the fields say what is specific to a
// provider.
type vendor struct {
	name    string
	address string
	keys    []string // header fields of a request that hold its key, best first
	places  places   // where its calls are

	// For providers of language models: calls cost tokens.
	models   bool
	reserved bool // see ParsedRequest.Reserved
	larger   bool // see ParsedRequest.Larger
	hides    bool // streamed chat completions do not report their use unless asked
	free     bool // tokens read from a cache count against no limit
	millis   bool // resets that are durations with units state milliseconds: 1s is not rounded

	// part returns what the provider limits separately. model may be empty.
	part func(path, model string) string
	cost func(model string) []sluice.Amount

	fields    []field
	refine    func(rd *reader, all []Limit) []Limit
	rules     []rule
	refused   sluice.Scope // what a refusal proves to be limited, if no rule says so
	overload  sluice.Scope // what is overloaded, if no rule says so
	midnights []int        // hours of the day, in UTC, at which daily quotas may come back
	renewal   bool         // stated waits are too short: renewed waits for the window's renewal instead

	limits  []sluice.Limit
	backoff sluice.Backoff
	refusal refusalForm
}

// field says which limit of the preset some header fields are about.
type field struct {
	about string // the word in the fields' names
	name  string // empty: repeats other fields, ignored
	unit  string
	kind  sluice.Kind
	// window is the window in the preset.
	window time.Duration
}

// Name returns the dialect's name in a configuration.
func (v *vendor) Name() string { return v.name }

// Address returns the base URL of the provider.
func (v *vendor) Address() string { return v.address }

// Observe reads a response.
func (v *vendor) Observe(r *Response, now time.Time) Observation {
	rd := newReader(r, now)
	rd.millis = v.millis
	if rd.cached() && r.Status < 400 {
		return Observation{Ignored: rd.ignored}
	}
	o := Observation{Limits: v.stated(rd)}
	var f failure
	if r.Status >= 400 || len(r.Body) > 0 {
		f = readFailure(r.Body, r.Status >= 400)
		f.reasons(rd)
	}
	status := r.Status
	if status < 300 && f.there && v.models { // a response that begins with an error is an error
		status = f.status()
	}
	o.Verdict = v.verdict(r, status, rd, o.Limits)
	ruled := v.judge(&o, status, &f)
	o.explain(status, rd)
	if ruled != nil && ruled.cause != "" {
		o.Cause = ruled.cause
	}
	v.wait(&o, &f, ruled, rd)
	if ruled != nil && ruled.plan {
		o.usedUp()
	}
	o.unknownModel(r, &f)
	o.Overage = rd.overage
	o.Ignored = rd.ignored
	return o
}

func (v *vendor) verdict(r *Response, status int, rd *reader, limits []Limit) store.Verdict {
	if status == r.Status {
		return verdictOf(r, rd, limits)
	}
	return verdictOf(&Response{Status: status, Body: r.Body}, rd, limits)
}

// judge applies the rules and returns the one that matched, or nil.
func (v *vendor) judge(o *Observation, status int, f *failure) *rule {
	for i := range v.rules {
		if r := &v.rules[i]; r.fits(status, f) {
			o.Verdict, o.Scope = r.verdict, r.scope
			return r
		}
	}
	switch o.Verdict {
	case store.VerdictThrottled, store.VerdictExhausted:
		o.Scope = v.refused
	case store.VerdictOverloaded:
		o.Scope = v.overload
	}
	return nil
}

// wait sets how long to wait from the body and from what is known about the provider.
func (v *vendor) wait(o *Observation, f *failure, ruled *rule, rd *reader) {
	switch o.Verdict {
	case store.VerdictThrottled, store.VerdictExhausted, store.VerdictOverloaded:
	default:
		return
	}
	defer o.confirm()
	if d, ok := f.wait(rd.base); ok && (!o.Hinted || !rd.hinted()) {
		o.RetryAfter, o.Hinted = d, true
	}
	if v.renewal {
		v.renewed(o, rd)
	}
	if ruled != nil && ruled.daily && len(v.midnights) > 0 {
		o.RetryAfter, o.Hinted = max(o.RetryAfter, untilHour(rd.base, v.midnights)), true
	}
}

// renewed waits for the renewal of the window that refused.
func (v *vendor) renewed(o *Observation, rd *reader) {
	about := strings.ToLower(rd.first("x-ratelimit-type"))
	for i := range o.Limits {
		l := &o.Limits[i]
		if l.Name != about {
			continue
		}
		back := l.ResetIn
		if back <= 0 {
			if back = rd.window(rd.first("x-ratelimit-renewalperiod-" + about)); back <= 0 {
				back = l.Window
			}
		}
		if back > o.RetryAfter {
			o.RetryAfter, o.Hinted = back, true
		}
	}
}

// untilHour returns the time to the next of several hours of the day, in UTC. If it is unclear which one applies, a
// request at the first costs less than hours of waiting for the last.
func untilHour(base time.Time, hours []int) time.Duration {
	base = base.UTC()
	next := time.Duration(1<<63 - 1)
	for _, h := range hours {
		at := time.Date(base.Year(), base.Month(), base.Day(), h, 0, 0, 0, time.UTC)
		if !at.After(base) {
			at = at.AddDate(0, 0, 1)
		}
		next = min(next, at.Sub(base))
	}
	return next
}

// within says what an error means that comes after a response has begun well.
func (v *vendor) within(f *failure) Observation {
	status := f.status()
	o := Observation{Verdict: verdictOf(&Response{Status: status}, &reader{}, nil)}
	if status == 0 {
		o.Verdict = store.VerdictError // it failed, and no reason is given
	}
	ruled := v.judge(&o, status, f)
	if o.Verdict == store.VerdictOK { // the request's own fault: it says nothing about limits
		return Observation{}
	}
	o.Cause = "an error within the answer"
	if status != 0 {
		o.Cause += ": status " + strconv.Itoa(status)
	}
	if ruled != nil && ruled.cause != "" {
		o.Cause = ruled.cause
	}
	v.wait(&o, f, ruled, &reader{})
	if ruled != nil && ruled.daily {
		o.RetryAfter, o.Hinted = 0, false // there is no time to count from: the next response will say
	}
	return o
}

// statuses maps error codes without an HTTP status to the status they stand for.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
	"request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
	"rate_limit_exceeded": 429, "insufficient_quota": 429, "server_error": 500, "server_is_overloaded": 503,
	"invalid_argument": 400, "failed_precondition": 400, "unauthenticated": 401, "permission_denied": 403, "not_found": 404,
	"resource_exhausted": 429, "internal": 500, "unavailable": 503, "deadline_exceeded": 504,
	"throttlingexception": 429, "servicequotaexceededexception": 429, "modelstreamerrorexception": 500, "internalserverexception": 500,
	"serviceunavailableexception": 503, "validationexception": 400,
}

// status returns the HTTP status that the error would have had by itself, or 0 if it does not say.
func (f *failure) status() int {
	if f.number != 0 {
		return f.number
	}
	for _, w := range f.words {
		if s, ok := statuses[w]; ok {
			return s
		}
	}
	return 0
}

// reasonFields are the header fields that say which limit refused a request.
var reasonFields = [...]string{"stripe-rate-limited-reason", "ratelimit-reason", "anthropic-ratelimit-unified-status"}

func (f *failure) reasons(rd *reader) {
	for _, name := range reasonFields {
		if s := rd.first(name); s != "" && len(s) <= maxWord {
			f.words = append(f.words, strings.ToLower(s))
		}
	}
}

// stated reads the limits that a response states, under the names of the preset.
func (v *vendor) stated(rd *reader) []Limit {
	all := rd.limits()
	known := all[:0]
	for _, l := range all {
		if f := v.field(l.Name); f != nil {
			if f.name == "" {
				continue
			}
			l.Name, l.Unit, l.Kind, l.Window = f.name, f.unit, f.kind, f.window
		}
		known = tighter(known, l)
	}
	if v.refine != nil {
		known = v.refine(rd, known)
	}
	return known
}

func (v *vendor) field(about string) *field {
	for i := range v.fields {
		if v.fields[i].about == about {
			return &v.fields[i]
		}
	}
	return nil
}

// tighter adds a limit. Of two with the same name, the smaller one stays.
func tighter(all []Limit, l Limit) []Limit {
	for i := range all {
		if all[i].Name == l.Name && all[i].Unit == l.Unit {
			if l.Size >= 0 && (l.Size < all[i].Size || all[i].Size < 0) {
				all[i] = l
			}
			return all
		}
	}
	return append(all, l)
}
