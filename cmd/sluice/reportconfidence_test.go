package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

// The intervals match the textbooks, and a few requests lead to no claim.
func TestConfidenceOfChanges(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.0005 }
	// Newcombe (1998), table II: 56 of 70 against 48 of 80, difference 0.2 within 0.0524 and 0.3339.
	j := proportions("x", 48, 80, 56, 70)
	if !near(j.Change.Value, 0.2) || !near(j.Change.Low, 0.0524) || !near(j.Change.High, 0.3339) || j.Verdict != "higher" {
		t.Errorf("%+v", j)
	}
	// Wilson's interval for none of 10 is 0 to 0.2775.
	if i := proportion(0, 10); i.Low != 0 || !near(i.High, 0.2775) {
		t.Errorf("%+v", i)
	}
	if i := proportion(0, 0); i.Low != 0 || i.High != 1 {
		t.Errorf("%+v", i)
	}
	for _, c := range []struct {
		name                   string
		k1, n1, k2, n2         int64
		took1, took2           *spread
		refused, retried, took string
	}{
		{"many", 90, 400, 0, 220, &spread{400, 2, 1}, &spread{220, 1, 1}, "lower", "lower", "lower"},
		{"the other way", 0, 220, 90, 400, &spread{220, 1, 1}, &spread{400, 2, 1}, "higher", "higher", "higher"},
		{"chance", 10, 400, 4, 220, &spread{400, 2, 10}, &spread{220, 1.9, 10}, "unclear", "unclear", "unclear"},
		{"few", 20, 25, 0, 500, &spread{25, 9, 1}, &spread{500, 1, 1}, tooFew, tooFew, tooFew},
		{"no event log", 90, 400, 0, 220, nil, nil, "lower", "lower", tooFew},
	} {
		before := &callerReport{CallerReport: inspect.CallerReport{FirstSends: c.n1 - c.k1, Retries: c.k1, Throttled: c.k1}, Took: c.took1}
		after := &callerReport{CallerReport: inspect.CallerReport{FirstSends: c.n2 - c.k2, Retries: c.k2, Throttled: c.k2}, Took: c.took2}
		list := confidence(before, after)
		for i, want := range []string{c.refused, c.retried, c.took} {
			if list[i].Verdict != want || verdicts[want] == "" {
				t.Errorf("%s: %s is %s, want %s: %+v", c.name, list[i].Figure, list[i].Verdict, want, list[i])
			}
		}
	}
	if len(confidence(nil, &callerReport{})) != 0 {
		t.Error("something is said of a resource that was not there")
	}
	// The standard deviation of 1, 2, 3 and 4 is 1.29.
	if s := spreadOf(4, 10, 30); s.MeanS != 2.5 || !near(s.SDS, 1.2910) {
		t.Errorf("%+v", s)
	}
}

// Runs of 6 and 22 seconds were equal, because both were counted in whole minutes.
func TestComparisonOfShortRuns(t *testing.T) {
	t.Parallel()
	run := func(took time.Duration, logged int64) *reportJSON {
		c := inspect.CallerReport{FirstSends: 60, MeanPerS: 0.5, Logged: logged, First: noon, Last: noon.Add(took)}
		return &reportJSON{Since: noon, Resources: []resourceReportJSON{{Name: "api", Total: withMoney(c)}}}
	}
	got := compare(run(6*time.Second, 60), run(22*time.Second, 60), nil)[0]
	if b, a := got.Before, got.After; b.ByMinute || b.TookS != 6 || b.MeanPerS != 10 || a.TookS != 22 {
		t.Errorf("%+v, %+v", b, a)
	}
	text := drawn(show.Style{}, 0, func(s *screen) { s.comparisons([]comparison{got}) })
	if !strings.Contains(text, "from first to last send") || !strings.Contains(text, "no difference") || strings.Contains(text, "chance explains") {
		t.Error(text)
	}
	got = compare(run(6*time.Second, 59), run(22*time.Second, 60), nil)[0] // the log misses one
	if b, a := got.Before, got.After; !a.ByMinute || b.TookS != 120 || a.TookS != 120 {
		t.Errorf("%+v, %+v", b, a)
	}
	if text := drawn(show.Style{}, 0, func(s *screen) { s.comparisons([]comparison{got}) }); !strings.Contains(text, "from first to last minute") {
		t.Error(text)
	}
}

func TestConclusionIfNoStrategyFinishes(t *testing.T) {
	t.Parallel()
	rows := []sim.Figures{{Name: gate, Calls: 10, Finished: 4}, {Name: "none", Calls: 10, Finished: 3}}
	if got := conclusion(rows); !strings.Contains(got, " No strategy finished them all.") {
		t.Error(got)
	}
	rows[0].Finished = 10
	if got := conclusion(rows); !strings.Contains(got, " No other strategy finished them all.") {
		t.Error(got)
	}
}
