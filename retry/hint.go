package retry

import (
	"strconv"
	"strings"
	"time"
)

// maxHintText is longer than any sensible Retry-After; past it nothing is parsed.
const maxHintText = 64

// The three forms of an HTTP date. A sender may only write the first; old servers
// write the others.
const (
	imfDate    = "Mon, 02 Jan 2006 15:04:05 GMT"
	rfc850Date = "Monday, 02-Jan-06 15:04:05 GMT"
	ansiDate   = "Mon Jan _2 15:04:05 2006"
)

// ParseRetryAfter reads the value of a Retry-After header: seconds, with or without
// a fraction, or an HTTP date. It returns how long to wait from now, between 0
// and [MaxHint], and whether the value made sense. A date that has just passed is a
// wait of 0. Negative numbers, NaN, waits of more than [Implausible] and dates before
// [Stale] are no hint at all.
//
// A date is on the server's clock: pass the response's own Date as now where it
// has one, and the difference is right even if the two clocks are not.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > maxHintText {
		return 0, false
	}
	if isDecimal(value) {
		return parseSeconds(value)
	}
	at, ok := parseDate(value, now)
	if !ok {
		return 0, false
	}
	d := at.Sub(now) // it saturates: a date millennia away is still too far
	if d > Implausible || d < -Stale {
		return 0, false
	}
	return min(max(0, d), MaxHint), true
}

// isDecimal keeps out what ParseFloat takes besides plain numbers: signs,
// exponents, hexadecimal, underscores, Inf and NaN.
func isDecimal(s string) bool {
	return strings.Trim(s, "0123456789.") == "" && strings.Count(s, ".") <= 1
}

func parseSeconds(s string) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	// Compared before the conversion: a float that no Duration can hold converts
	// to anything.
	if seconds > Implausible.Seconds() {
		return 0, false
	}
	return min(time.Duration(seconds*float64(time.Second)), MaxHint), true
}

func parseDate(s string, now time.Time) (time.Time, bool) {
	for _, layout := range [...]string{imfDate, ansiDate} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, true
		}
	}
	at, err := time.Parse(rfc850Date, s)
	if err != nil {
		return time.Time{}, false
	}
	return inCentury(at, now), true
}

// inCentury settles a two-digit year: the latest year with those digits that is
// not more than 50 years after now (RFC 9110, section 5.6.7).
func inCentury(at, now time.Time) time.Time {
	horizon := now.UTC().AddDate(50, 0, 0)
	year := horizon.Year() - horizon.Year()%100 + at.Year()%100
	guess := withYear(at, year)
	if guess.After(horizon) {
		guess = withYear(at, year-100)
	}
	return guess
}

func withYear(t time.Time, year int) time.Time {
	return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
