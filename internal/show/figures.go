package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count formats a number, exactly while it is short.
func Count(n int64) string {
	switch x := math.Abs(float64(n)); {
	case x < 100_000:
		return strconv.FormatInt(n, 10)
	case x < 999_500:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 0, 64) + "k"
	case x < 999.95e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	case x < 999.95e9:
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + "G"
	default:
		return strconv.FormatFloat(float64(n), 'e', 1, 64)
	}
}

// Rate formats an amount per time, with as many digits as are significant.
func Rate(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0) || x <= 0:
		return "0"
	case x < 0.01:
		return "<0.01"
	case x < 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
	}
	return Count(int64(min(math.Round(x), 1e18)))
}

// Percent formats a fraction of one as a percentage.
func Percent(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) || x <= 0 {
		return "0%"
	}
	if x = min(x*100, 1e6); x < 9.95 {
		return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0") + "%"
	}
	return strconv.FormatFloat(math.Round(x), 'f', 0, 64) + "%"
}

// Span formats a duration, in at most two units.
func Span(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	switch {
	case d == 0:
		return "0s"
	case d < 10*time.Millisecond:
		return "<10ms"
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Left formats the time until a moment, in whole seconds; "" if t is nil.
func Left(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	d := t.Sub(now)
	if d <= 0 {
		return "now"
	}
	return Span((d + time.Second - 1).Truncate(time.Second))
}

// Lease shows how long an agent's lease lasts. An agent that only sends requests has none.
func Lease(leased bool, expires *time.Time, now time.Time) Cell {
	if !leased {
		return Cell{Text: "-", Colour: Dim}
	}
	return Cell{Text: Left(expires, now)}
}

// For formats the time until a moment, for a sentence such as "paused for 30s". A past moment gives 0s.
func For(t *time.Time, now time.Time) string {
	if left := Left(t, now); left != "now" {
		return left
	}
	return "0s"
}

// In formats the time until a moment, for a sentence such as "gone in 5s" or "gone now".
func In(t *time.Time, now time.Time) string {
	left := Left(t, now)
	if left == "" || left == "now" {
		return left
	}
	return "in " + left
}

// Some formats a count with its noun, singular or plural.
func Some(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Ago formats how long ago a moment was.
func Ago(t, now time.Time) string {
	if d := now.Sub(t).Truncate(time.Second); d > 0 {
		return Span(d) + " ago"
	}
	return "now"
}

// Clock formats a time of day, with the date if it is another day.
func Clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("Jan 2 15:04:05")
}
