package mcp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

type spentIn struct {
	Hours float64 `json:"hours,omitempty" jsonschema:"how far to look back, up to 8760 hours; 24 if it is left out"`
	Agent string  `json:"agent,omitempty" jsonschema:"another agent to look at; leave it out for yourself"`
}

type spentOut struct {
	Agent     string    `json:"agent" jsonschema:"whose sends these are; empty: those of all agents"`
	Since     time.Time `json:"since"`
	USD       float64   `json:"usd" jsonschema:"for all APIs together, as far as prices are known"`
	Resources []spent   `json:"resources" jsonschema:"the APIs that something was sent to"`
	Budgets   []budget  `json:"budgets" jsonschema:"budgets that you spend from; one of your own shows from its first dollar on"`
}

type spent struct {
	Resource string           `json:"resource"`
	Sends    int64            `json:"sends" jsonschema:"requests that went out, retries included"`
	Retries  int64            `json:"retries"`
	Refused  int64            `json:"refused" jsonschema:"answers with status 429"`
	Failed   int64            `json:"failed" jsonschema:"requests that failed for other reasons"`
	WaitedS  float64          `json:"waited_s" jsonschema:"seconds that the requests waited in the gate"`
	Units    map[string]int64 `json:"units" jsonschema:"tokens and other units"`
	USD      float64          `json:"usd"`
	RetryUSD float64          `json:"retry_usd" jsonschema:"the part of usd that went into retries"`
	Unpriced int64            `json:"unpriced" jsonschema:"sends for models without a known price; their dollars are a guess"`
}

type budget struct {
	Budget       string  `json:"budget"`
	Per          string  `json:"per" jsonschema:"who spends from it: fleet, agent or user"`
	Period       string  `json:"period"`
	SizeUSD      float64 `json:"size_usd"`
	UsedUSD      float64 `json:"used_usd"`
	RemainingUSD float64 `json:"remaining_usd"`
	ResetsInS    *int64  `json:"resets_in_s" jsonschema:"null: never"`
	Over         string  `json:"over" jsonschema:"what happens when it is used up: deny, slow, downgrade, reroute or alert"`
}

const (
	defaultHours = 24
	maxHours     = 365 * 24
)

// spent answers what_have_i_spent.
func (s *server) spent(ctx context.Context, q spentIn) (spentOut, string, error) {
	out := spentOut{Resources: []spent{}, Budgets: []budget{}}
	agent, err := s.agent(q.Agent)
	if err != nil {
		return out, "", err
	}
	if q.Hours == 0 {
		q.Hours = defaultHours
	}
	if math.IsNaN(q.Hours) || q.Hours < 0 || q.Hours > maxHours {
		return out, "", fmt.Errorf("hours: %g is not allowed; use more than 0 and at most %d", q.Hours, maxHours)
	}
	now := time.Now()
	rep, err := s.Gate.Report(ctx, now.Add(-time.Duration(q.Hours*float64(time.Hour))))
	if err != nil {
		return out, "", err
	}
	st, err := s.Gate.Status(ctx)
	if err != nil {
		return out, "", err
	}
	out.Agent, out.Since = agent, rep.Since
	var sends, refused int64
	for i := range rep.Resources {
		r := &rep.Resources[i]
		c := &r.Total
		if agent != "" {
			at := slices.IndexFunc(r.Callers, func(c inspect.CallerReport) bool { return c.Name == agent })
			if at < 0 {
				continue
			}
			c = &r.Callers[at]
		}
		if one := spentOf(r.Name, c); one.Sends+one.Refused+one.Failed > 0 && len(out.Resources) < maxResources {
			out.Resources = append(out.Resources, one)
			sends, refused, out.USD = sends+one.Sends, refused+one.Refused, out.USD+one.USD
		}
	}
	for _, b := range budgetsOf(&st, agent, agentOf(&st, agent)) {
		if len(out.Budgets) < maxBudgets {
			out.Budgets = append(out.Budgets, budget{
				b.Name, b.Per, b.Period, b.SizeUSD, b.UsedUSD, b.RemainingUSD, in(b.ResetsAt, now), b.Over,
			})
		}
	}
	return out, out.sentence(sends, refused, q.Hours), nil
}

func spentOf(resource string, c *inspect.CallerReport) spent {
	one := spent{
		Resource: resource, Sends: c.FirstSends + c.Retries, Retries: c.Retries, Refused: c.Throttled, Failed: c.Failed,
		WaitedS: float64(c.WaitedMS) / 1000, Units: c.Units, USD: float64(c.Micros) / 1e6, RetryUSD: float64(c.RetryMicros) / 1e6, Unpriced: c.Unpriced,
	}
	if one.Units == nil {
		one.Units = map[string]int64{}
	}
	return one
}

// budgetsOf returns the budgets that an agent spends from: the fleet's, its own and its user's. Without an agent it
// returns all.
func budgetsOf(st *inspect.Status, agent string, a *inspect.AgentStatus) (list []inspect.BudgetStatus) {
	for _, b := range st.Budgets {
		mine := agent == "" || b.Per == sluice.BudgetFleet
		switch b.Per {
		case sluice.BudgetAgent:
			mine = mine || b.Who == agent || b.Who == ""
		case sluice.BudgetUser:
			mine = mine || a != nil && b.Who == a.User
		}
		if mine {
			list = append(list, b)
		}
	}
	return list
}

func (o *spentOut) sentence(sends, refused int64, hours float64) string {
	who := "All agents"
	if o.Agent != "" {
		who = word(o.Agent)
	}
	text := fmt.Sprintf("%s sent %s in the last %s", who, show.Some(sends, "request", "requests"), show.Span(time.Duration(hours*float64(time.Hour))))
	if o.USD > 0 {
		text += fmt.Sprintf(" for %.4f USD", o.USD)
	}
	lines := []string{fmt.Sprintf("%s; %d were refused (429).", text, refused)}
	for _, r := range o.Resources[:min(len(o.Resources), said)] {
		line := fmt.Sprintf("%s: %s", word(r.Resource), show.Some(r.Sends, "request", "requests"))
		for _, unit := range []string{"input_tokens", "output_tokens"} {
			if n := r.Units[unit]; n > 0 {
				line += fmt.Sprintf(", %s %s", show.Count(n), unit)
			}
		}
		if r.USD > 0 {
			line += fmt.Sprintf(", %.4f USD", r.USD)
		}
		lines = append(lines, line+".")
	}
	for _, b := range o.Budgets[:min(len(o.Budgets), said)] {
		lines = append(lines, fmt.Sprintf("Budget %s: %.2f of %.2f USD left.", word(b.Budget), b.RemainingUSD, b.SizeUSD))
	}
	return strings.Join(lines, "\n")
}
