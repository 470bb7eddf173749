package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/show"
)

// poolJSON is who has what of a resource's quota, and of which of its limits.
type poolJSON struct {
	Resource string `json:"resource"`
	Limit    string `json:"limit"` // empty: none is known
	Unit     string `json:"unit"`
	sluice.PoolStatus
}

func newPool() *cobra.Command {
	return &cobra.Command{
		Use:   "pool RESOURCE",
		Short: "Show who has which part of a resource's quota",
		Long: "Pool shows the quota of a resource and what each living agent has of it: its\n" +
			"class's share, among the classes that are alive, divided by the living agents of\n" +
			"that class. Shares are what an agent can count on, not a limit: what others leave\n" +
			"it may use as well.\n\n" +
			"The quota is the first limit on requests that is not scoped to an agent, model or\n" +
			"the like. A resource that has none, such as GitHub with its core requests, is\n" +
			"divided by its first limit in any other unit; its use is counted by the minute.",
		Example:           "  sluice pool github\n  sluice pool github --json | jq .allocations",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			var p poolJSON
			var classes []string
			err := looking(cmd, args, func(ctx context.Context, s *session) (err error) {
				classes = s.classNames()
				p, err = readPool(ctx, s, args[0], time.Now())
				return err
			})
			if err != nil {
				return err
			}
			if asJSON(cmd) {
				return written(printJSON(cmd.OutOrStdout(), p))
			}
			s := screenFor(cmd.OutOrStdout(), time.Now())
			s.pool(&p, classes)
			return s.end()
		},
	}
}

func readPool(ctx context.Context, s *session, resource string, now time.Time) (poolJSON, error) {
	p := poolJSON{Resource: resource}
	var err error
	if p.PoolStatus, err = s.gate.Pool(ctx, resource); err != nil {
		return p, err
	}
	limit := mainLimit(s.limits[resource])
	if limit == nil {
		return p, nil
	}
	p.Limit, p.Unit = limit.Name, cmp.Or(limit.Unit, sluice.Requests)
	if p.Unit == sluice.Requests {
		return p, nil
	}
	st, err := s.gate.Status(ctx)
	if err != nil {
		return p, err
	}
	for _, r := range st.Resources {
		for _, l := range r.Limits {
			if r.Name == resource && l.Name == limit.Name && l.Scope == "" {
				p.TotalLimit, p.ResetAt = l.Limit, l.ResetAt
			}
		}
	}
	since := now.Add(-limit.Window)
	if p.ResetAt != nil {
		since = p.ResetAt.Add(-limit.Window)
	}
	rep, err := s.gate.Report(ctx, since)
	if err != nil {
		return p, err
	}
	p.divide(s.shares(), used(&rep, resource, p.Unit))
	return p, nil
}

// mainLimit is the one that stands for a resource's quota: the first on requests that everyone
// shares, else the first in any unit; nil if there is none.
func mainLimit(limits []sluice.Limit) *sluice.Limit {
	var first *sluice.Limit
	for i := range limits {
		l := &limits[i]
		if l.Kind == sluice.Concurrency || len(l.Per) > 0 {
			continue
		}
		if l.Unit == "" || l.Unit == sluice.Requests {
			return l
		}
		if first == nil {
			first = l
		}
	}
	return first
}

// shares are the weights of the classes, highest first.
func (s *session) shares() []int64 {
	var shares []int64
	for _, c := range s.file.Classes {
		shares = append(shares, int64(c.Share))
	}
	return shares
}

// used is what each agent has used of a unit.
func used(rep *sluice.Report, resource, unit string) map[string]int64 {
	amounts := map[string]int64{}
	for _, r := range rep.Resources {
		for _, c := range r.Callers {
			if r.Name == resource {
				amounts[c.Name] = c.Units[unit]
			}
		}
	}
	return amounts
}

// divide allocates the quota to the living agents.
func (p *poolJSON) divide(weights []int64, used map[string]int64) {
	count := make([]int, len(weights))
	shares := policy.Shares{Size: p.TotalLimit, Weights: weights}
	for _, a := range p.Allocations {
		if a.Priority < len(count) {
			count[a.Priority]++
			shares.Alive |= 1 << a.Priority
		}
	}
	for name, a := range p.Allocations {
		if a.Priority < len(count) {
			a.Allocated = shares.Allocated(a.Priority, count[a.Priority])
		}
		a.Used = used[name]
		p.Allocations[name] = a
	}
}

// pool shows who has what.
func (s *screen) pool(p *poolJSON, classes []string) {
	head := s.Paint(show.Bold, s.Text(p.Resource, nameWidth))
	switch {
	case p.Limit == "":
		s.line("%s  no limit is known that could be divided", head)
	case p.TotalLimit == 0:
		s.line("%s  the size of the limit %s is not known yet: an answer will tell", head, s.Text(p.Limit, nameWidth))
	default:
		s.line("%s  %s %s in all%s", head, show.Count(p.TotalLimit), s.Text(p.Unit, nameWidth), s.resets(p.ResetAt))
	}
	if len(p.Allocations) == 0 {
		s.line("No agent is alive: the first one to ask has all of it.")
		return
	}
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "agent", Least: 10}, {Head: "class"}, {Head: "", Drop: 2}, {Head: "used", Right: true}, {Head: "allocated", Right: true},
		{Head: "lease", Right: true, Drop: 1},
	}}
	names := slices.SortedFunc(maps.Keys(p.Allocations), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Allocations[a].Priority, p.Allocations[b].Priority), cmp.Compare(a, b))
	})
	for _, name := range names {
		a := p.Allocations[name]
		row := []show.Cell{
			{Text: s.Text(name, nameWidth)}, {Text: s.Text(nth(classes, a.Priority), 12)}, {}, {Text: show.Count(a.Used)}, {Text: "?", Colour: show.Dim},
			{Text: show.Left(a.LeaseExpiry, s.now)},
		}
		if a.Allocated > 0 {
			part := float64(a.Used) / float64(a.Allocated)
			row[2] = show.Cell{Text: s.Bar(part, barWidth), Colour: show.Fullness(part)}
			row[4] = show.Cell{Text: show.Count(a.Allocated)}
		}
		t.Add(row...)
	}
	s.table(t)
}

func (s *screen) resets(at *time.Time) string {
	if at == nil {
		return ""
	}
	return ", resets in " + show.Left(at, s.now)
}

func nth(list []string, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return list[i]
}
