package retry_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/retry"
)

var now = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"30", 30 * sec, true},
		{" 30\t", 30 * sec, true},
		{"0", 0, true},
		{"0.25", 250 * ms, true},
		{".5", 500 * ms, true},
		{"2.", 2 * sec, true},
		{"00012", 12 * sec, true},
		{"86399", 86399 * sec, true},
		{"86401", retry.MaxHint, true},
		{"2678400", retry.MaxHint, true}, // 31 days

		{"Wed, 04 Mar 2026 12:01:30 GMT", 90 * sec, true},
		{"Wednesday, 04-Mar-26 12:01:30 GMT", 90 * sec, true},
		{"Wed Mar  4 12:01:30 2026", 90 * sec, true},
		{"Wed, 04 Mar 2026 11:59:59 GMT", 0, true},
		{"Tue, 03 Mar 2026 12:00:00 GMT", 0, true},
		{"Fri, 03 Apr 2026 12:00:00 GMT", retry.MaxHint, true},

		// Nobody means that.
		{"2678401", 0, false},
		{"99999999999999999999", 0, false},
		{"99999999999999999999999999999999", 0, false},
		{"1e400", 0, false},
		{"Tue, 03 Mar 2026 11:59:59 GMT", 0, false}, // more than a day ago
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, false},
		{"Sat, 04 Apr 2026 12:00:01 GMT", 0, false}, // more than 31 days ahead
		{"Fri, 31 Dec 9999 23:59:59 GMT", 0, false},
		{"Monday, 02-Mar-76 12:00:00 GMT", 0, false}, // two digits of a year: at most 50 years ahead, else the past
		{"Monday, 02-Mar-77 12:00:00 GMT", 0, false},
		{"Thursday, 31-Dec-99 23:59:59 GMT", 0, false},

		{"", 0, false},
		{" ", 0, false},
		{".", 0, false},
		{"1.2.3", 0, false},
		{"-1", 0, false},
		{"-0", 0, false},
		{"+5", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"1_000", 0, false},
		{"NaN", 0, false},
		{"Inf", 0, false},
		{"-Inf", 0, false},
		{"30s", 0, false},
		{"30, 60", 0, false},
		{"soon", 0, false},
		{"Wed, 04 Mar 2026 12:01:30 CET", 0, false},
		{"Wednesday, 04-Mar-26 12:01:30 EST", 0, false},
		{"2026-03-04T12:01:30Z", 0, false},
		{"Wed, 31 Feb 2026 12:01:30 GMT", 0, false},
		{"000000000000000000000000000000000000000000000000000000000000000000000001", 0, false},
	}
	for _, test := range tests {
		got, ok := retry.ParseRetryAfter(test.value, now)
		if got != test.want || ok != test.ok {
			t.Errorf("%q: got %v, %v; want %v, %v", test.value, got, ok, test.want, test.ok)
		}
	}
}

func TestParseRetryAfterReadsAllDatesAlike(t *testing.T) {
	t.Parallel()
	layouts := []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.ANSIC, "Monday, 02-Jan-06 15:04:05 GMT"}
	rapid.Check(t, func(t *rapid.T) {
		from := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "now"), 0).UTC()
		want := time.Duration(rapid.Int64Range(0, 86400).Draw(t, "seconds")) * time.Second
		for _, layout := range layouts {
			text := from.Add(want).Format(layout)
			if got, ok := retry.ParseRetryAfter(text, from); !ok || got != want {
				t.Fatalf("%q at %v: got %v, %v; want %v", text, from, got, ok, want)
			}
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"30", "0.5", "-1", "NaN", "1e309", "Wed, 04 Mar 2026 12:01:30 GMT",
		"Wednesday, 04-Mar-26 12:01:30 GMT", "Wed Mar  4 12:01:30 2026", ""} {
		f.Add(seed, now.Unix())
	}
	f.Fuzz(func(t *testing.T, value string, at int64) {
		got, ok := retry.ParseRetryAfter(value, time.Unix(at, 0))
		if got < 0 || got > retry.MaxHint {
			t.Errorf("%q: %v is out of bounds", value, got)
		}
		if !ok && got != 0 {
			t.Errorf("%q: refused, yet %v", value, got)
		}
	})
}
