package provider

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/retry"
)

// past is how old a stated reset may be. Responses are late and a provider's clocks differ, but a reset of yesterday
// is a mistake.
const past = retry.Stale

// longestTime bounds the text of a time or a duration.
const longestTime = 40

// httpDates are the three forms of an HTTP date.
var httpDates = [...]string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	"Monday, 02-Jan-06 15:04:05 GMT",
	"Mon Jan _2 15:04:05 2006",
}

// isoDates are the forms of ISO 8601 that providers write. A time without a zone is UTC.
var isoDates = [...]string{
	time.RFC3339Nano,
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 UTC",
	"2006-01-02 15:04:05",
}

// parseDate reads an HTTP date.
func parseDate(s string) (time.Time, bool) { return parseLayouts(s, httpDates[:]) }

func parseLayouts(s string, layouts []string) (time.Time, bool) {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// parseReset reads when a limit comes back, in any common form: seconds from now, seconds or milliseconds since
// 1970, a duration with units, an HTTP date or an ISO date. base is when the response was made. The result is
// between 0 and MaxReset.
func parseReset(s string, base time.Time) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > longestTime || s[0] == '-' || s[0] == '+' {
		return 0, false
	}
	if isDecimal(s) {
		return resetNumber(s, base)
	}
	if d, ok := parseSpan(s); ok {
		return inRange(d)
	}
	if at, ok := parseLayouts(s, isoDates[:]); ok {
		return until(at, base)
	}
	if at, ok := parseDate(s); ok {
		return until(at, base)
	}
	return 0, false
}

// resetNumber distinguishes a time from a number of seconds by its size: a time is near the time of the response, in
// seconds or in milliseconds. Decades lie between the longest delay and the nearest time, so no number is both.
func resetNumber(s string, base time.Time) (time.Duration, bool) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	if n <= MaxReset.Seconds() {
		return seconds(n), true
	}
	for _, perSecond := range [...]float64{1, 1e3} {
		whole, part := math.Modf(n / perSecond)
		if whole > math.MaxInt32*2 {
			continue
		}
		if d, ok := until(time.Unix(int64(whole), int64(part*1e9)), base); ok {
			return d, true
		}
	}
	return 0, false
}

// until returns the time from base to at. It returns 0 if at has just passed.
func until(at, base time.Time) (time.Duration, bool) {
	d := at.Sub(base)
	if d < -past {
		return 0, false
	}
	return inRange(max(d, 0))
}

func inRange(d time.Duration) (time.Duration, bool) {
	if d < 0 || d > MaxReset {
		return 0, false
	}
	return d, true
}

// parseSpan reads a duration with units, such as 6m0s, 7.66s, 120ms or 1d2h.
func parseSpan(s string) (time.Duration, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	var days time.Duration
	if n, rest, ok := strings.Cut(s, "d"); ok {
		count, err := strconv.Atoi(n)
		if err != nil || count > int(MaxReset/(24*time.Hour)) {
			return 0, false
		}
		if days = time.Duration(count) * 24 * time.Hour; rest == "" {
			return days, true
		}
		s = rest
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, false
	}
	return inRange(days + min(max(d, -1), MaxReset+1))
}

// parseDelay reads a number of seconds, with or without a fraction, and nothing else.
func parseDelay(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if len(s) > longestTime || !isDecimal(s) {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n > MaxReset.Seconds() {
		return 0, false
	}
	return seconds(n), true
}

// seconds converts a number that is known to be in range. It rounds to milliseconds, which is precise enough and
// removes the noise of a float.
func seconds(n float64) time.Duration {
	return time.Duration(math.Round(n*1e3)) * time.Millisecond
}

// isDecimal accepts only plain decimal numbers. ParseFloat accepts more.
func isDecimal(s string) bool {
	return s != "" && s != "." && strings.Trim(s, "0123456789.") == "" && strings.Count(s, ".") <= 1
}
