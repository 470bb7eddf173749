package strictyaml

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

var periods = map[string]time.Duration{
	"ms": time.Millisecond,
	"s":  time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": day, "day": day,
}

// Bounds are the limits for an amount per window.
type Bounds struct {
	Amount int64
	Window time.Duration
}

// Rate reads an amount per window: 80/min, 500/h, 30/4s, 10000/day.
func (b Bounds) Rate(s string) (int64, time.Duration, error) {
	amount, window, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, fmt.Errorf("%.80q is not an amount per window such as 80/min", s)
	}
	n, err := b.amount(strings.TrimSpace(amount))
	if err != nil {
		return 0, 0, err
	}
	w, err := b.window(strings.TrimSpace(window))
	if err != nil {
		return 0, 0, err
	}
	return n, w, nil
}

// FormatRate returns a rate in the form that [Bounds.Rate] reads.
func FormatRate(n int64, window time.Duration) string {
	for _, p := range []struct {
		one, many string
		len       time.Duration
	}{{"day", "d", day}, {"h", "h", time.Hour}, {"min", "min", time.Minute}, {"s", "s", time.Second}} {
		switch {
		case window == p.len:
			return fmt.Sprintf("%d/%s", n, p.one)
		case window%p.len == 0:
			return fmt.Sprintf("%d/%d%s", n, window/p.len, p.many)
		}
	}
	return fmt.Sprintf("%d/%dms", n, window/time.Millisecond)
}

// amount reads a whole number. Underscores may group its digits.
func (b Bounds) amount(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%.80q is not a whole number", s)
	}
	if err != nil || n < 1 || n > b.Amount {
		return 0, fmt.Errorf("%.80s is not between 1 and %d", s, b.Amount)
	}
	return n, nil
}

// window reads a number of periods, or one period without a number: min, 4s.
func (b Bounds) window(s string) (time.Duration, error) {
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		return 0, fmt.Errorf("%.80q is not a window such as min, h or 4s", s)
	}
	count := int64(1)
	if digits > 0 {
		var err error
		if count, err = b.amount(s[:digits]); err != nil {
			return 0, err
		}
	}
	unit, ok := periods[s[digits:]]
	if !ok {
		return 0, fmt.Errorf("%.80q is not a window such as min, h or 4s", s)
	}
	if count > int64(b.Window/unit) {
		return 0, fmt.Errorf("a window of %.80s is longer than %s", s, FormatDuration(b.Window))
	}
	return time.Duration(count) * unit, nil
}

// ParseDuration reads a duration such as 250ms, 1h30m or 7d.
func ParseDuration(s string) (time.Duration, error) {
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		if err == nil && n >= 0 && rest == "" {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a time such as 250ms, 30s or 10m", s)
	}
	return d, nil
}

// FormatDuration returns the shortest form that [ParseDuration] reads.
func FormatDuration(d time.Duration) string {
	if d != 0 && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
