package audit

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }

func TestMostInAWindow(t *testing.T) {
	sent := map[time.Time]int64{at(-13): 5, at(-12): 40, at(-0.5): 50, at(0): 7, at(11.5): 30, at(12): 60}
	for _, c := range []struct {
		quota inspect.Quota
		want  int64
	}{
		{inspect.Quota{Window: time.Second}, 60},
		{inspect.Quota{Window: time.Minute}, 60},
		{inspect.Quota{Window: time.Hour}, 90},
		{inspect.Quota{Window: 24 * time.Hour}, 147},                    // from half an hour before noon on
		{inspect.Quota{Window: 24 * time.Hour, Reset: at(12)}, 127},     // two resets are midnight
		{inspect.Quota{Window: 24 * time.Hour, Reset: at(10 * 24)}, 97}, // at noon: 7, 30 and 60 are of one day
		{inspect.Quota{Window: 24 * time.Hour, Reset: at(-24)}, 97},
	} {
		if got := Most(sent, &c.quota); got != c.want {
			t.Errorf("%+v: %d, want %d", c.quota, got, c.want)
		}
	}
	if got := Most(nil, &inspect.Quota{Window: time.Hour}); got != 0 {
		t.Error(got)
	}
}

// One send of a hundred a day is no contention, although a minute's part of the quota is less than one.
func TestLongWindowsAreJudgedOverTheirLength(t *testing.T) {
	caller := func(minutes map[time.Time]int64) inspect.CallerReport {
		c := inspect.NewCallerReport("a")
		c.Minutes = minutes
		for _, n := range minutes {
			c.FirstSends += n
		}
		c.Rates()
		return c
	}
	day, minute := inspect.Quota{PerMin: 100.0 / 1440, Window: 24 * time.Hour}, inspect.Quota{PerMin: 10, Window: time.Minute}
	for _, c := range []struct {
		quotas  []inspect.Quota
		sent    map[time.Time]int64
		ratio   float64
		verdict string
		quota   float64
	}{
		{[]inspect.Quota{day}, map[time.Time]int64{at(0): 1}, 0.01, policy.VerdictOK, day.PerMin},
		{[]inspect.Quota{day}, map[time.Time]int64{at(0): 45, at(5): 45}, 0.9, policy.VerdictContention, day.PerMin},
		{[]inspect.Quota{day, minute}, map[time.Time]int64{at(0): 9}, 0.9, policy.VerdictContention, 10},
		{[]inspect.Quota{day, minute}, nil, 0, policy.VerdictOK, day.PerMin},
		{nil, map[time.Time]int64{at(0): 9}, 0, policy.VerdictUnknown, 0},
	} {
		d := inspect.ResourceDiagnosis{Quotas: c.quotas}
		Weigh(&d, []inspect.CallerReport{caller(c.sent), inspect.NewCallerReport("only reports")})
		if diff := d.Ratio - c.ratio; diff > 1e-9 || diff < -1e-9 || d.Verdict != c.verdict || d.QuotaPerMin != c.quota || len(d.Callers) != min(len(c.sent), 1) {
			t.Errorf("%+v %v: ratio %v %s, quota %v, callers %d", c.quotas, c.sent, d.Ratio, d.Verdict, d.QuotaPerMin, len(d.Callers))
		}
	}
}
