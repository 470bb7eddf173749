// Package audit sets the callers of a resource against its quota.
package audit

import (
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
)

// Weigh sets callers against the quota of d. Verdicts and figures of d are of these callers afterwards; the result leaves out what is full
// at this moment.
func Weigh(d *inspect.ResourceDiagnosis, callers []inspect.CallerReport) policy.Audit {
	d.Callers = append([]inspect.CallerReport{}, callers...)
	all := make([]policy.Caller, 0, len(callers))
	for i := range callers {
		c := &callers[i]
		all = append(all, policy.Caller{Name: c.Name, MeanPerMin: c.MeanPerS * 60, PeakPerMin: float64(c.PeakPerMin)})
	}
	a := policy.Weigh(d.QuotaPerMin, all)
	d.MeanPerMin, d.PeakPerMin, d.Ratio, d.OneMoreRatio, d.Verdict, d.Fullest = a.MeanPerMin, a.PeakPerMin, a.Ratio, a.OneMoreRatio, a.Verdict, ""
	if d.Full > a.Ratio {
		d.Ratio, d.Fullest, d.OneMoreRatio = d.Full, d.FullestNow, max(d.OneMoreRatio, d.Full)
		d.Verdict = policy.Judge(d.Ratio, true)
	}
	return a
}
