package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Bounds of what a scenario may state.
const (
	maxSize   = 1_000_000_000_000
	maxWindow = 31 * 24 * time.Hour
)

var periods = map[string]time.Duration{
	"ms": time.Millisecond,
	"s":  time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// ParseRate reads an amount per window: 80/min, 500/h, 30/4s, 10000/day.
func ParseRate(s string) (Rate, error) {
	amount, window, ok := strings.Cut(s, "/")
	if !ok {
		return Rate{}, fmt.Errorf("%q is not an amount per window such as 80/min", s)
	}
	n, err := parseAmount(strings.TrimSpace(amount))
	if err != nil {
		return Rate{}, err
	}
	w, err := parseWindow(strings.TrimSpace(window))
	if err != nil {
		return Rate{}, err
	}
	return Rate{N: n, Window: w}, nil
}

// String returns the form that ParseRate reads.
func (r Rate) String() string {
	for _, p := range []struct {
		name string
		len  time.Duration
	}{{"day", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		if r.Window == p.len {
			return fmt.Sprintf("%d/%s", r.N, p.name)
		}
	}
	if r.Window%time.Second == 0 {
		return fmt.Sprintf("%d/%ds", r.N, r.Window/time.Second)
	}
	return fmt.Sprintf("%d/%dms", r.N, r.Window/time.Millisecond)
}

// parseAmount reads a whole number; underscores may group its digits.
func parseAmount(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	if err != nil || n < 1 || n > min(maxSize, store.MaxAmount) {
		return 0, fmt.Errorf("%s is not between 1 and %d", s, int64(maxSize))
	}
	return n, nil
}

// parseWindow reads a number of periods, or one without a number: min, 4s.
func parseWindow(s string) (time.Duration, error) {
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		return 0, fmt.Errorf("%q is not a window such as min, h or 4s", s)
	}
	count := int64(1)
	if digits > 0 {
		var err error
		if count, err = parseAmount(s[:digits]); err != nil {
			return 0, err
		}
	}
	unit, ok := periods[s[digits:]]
	if !ok {
		return 0, fmt.Errorf("%q is not a window such as min, h or 4s", s)
	}
	if count > int64(maxWindow/unit) {
		return 0, fmt.Errorf("a window of %s is longer than %v", s, maxWindow)
	}
	return time.Duration(count) * unit, nil
}
