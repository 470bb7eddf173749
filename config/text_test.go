package config

import (
	"encoding"
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	type text interface {
		encoding.TextUnmarshaler
		encoding.TextMarshaler
	}
	for _, test := range []struct {
		into    func() text
		reads   map[string]string // as what it is printed
		refuses []string
	}{
		{into: func() text { return new(Duration) },
			reads:   map[string]string{"500ms": "500ms", "2m": "2m", "120s": "2m", "1h": "1h", "90m": "1h30m", "7d": "7d", "24h": "1d", "1.5s": "1.5s", "1h0m1s": "1h0m1s"},
			refuses: []string{"", "5", "1.5", "0s", "0", "-1s", "1w", "d", "1dd", "1d12h", " 1s", "1 s", "99999999999h", "40000d", "Inf", "0x1p4"}},
		{into: func() text { return new(Percent) },
			reads:   map[string]string{"1%": "1%", "40%": "40%", "100%": "100%", "40 %": "40%"},
			refuses: []string{"", "%", "0%", "101%", "-1%", "40", "0.5%", "1e1%", "forty%", "40%%"}},
		{into: func() text { return new(Rate) },
			reads:   map[string]string{"80/min": "80/min", "30/4s": "30/4s", "5000/h": "5000/h", "10_000/day": "10000/day", "7/60m": "7/h", "1/100d": "1/100d", "3/90s": "3/90s", "5/250ms": "5/250ms"},
			refuses: []string{"", "80", "0/min", "80/", "/min", "80/101d", "80/0s", "1.5/min", "80/min/s", "10 usd/day", "99999999999999999999/s"}},
		{into: func() text { return new(Money) },
			reads:   map[string]string{"10 usd/day": "10 usd/day", "10usd/day": "10 usd/day", "0.5 usd/month": "0.5 usd/month", "100 usd": "100 usd", "0.000001 usd": "0.000001 usd", "1000000 usd / day": "1000000 usd/day"},
			refuses: []string{"", "10", "10/day", "usd", "10 eur/day", "0 usd", "-1 usd", "10 usd/week", "10 usd/", "1e3 usd", "0.0000001 usd", "1000000.000001 usd", "1. usd", ".5 usd", "99999999999 usd"}},
		{into: func() text { return new(TimeOfDay) },
			reads:   map[string]string{"00:00 UTC": "00:00 UTC", "23:59 America/Los_Angeles": "23:59 America/Los_Angeles", "06:30 +02:00": "06:30 +02:00"},
			refuses: []string{"", "00:00", "24:00 UTC", "0:00 UTC", "12:60 UTC", "00:00 Local", "00:00 Nowhere", "00:00 +25:00", "00:00 ../../etc/passwd", "midnight"}},
	} {
		for s, want := range test.reads {
			v := test.into()
			if err := v.UnmarshalText([]byte(s)); err != nil {
				t.Errorf("%T: %q: %v", v, s, err)
				continue
			}
			got, _ := v.MarshalText()
			if string(got) != want {
				t.Errorf("%T: %q is printed as %s, want %s", v, s, got, want)
			}
			if err := test.into().UnmarshalText(got); err != nil {
				t.Errorf("%T: %s: %v", v, got, err)
			}
		}
		for _, s := range test.refuses {
			if v := test.into(); v.UnmarshalText([]byte(s)) == nil {
				t.Errorf("%T: %q is taken as %v", v, s, v)
			}
		}
	}
}

func TestNextReset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ resets, now, want string }{
		{"00:00 UTC", "2026-03-04T12:00:00Z", "2026-03-05T00:00:00Z"},
		{"00:00 UTC", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"}, // that one has passed
		{"00:00 UTC", "2026-03-03T23:59:59Z", "2026-03-04T00:00:00Z"},
		{"13:30 UTC", "2026-03-04T12:00:00Z", "2026-03-04T13:30:00Z"},
		{"00:00 UTC", "2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z"},
		{"00:00 -08:00", "2026-03-04T12:00:00Z", "2026-03-05T08:00:00Z"},
		{"00:00 -08:00", "2026-03-04T07:00:00Z", "2026-03-04T08:00:00Z"},
		{"00:00 America/Los_Angeles", "2026-07-04T12:00:00Z", "2026-07-05T07:00:00Z"},
		// In the night in which the clocks go forward there is no 02:30: an hour off for once.
		{"02:30 America/Los_Angeles", "2026-03-08T08:00:00Z", "2026-03-08T09:30:00Z"},
	} {
		var at TimeOfDay
		if err := at.UnmarshalText([]byte(test.resets)); err != nil {
			t.Fatal(err)
		}
		now, _ := time.Parse(time.RFC3339, test.now)
		got, err := at.Next(now)
		if err != nil || got.Format(time.RFC3339) != test.want || !got.After(now) {
			t.Errorf("%s after %s: got %v, %v, want %s", test.resets, test.now, got, err, test.want)
		}
	}
	if _, err := (TimeOfDay{}).Next(noon); err == nil {
		t.Error("no time of day has no next")
	}
}
