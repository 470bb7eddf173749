package replay

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Field names that access logs use. docs/replay.md lists them.
var (
	startFields  = []string{"time", "timestamp", "ts", "@timestamp", "start", "start_time"}
	endFields    = []string{"end", "end_time"}
	statusFields = []string{"status", "status_code", "code", "outcome"}
	callerFields = []string{"caller", "agent", "client", "user"}
	inputFields  = []string{"input_tokens", "prompt_tokens"}
	outputFields = []string{"output_tokens", "completion_tokens"}
	tokenFields  = []string{"tokens", "total_tokens"}
	milliFields  = []string{"duration_ms", "latency_ms", "took_ms", "elapsed_ms"}
	secondFields = []string{"duration_s", "duration", "latency", "request_time"}
	moneyFields  = []string{"usd", "cost", "spend"}
)

// access reads an entry of an access log. Its time is when the request was sent, except in the request lines of
// sluice serve, which are written at the end.
func (r *reader) access(o object) error {
	if o.has("msg") && o.text("msg") != "request" {
		r.log.Skipped++ // another kind of line from sluice serve
		return nil
	}
	status := o.text(statusFields...)
	refused, failed, ok := outcome(status)
	if !ok && !o.has(startFields...) {
		r.log.Skipped++ // not a request
		return nil
	}
	start, err := r.start(o, startFields...)
	if err != nil {
		return err
	}
	if status == "" {
		return r.fail("it has no status: add one such as 200 or 429")
	}
	if !ok {
		return r.fail("the status cannot be read: write it as 200 or 429")
	}
	s := Send{
		Start: start, End: start, Resource: o.text("resource"), Caller: o.text(callerFields...), User: o.text("user"), Class: o.text("class"), Model: o.text("model"),
		Refused: refused, Failed: failed, Retry: o.yes("retry"),
	}
	took := time.Duration(0)
	if ms, ok := r.value(o, longest.Seconds()*1000, milliFields...); ok {
		took = duration(ms / 1000)
	} else if seconds, ok := r.value(o, longest.Seconds(), secondFields...); ok {
		took = duration(seconds)
	} else if end, ok := r.after(o, start, endFields...); ok {
		took = end.Sub(start)
	}
	if s.End = start.Add(took); o.text("msg") == "request" {
		wait, _ := r.value(o, longest.Seconds()*1000, "wait_ms")
		s.Start, s.End = start.Add(-took), start
		s.Wanted = s.Start.Add(-duration(wait / 1000))
	}
	r.sizes(&s, o)
	r.add(s)
	return nil
}

// outcome parses a status, which is a number or a word.
func outcome(status string) (refused, failed, ok bool) {
	switch strings.ToLower(status) {
	case "success", "succeeded", "ok", "accepted":
		return false, false, true
	case "throttled", "rate_limited", "rate limited":
		return true, false, true
	case "failure", "failed", "error":
		return false, true, true
	}
	n, err := strconv.Atoi(status)
	if err != nil || n < 0 || n > 999 {
		return false, false, false
	}
	return n == http.StatusTooManyRequests, n != http.StatusTooManyRequests && (n < 200 || n > 399), true
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

const noTime = "it has no %s: add when the request was sent, such as 2026-03-04T12:00:00Z"

// start returns the time of a request.
func (r *reader) start(o object, names ...string) (time.Time, error) {
	at, ok := o.moment(names...)
	switch {
	case !o.has(names...):
		return at, r.fail(noTime, names[0])
	case !ok:
		return at, r.fail("the %s cannot be read: write it as 2026-03-04T12:00:00Z or as seconds since 1970", names[0])
	case !plausible(at):
		return at, r.failAt(r.log.Lines, "correct the time, or remove the request",
			"the %s %s is not between the years %d and %d", names[0], at.Format(time.RFC3339), earliest.Year(), latest.Year())
	}
	return at, nil
}

// after returns the first of the fields that is a time at most a day after start. It counts the others as ignored.
func (r *reader) after(o object, start time.Time, names ...string) (time.Time, bool) {
	for _, name := range names {
		if !o.has(name) {
			continue
		}
		if at, ok := o.moment(name); ok && !at.Before(start) && at.Sub(start) <= longest {
			return at, true
		}
		r.ignore(name)
	}
	return time.Time{}, false
}

// value returns the first of the fields that is a number between 0 and most. It counts the others as ignored.
func (r *reader) value(o object, most float64, names ...string) (float64, bool) {
	for _, name := range names {
		if !o.has(name) {
			continue
		}
		if n, ok := o.number(name); ok && n >= 0 && n <= most {
			return n, true
		}
		r.ignore(name)
	}
	return 0, false
}

// ignore counts a value that cannot be used.
func (r *reader) ignore(field string) {
	all := &r.log.Ignored
	i := slices.IndexFunc(*all, func(one Ignored) bool { return one.Field == field })
	if i < 0 {
		i = len(*all)
		*all = append(*all, Ignored{Field: field, Line: r.log.Lines})
	}
	(*all)[i].Values++
}

// sizes reads tokens and money.
func (r *reader) sizes(s *Send, o object) {
	tokens := func(names ...string) int64 {
		n, _ := r.value(o, maxTokens, names...)
		return int64(n)
	}
	s.Input, s.Output = tokens(inputFields...), tokens(outputFields...)
	if s.Input+s.Output == 0 {
		s.Input = tokens(tokenFields...)
	}
	if usd, ok := r.value(o, maxUSD, moneyFields...); ok {
		s.USD, s.Priced = usd, usd > 0
	}
}
