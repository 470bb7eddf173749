package show

import (
	"fmt"
	"strings"
	"time"
)

// Window describes a subscription's window in a sentence: "5 h window 42% used, resets in 1 h 12 min, at this rate
// empty at 15:40". of names the models that the window counts; empty means all.
func Window(of string, length time.Duration, used, size int64, reset, gone *time.Time, now time.Time) string {
	text := strings.Replace(words(length), " days", "-day", 1) + " window"
	if of != "" {
		text += " of " + of
	}
	switch {
	case size <= 0:
		return text + ": how much is used is not known"
	case used >= size:
		text += " used up"
	default:
		text += fmt.Sprintf(" %d%% used", used*100/size)
	}
	if reset == nil {
		return text + ", reset not known"
	}
	if left := reset.Sub(now); left > 0 {
		text += ", resets in " + words(left)
	} else {
		text += ", resets now"
	}
	switch {
	case used >= size || used == 0:
	case gone == nil:
		text += ", at this rate it lasts"
	default:
		text += ", at this rate empty at " + day(*gone, now)
	}
	return text
}

// words formats a duration in words, to the minute.
func words(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "1 min"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return two(int64(d/time.Hour), "h", int64(d%time.Hour/time.Minute), "min")
	}
	return two(int64(d/(24*time.Hour)), "days", int64(d%(24*time.Hour)/time.Hour), "h")
}

func two(n int64, unit string, m int64, part string) string {
	if m == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, m, part)
}

// day formats a time of day, with the weekday if it is another day.
func day(t, now time.Time) string {
	t = t.In(now.Location())
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("Mon 15:04")
}
