package retry

import (
	"strconv"
	"strings"
	"time"
)

// maxHintText is longer than any sensible Retry-After. Longer values are not parsed.
const maxHintText = 64

// The three forms of an HTTP date. A sender may only write the first; old servers
// write the others.
const (
	imfDate    = "Mon, 02 Jan 2006 15:04:05 GMT"
	rfc850Date = "Monday, 02-Jan-06 15:04:05 GMT"
	ansiDate   = "Mon Jan _2 15:04:05 2006"
)

// ParseRetryAfter parses the value of a Retry-After header: seconds, with or without a fraction, or an HTTP date. It
// returns how long to wait from now, between 0 and [MaxHint], and whether the value is valid. A date that has just
// passed means a wait of 0. Negative numbers, NaN, waits longer than [Implausible] and dates older than [Stale] are not
// valid.
//
// A date is on the server's clock. Pass the Date header of the response as now if there is one: the difference is then
// right even if the two clocks differ.
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
	d := at.Sub(now) // Sub saturates, so a date millennia away is still too far
	if d > Implausible || d < -Stale {
		return 0, false
	}
	return min(max(0, d), MaxHint), true
}

// isDecimal rejects the other forms that ParseFloat accepts: signs, exponents, hexadecimal, underscores, Inf and NaN.
func isDecimal(s string) bool {
	return strings.Trim(s, "0123456789.") == "" && strings.Count(s, ".") <= 1
}

func parseSeconds(s string) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	// Compare before converting: the conversion of a float that does not fit into a Duration is undefined.
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

// inCentury resolves a two-digit year to the latest year with those digits that is at most 50 years after now (RFC
// 9110, section 5.6.7).
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
