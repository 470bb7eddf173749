package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// since is a flag for the beginning of a period: a time before now, such as 24h or 7d, a moment in RFC 3339, or a day.
type since struct {
	text string
	ago  time.Duration
	at   time.Time // zero means that ago counts
}

const (
	day      = 24 * time.Hour
	maxSince = 10 * 366 * day
)

var errSince = errors.New("it has to be a time such as 90m, 24h or 7d, or a moment such as 2026-01-31 or 2026-01-31T08:00:00Z")

// Set implements pflag.Value.
func (s *since) Set(text string) error {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			*s = since{text: text, at: at.UTC()}
			return nil
		}
	}
	ago, err := parseAgo(text)
	if err != nil || ago <= 0 || ago > maxSince {
		return errSince
	}
	*s = since{text: text, ago: ago}
	return nil
}

// parseAgo parses a duration, with days and weeks in addition to Go's units.
func parseAgo(text string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			return time.Duration(n) * unit, err
		}
	}
	return time.ParseDuration(text)
}

func (s *since) String() string { return s.text }

// Type implements pflag.Value.
func (*since) Type() string { return "TIME" }

// moment returns when the period begins.
func (s *since) moment(now time.Time) time.Time {
	if !s.at.IsZero() {
		return s.at
	}
	return now.Add(-s.ago).UTC()
}

// lastDay and lastWeek are the defaults of the flag.
func lastDay() since  { return since{text: "24h", ago: day} }
func lastWeek() since { return since{text: "7d", ago: 7 * day} }
