package policy

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	three := []Caller{{"a", 5, 20}, {"b", 10, 25}, {"c", 1, 15}}
	for _, c := range []struct {
		name    string
		quota   float64
		callers []Caller
		want    Audit
	}{
		{"below", 100, three, Audit{100, 16, 60, 0.6, 0.8, "ok"}},
		{"at 80%", 75, three, Audit{75, 16, 60, 0.8, 80.0 / 75, "contention"}},
		{"above", 40, three, Audit{40, 16, 60, 1.5, 2, "contention"}},
		{"not known", 0, three, Audit{0, 16, 60, 0, 0, "unknown"}},
		{"nonsense", -3, three, Audit{0, 16, 60, 0, 0, "unknown"}},
		{"nobody", 80, nil, Audit{80, 0, 0, 0, 0, "ok"}},
		{"figures that are none", 10, []Caller{{"a", math.NaN(), math.Inf(1)}, {"b", -1, 2}}, Audit{10, 0, 2, 0.2, 0.3, "ok"}},
	} {
		if got := Weigh(c.quota, c.callers); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAuditIsAlwaysInNumbers(t *testing.T) {
	t.Parallel()
	odd := []float64{0, -1, 5e-324, 1, 1e9, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom(odd)
		var callers []Caller
		for range rapid.IntRange(0, 5).Draw(t, "callers") {
			callers = append(callers, Caller{MeanPerMin: draw.Draw(t, "mean"), PeakPerMin: draw.Draw(t, "peak")})
		}
		a := Weigh(draw.Draw(t, "quota"), callers)
		for _, x := range []float64{a.QuotaPerMin, a.MeanPerMin, a.PeakPerMin, a.Ratio, a.OneMoreRatio} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Fatalf("%+v", a)
			}
		}
		if (a.Verdict == VerdictContention) != (a.Ratio >= 0.8) || a.OneMoreRatio < a.Ratio {
			t.Fatalf("%+v", a)
		}
	})
}
