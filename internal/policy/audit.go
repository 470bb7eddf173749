package policy

import "math"

// Verdicts of an audit.
const (
	VerdictOK         = "ok"
	VerdictContention = "contention"
	VerdictUnknown    = "unknown" // there is no quota to compare with
)

// contentionFrom is the ratio to the quota from which callers compete.
const contentionFrom = 0.8

// Refusals show contention from this part of the sends on, and from this number.
const (
	manyRefused  = 0.05
	leastRefused = 5
)

// Caller is what one caller sends.
type Caller struct {
	Name       string
	MeanPerMin float64
	PeakPerMin float64 // in its busiest minute
}

// Audit is the total of all callers of a quota.
type Audit struct {
	QuotaPerMin  float64 // 0: not known
	MeanPerMin   float64
	PeakPerMin   float64 // if the busiest minutes of all coincide
	Ratio        float64 // PeakPerMin divided by the quota; 0 if the quota is not known
	OneMoreRatio float64 // the same with one more average caller
	Verdict      string
}

// ManyRefused reports whether the provider refused so many sends that callers compete, whatever their rates say: a minute
// hides bursts that exceed a shorter window.
func ManyRefused(refused, sent int64) bool {
	return refused >= leastRefused && float64(refused) >= manyRefused*float64(sent)
}

// Weigh compares callers with a quota. A quota that is not positive is unknown. Invalid figures (negative, infinite,
// NaN) count as 0, and no result is infinite.
func Weigh(quotaPerMin float64, callers []Caller) Audit {
	a := Audit{QuotaPerMin: figure(quotaPerMin)}
	a.Verdict = Judge(0, a.QuotaPerMin > 0)
	for _, c := range callers {
		a.MeanPerMin = finite(a.MeanPerMin + figure(c.MeanPerMin))
		a.PeakPerMin = finite(a.PeakPerMin + figure(c.PeakPerMin))
	}
	if a.QuotaPerMin == 0 || len(callers) == 0 {
		return a
	}
	more := finite(a.PeakPerMin + a.PeakPerMin/float64(len(callers)))
	a.Ratio = finite(a.PeakPerMin / a.QuotaPerMin)
	a.OneMoreRatio = finite(more / a.QuotaPerMin)
	a.Verdict = Judge(a.Ratio, true)
	return a
}

// Judge returns the verdict on a ratio to the quota, if the quota is known.
func Judge(ratio float64, known bool) string {
	switch {
	case ratio >= contentionFrom:
		return VerdictContention
	case !known:
		return VerdictUnknown
	}
	return VerdictOK
}

// figure returns x if it can be a rate, else 0.
func figure(x float64) float64 {
	if x > 0 && !math.IsInf(x, 1) {
		return x
	}
	return 0
}

func finite(x float64) float64 { return min(x, math.MaxFloat64) }
