package show

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	now := time.Date(2026, 11, 16, 14, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	const h = time.Hour
	for _, tt := range []struct {
		of          string
		length      time.Duration
		used        int64
		reset, gone *time.Time
		want        string
	}{
		{"", 5 * h, 420_000, at(72 * time.Minute), at(100 * time.Minute), "5 h window 42% used, resets in 1 h 12 min, at this rate empty at 15:40"},
		{"", 5 * h, 10_000, at(72 * time.Minute), nil, "5 h window 1% used, resets in 1 h 12 min, at this rate it lasts"},
		{"", 5 * h, 1_000_000, at(30 * time.Second), nil, "5 h window used up, resets in 1 min"},
		{"sonnet", 168 * h, 990_000, at(49 * h), at(25 * h), "7-day window of sonnet 99% used, resets in 2 days 1 h, at this rate empty at Tue 15:00"},
		{"", 168 * h, 0, at(48 * h), nil, "7-day window 0% used, resets in 2 days"},
		{"", 5 * h, 0, nil, nil, "5 h window 0% used, reset not known"},
		{"", 5 * h, 1, at(-h), nil, "5 h window 0% used, resets now, at this rate it lasts"},
	} {
		if got := Window(tt.of, tt.length, tt.used, 1_000_000, tt.reset, tt.gone, now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	if got := Window("", 5*h, 0, 0, nil, nil, now); got != "5 h window: how much is used is not known" {
		t.Error(got)
	}
}
