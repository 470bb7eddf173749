package provider

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestResetForms(t *testing.T) {
	const bad = time.Duration(-1)
	for _, tt := range []struct {
		text string
		want time.Duration
	}{
		{"0", 0},
		{"30", 30 * time.Second},
		{" 30 ", 30 * time.Second},
		{"7.66", 7660 * time.Millisecond},
		{"2678400", MaxReset},
		{"2678401", bad},
		{"1794726000", 0},
		{"1794726060", time.Minute},
		{"1794726000.250", 250 * time.Millisecond},
		{"1794725990", 0},
		{"1794726060500", time.Minute + 500*time.Millisecond},
		{"1794726060500000", bad},
		{"1372700873", bad},
		{"4102444800", bad},
		{"1s", time.Second},
		{"6m0s", 6 * time.Minute},
		{"1m30s", 90 * time.Second},
		{"120ms", 120 * time.Millisecond},
		{"23h59m59.5s", 24*time.Hour - 500*time.Millisecond},
		{"1d2h", 26 * time.Hour},
		{"7d", 7 * 24 * time.Hour},
		{"32d", bad},
		{"1000h", bad},
		{"2026-11-15T07:00:05Z", 5 * time.Second},
		{"2026-11-15T07:00:05.5Z", 5500 * time.Millisecond},
		{"2026-11-15T09:00:05+02:00", 5 * time.Second},
		{"2026-11-15T07:00:05.000+0000", 5 * time.Second},
		{"2026-11-15T07:00:05", 5 * time.Second},
		{"2026-11-15 07:00:05 UTC", 5 * time.Second},
		{"2026-11-15 07:00:05 +0000", 5 * time.Second},
		{"2026-11-15T07:01Z", time.Minute},
		{"2026-11-14T06:00:00Z", bad},
		{"2027-11-15T07:00:00Z", bad},
		{"Sun, 15 Nov 2026 07:00:09 GMT", 9 * time.Second},
		{"Sunday, 15-Nov-26 07:00:09 GMT", 9 * time.Second},
		{"Sun Nov 15 07:00:09 2026", 9 * time.Second},
		{"", bad}, {".", bad}, {"-5", bad}, {"+5", bad}, {"1e3", bad}, {"0x10", bad}, {"NaN", bad}, {"Inf", bad}, {"1_000", bad},
		{"1.2.3", bad}, {"soon", bad}, {"-5s", bad}, {"5 s", bad}, {"99999999999999999999999999999999999999999999", bad},
	} {
		got, ok := parseReset(tt.text, made)
		if ok != (tt.want != bad) || ok && got != tt.want {
			t.Errorf("%q: %v, %v; want %v", tt.text, got, ok, tt.want)
		}
	}
}

func TestEveryFormOfAResetMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Unix(rapid.Int64Range(1_000_000_000, 4_000_000_000).Draw(t, "base"), 0).UTC()
		want := time.Duration(rapid.Int64Range(0, int64(MaxReset/time.Second)).Draw(t, "seconds")) * time.Second
		at := base.Add(want)
		for _, text := range []string{
			strconv.FormatInt(int64(want/time.Second), 10),
			strconv.FormatInt(at.Unix(), 10),
			strconv.FormatInt(at.UnixMilli(), 10),
			want.String(),
			at.Format(time.RFC3339),
			at.Format(httpDates[0]),
			at.Format(httpDates[2]),
		} {
			if got, ok := parseReset(text, base); !ok || got != want {
				t.Fatalf("%q from %v: %v, %v; want %v", text, base, got, ok, want)
			}
		}
	})
}
