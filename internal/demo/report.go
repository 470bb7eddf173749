package demo

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sim/mock"
)

// Report is the result of a run.
type Report struct {
	// OK is set if the gate avoided all refusals and was faster. Why lists what went wrong otherwise.
	OK     bool     `json:"ok"`
	Why    []string `json:"why"`
	Limit  string   `json:"limit"` // the provider's limit on requests
	Model  string   `json:"model"`
	Calls  int      `json:"calls"`
	IdealS float64  `json:"ideal_s"` // shortest time that the provider's limit allows
	Before Phase    `json:"before"`
	After  Phase    `json:"after"`
}

// Phase is the result of one phase.
type Phase struct {
	Finished bool `json:"finished"`
	Done     int  `json:"done"` // calls
	// Sent, Accepted, Throttled and WorstWindow are the provider's own figures.
	Sent        int64 `json:"sent"`
	Accepted    int64 `json:"accepted"`
	Throttled   int64 `json:"throttled"`
	WorstWindow int64 `json:"worst_window"`
	// Seen429 counts the refusals that agents saw.
	Seen429 int `json:"seen_429"`
	// Retries counts repeated sends. RetryShare is their share of all sends.
	Retries    int64   `json:"retries"`
	RetryShare float64 `json:"retry_share"`
	// PeakRate is the most requests that reached the provider within a second.
	PeakRate int64 `json:"peak_rate"`
	// WastedUSD is the list price of the retries, each at the mean usage of a call.
	WastedUSD float64 `json:"wasted_usd"`
	WallS     float64 `json:"wall_s"`
	// OfIdeal is WallS as a multiple of the ideal.
	OfIdeal float64 `json:"of_ideal"`
	// WorstClass is the class of the call that took longest from its first send to its response.
	WorstClass string        `json:"worst_class"`
	WorstWaitS float64       `json:"worst_wait_s"`
	Classes    []ClassWait   `json:"classes"`
	Agents     []AgentResult `json:"agents"`
}

// ClassWait is how long the calls of a class took, from the first send to the response.
type ClassWait struct {
	Name     string  `json:"name"`
	LongestS float64 `json:"longest_s"`
	MeanS    float64 `json:"mean_s"`

	done  int
	total time.Duration
}

// AgentResult is the result of one agent.
type AgentResult struct {
	Name      string  `json:"name"`
	Class     string  `json:"class"`
	Calls     int     `json:"calls"`
	Done      int     `json:"done"`
	Sends     int     `json:"sends"`
	Throttled int     `json:"throttled"`
	Failed    int     `json:"failed"`
	LongestS  float64 `json:"longest_s"`
}

// seconds returns a time in seconds with three decimals; more would be noise.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// result computes the figures of a phase.
func (p *phase) result(finished bool, stats *mock.Stats) *Phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &Phase{
		Finished: finished, Sent: stats.Arrived, Accepted: stats.Accepted, Throttled: stats.Throttled, WorstWindow: stats.WorstWindow,
		PeakRate: p.peak.most, WallS: seconds(p.elapsed()),
	}
	begun := 0 // calls that were sent at least once
	for _, a := range p.agents {
		r.Done += a.Done
		begun += a.Done + a.Waiting
		r.Seen429 += a.Throttled
		r.Agents = append(r.Agents, AgentResult{a.Name, a.Class, a.Calls, a.Done, a.Sends, a.Throttled, a.Failed, seconds(a.Longest)})
		r.class(a)
	}
	r.Retries = max(0, r.Sent-int64(begun))
	if r.Sent > 0 {
		r.RetryShare = float64(r.Retries) / float64(r.Sent)
	}
	r.WastedUSD = wasted(stats, r.Retries)
	r.OfIdeal = math.Round(1000*r.WallS/p.Script.Ideal().Seconds()) / 1000
	for i := range r.Classes {
		c := &r.Classes[i]
		if c.done > 0 {
			c.MeanS = seconds(c.total / time.Duration(c.done))
		}
		if c.LongestS > r.WorstWaitS {
			r.WorstClass, r.WorstWaitS = c.Name, c.LongestS
		}
	}
	return r
}

// class adds an agent to its class.
func (r *Phase) class(a Progress) {
	at := slices.IndexFunc(r.Classes, func(c ClassWait) bool { return c.Name == a.Class })
	if at < 0 {
		at = len(r.Classes)
		r.Classes = append(r.Classes, ClassWait{Name: a.Class})
	}
	c := &r.Classes[at]
	c.LongestS = max(c.LongestS, seconds(a.Longest))
	c.done += a.Done
	c.total += a.Total
}

// wasted returns the list price of retries, each at the mean price of an accepted call.
func wasted(stats *mock.Stats, retries int64) float64 {
	prices, micros := provider.DefaultPrices(), int64(0)
	for model, u := range stats.Ledger {
		m, _ := prices.Micros(model, &provider.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens})
		micros += m
	}
	if stats.Accepted == 0 {
		return 0
	}
	return math.Round(float64(micros)*float64(retries)/float64(stats.Accepted)) / 1e6
}

// newReport compares the phases and lists what went wrong.
func newReport(script *Script, before, after *Phase) *Report {
	r := &Report{
		Why: []string{}, Limit: script.Limits(), Model: Model, Calls: script.Calls(), IdealS: seconds(script.Ideal()), Before: *before, After: *after,
	}
	complain := func(format string, args ...any) { r.Why = append(r.Why, fmt.Sprintf(format, args...)) }
	if !after.Finished || after.Done < r.Calls {
		complain("%d of %d calls were made through the gate within %.0f s", after.Done, r.Calls, after.WallS)
	}
	if after.Throttled > 0 {
		complain("the provider refused %d requests that came through the gate", after.Throttled)
	}
	if after.Seen429 > 0 {
		complain("agents saw %d refusals through the gate", after.Seen429)
	}
	if slow := after.WallS >= before.WallS; slow && script.Best == 0 || script.Best > 0 && after.WallS > 1.1*before.WallS+1 { // a fleet from a scenario may have room for all calls even without the gate
		complain("through the gate it took %.1f s, without it %.1f s", after.WallS, before.WallS)
	}
	r.OK = len(r.Why) == 0
	return r
}
