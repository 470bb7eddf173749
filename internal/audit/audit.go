// Package audit sets the callers of a resource against its quota.
package audit

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/policy"
)

// agentName matches the names that a configuration allows for agents.
var agentName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// Urgent returns the caller that a higher class may help most: of those that a configuration can name, the one that sends
// least. It is empty if there is none.
func Urgent(d *inspect.ResourceDiagnosis) (name string) {
	least := int64(math.MaxInt64)
	for i := range d.Callers {
		c := &d.Callers[i]
		if n := c.FirstSends + c.Retries; n < least && agentName.MatchString(c.Name) {
			name, least = c.Name, n
		}
	}
	return name
}

// Weigh sets callers against the quota of d that they come closest to. Verdicts and figures of d are of these callers
// afterwards; the result leaves out what is full at this moment. Callers that sent nothing do not count.
func Weigh(d *inspect.ResourceDiagnosis, callers []inspect.CallerReport) policy.Audit {
	d.Callers = []inspect.CallerReport{}
	for i := range callers {
		if c := &callers[i]; c.FirstSends+c.Retries > 0 || c.PeakPerMin > 0 {
			d.Callers = append(d.Callers, *c)
		}
	}
	a := weigh(d.Callers, &inspect.Quota{PerMin: d.QuotaPerMin})
	for i := range d.Quotas {
		q := &d.Quotas[i]
		b := weigh(d.Callers, q)
		if i == 0 || b.Ratio > a.Ratio || b.Ratio == a.Ratio && b.QuotaPerMin < a.QuotaPerMin {
			a, d.Judged = b, *q
		}
	}
	d.Sent, d.Refused = 0, 0
	for i := range d.Callers {
		c := &d.Callers[i]
		d.Sent += c.FirstSends + c.Retries
		d.Refused += c.Throttled
	}
	if policy.ManyRefused(d.Refused, d.Sent) {
		a.Verdict = policy.VerdictContention
	}
	d.QuotaPerMin, d.MeanPerMin, d.PeakPerMin, d.Ratio, d.OneMoreRatio, d.Verdict, d.Fullest = a.QuotaPerMin, a.MeanPerMin, a.PeakPerMin, a.Ratio, a.OneMoreRatio, a.Verdict, ""
	if d.Full > a.Ratio {
		d.Ratio, d.Fullest, d.OneMoreRatio = d.Full, d.FullestNow, max(d.OneMoreRatio, d.Full)
		if a.Verdict != policy.VerdictContention {
			d.Verdict = policy.Judge(d.Ratio, true)
		}
	}
	return a
}

func weigh(callers []inspect.CallerReport, q *inspect.Quota) policy.Audit {
	all := make([]policy.Caller, 0, len(callers))
	for i := range callers {
		c := &callers[i]
		all = append(all, policy.Caller{Name: c.Name, MeanPerMin: c.MeanPerS * 60, PeakPerMin: Peak(c, q)})
	}
	return policy.Weigh(q.PerMin, all)
}

// Peak returns the most that a caller sent in one window of a quota, per minute. A window shorter than a minute counts
// by the busiest minute, because sends are recorded by minutes.
func Peak(c *inspect.CallerReport, q *inspect.Quota) float64 {
	if q.Window <= time.Minute {
		return float64(c.PeakPerMin)
	}
	return float64(Most(c.Minutes, q)) / q.Window.Minutes()
}

// Most returns the most sends in one window of a quota. If its resets are known, these are the windows between them;
// otherwise any stretch of time of its length. Windows of less than a minute count as a minute.
func Most(minutes map[time.Time]int64, q *inspect.Quota) (most int64) {
	window := max(q.Window, time.Minute)
	if !q.Reset.IsZero() {
		sums := map[int64]int64{}
		for start, n := range minutes {
			since := start.Sub(q.Reset)
			at := int64(since / window) // a minute belongs to the window that it begins in
			if since%window < 0 {
				at--
			}
			sums[at] += n
			most = max(most, sums[at])
		}
		return most
	}
	starts := slices.SortedFunc(maps.Keys(minutes), time.Time.Compare)
	first, sum := 0, int64(0)
	for _, start := range starts {
		sum += minutes[start]
		for start.Sub(starts[first]) >= window {
			sum -= minutes[starts[first]]
			first++
		}
		most = max(most, sum)
	}
	return most
}
