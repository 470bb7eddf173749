package replay

import (
	"net/http"
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
	start, ok := o.moment(startFields...)
	if !ok {
		if !o.has(startFields...) {
			r.log.Skipped++
			return nil
		}
		return r.fail("its time is none: write it as 2026-03-04T12:00:00Z or as seconds since 1970")
	}
	s := Send{
		Start: start, End: start, Resource: o.text("resource"), Caller: o.text(callerFields...), User: o.text("user"), Class: o.text("class"), Model: o.text("model"),
		Retry: o.yes("retry"),
	}
	status := o.text(statusFields...)
	if status == "" {
		return r.fail("it has no status: 200, 429 or another one")
	}
	if s.Refused, s.Failed, ok = outcome(status); !ok {
		return r.fail("its status is none: write it as 200 or 429")
	}
	took := time.Duration(0)
	if ms, ok := o.number(milliFields...); ok {
		took = bounded(ms / 1000)
	} else if seconds, ok := o.number(secondFields...); ok {
		took = bounded(seconds)
	} else if end, ok := o.moment(endFields...); ok && end.After(start) {
		took = end.Sub(start)
	}
	if s.End = start.Add(took); o.text("msg") == "request" {
		wait, _ := o.number("wait_ms")
		s.Start, s.End = start.Add(-took), start
		s.Wanted = s.Start.Add(-bounded(wait / 1000))
	}
	s.sizes(o)
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

// bounded converts seconds stated in a log to a duration of at most a day.
func bounded(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), 86400) * float64(time.Second))
}

// sizes reads tokens and money.
func (s *Send) sizes(o object) {
	s.Input, s.Output = o.tokens(inputFields...), o.tokens(outputFields...)
	if s.Input+s.Output == 0 {
		s.Input = o.tokens(tokenFields...)
	}
	if usd, ok := o.number(moneyFields...); ok && usd >= 0 && usd < 1e6 {
		s.USD, s.Priced = usd, usd > 0
	}
}
