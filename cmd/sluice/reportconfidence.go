package main

import (
	"fmt"
	"math"

	"github.com/sluicehq/sluice/internal/show"
)

// judgement says how certain a change is.
type judgement struct {
	Figure string `json:"figure"` // throttled_rate, retry_share or answer_s
	// Before and After are estimates with their 95% intervals. Change is after minus before.
	Before interval `json:"before"`
	After  interval `json:"after"`
	Change interval `json:"change"`
	// Verdict is lower, higher, unclear (chance explains the change), or too_few.
	Verdict string `json:"verdict"`
}

// interval is an estimate with its 95% confidence interval.
type interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// fewRequests is how many requests each side needs for a judgement.
const fewRequests = 30

// z95 is the 97.5th percentile of the normal distribution: both sides together leave out 5%.
const z95 = 1.959963984540054

// proportion returns Wilson's interval for k of n, which is also right for few and for none, where the usual interval
// is not.
func proportion(k, n int64) interval {
	if n <= 0 {
		return interval{High: 1}
	}
	k = min(max(k, 0), n)
	p, m := float64(k)/float64(n), float64(n)
	middle := (p + z95*z95/(2*m)) / (1 + z95*z95/m)
	half := z95 / (1 + z95*z95/m) * math.Sqrt(p*(1-p)/m+z95*z95/(4*m*m))
	return interval{Value: p, Low: max(middle-half, 0), High: min(middle+half, 1)}
}

// proportions compares two proportions, with Newcombe's interval for the difference.
func proportions(figure string, k1, n1, k2, n2 int64) judgement {
	j := judgement{Figure: figure, Before: proportion(k1, n1), After: proportion(k2, n2)}
	d := j.After.Value - j.Before.Value
	j.Change = interval{
		Value: d,
		Low:   d - math.Hypot(j.After.Value-j.After.Low, j.Before.High-j.Before.Value),
		High:  d + math.Hypot(j.After.High-j.After.Value, j.Before.Value-j.Before.Low),
	}
	return j.judged(min(n1, n2))
}

// mean returns an average with its interval, and the squared standard error.
func mean(s *spread) (i interval, squared float64) {
	n := float64(s.N)
	squared = s.SDS * s.SDS / n
	half := z95 * math.Sqrt(squared)
	return interval{Value: s.MeanS, Low: max(s.MeanS-half, 0), High: s.MeanS + half}, squared
}

// means compares two averages. With fewRequests or more values they are about normally distributed.
func means(figure string, before, after *spread) judgement {
	j := judgement{Figure: figure}
	if before == nil || after == nil || before.N == 0 || after.N == 0 {
		j.Verdict = tooFew
		return j
	}
	var b, a float64
	j.Before, b = mean(before)
	j.After, a = mean(after)
	d, half := j.After.Value-j.Before.Value, z95*math.Sqrt(a+b)
	j.Change = interval{Value: d, Low: d - half, High: d + half}
	return j.judged(min(before.N, after.N))
}

const tooFew = "too_few"

func (j judgement) judged(n int64) judgement {
	switch {
	case n < fewRequests:
		j.Verdict = tooFew
	case j.Change.High < 0:
		j.Verdict = "lower"
	case j.Change.Low > 0:
		j.Verdict = "higher"
	default:
		j.Verdict = "unclear"
	}
	return j
}

// confidence judges those figures of a comparison that can be judged. A single number for a whole period, such as its
// duration, has no interval.
func confidence(before, after *callerReport) []judgement {
	if before == nil || after == nil {
		return []judgement{}
	}
	return []judgement{
		proportions("throttled_rate", before.Throttled, before.sends(), after.Throttled, after.sends()),
		proportions("retry_share", before.Retries, before.sends(), after.Retries, after.sends()),
		means("answer_s", before.Took, after.Took),
	}
}

var judged = map[string]struct {
	name string
	text func(float64) string
}{
	"throttled_rate": {"refused (429), of all", exactPercent}, "retry_share": {"share of retries", exactPercent}, "answer_s": {"time to an answer", seconds},
}

// exactPercent formats a percentage, with tenths for small values.
func exactPercent(x float64) string {
	if x > 0 && x < 0.1 {
		return fmt.Sprintf("%.1f%%", x*100)
	}
	return show.Percent(x)
}

var verdicts = map[string]string{
	"lower": "lower, and not by chance", "higher": "higher, and not by chance", "unclear": "chance explains the difference", tooFew: "too few requests to tell",
}

// judgements shows how certain changes are. It omits response times that are zero on both sides.
func judgements(list []judgement) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "95% sure"}, {Head: "before", Right: true}, {Head: "after", Right: true}, {Head: "the change is"},
	}}
	for i := range list {
		j := &list[i]
		if j.Before.Value == 0 && j.After.Value == 0 && j.Figure == "answer_s" {
			continue
		}
		text := judged[j.Figure].text
		within := func(i interval) show.Cell { return show.Cell{Text: text(i.Low) + " to " + text(i.High)} }
		verdict := show.Cell{Text: verdicts[j.Verdict]}
		switch {
		case j.Verdict == "unclear" && j.Change.Value == 0:
			verdict.Text = "no difference"
		case j.Verdict == "lower":
			verdict.Colour = show.Green
		case j.Verdict == "higher":
			verdict.Colour = show.Amber
		}
		t.Add(show.Cell{Text: judged[j.Figure].name}, within(j.Before), within(j.After), verdict)
	}
	return t
}

// spread summarizes the times of several requests, in seconds.
type spread struct {
	N     int64   `json:"n"`
	MeanS float64 `json:"mean_s"`
	SDS   float64 `json:"sd_s"`
}

// spreadOf returns the spread of n values with these sums, or nil if n is 0.
func spreadOf(n int64, sum, squares float64) *spread {
	if n <= 0 {
		return nil
	}
	m := float64(n)
	return &spread{N: n, MeanS: sum / m, SDS: math.Sqrt(max(squares-sum*sum/m, 0) / max(m-1, 1))}
}
