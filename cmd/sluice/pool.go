package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/store"
)

// poolJSON says who has what of a resource's quota, and by which limit.
type poolJSON struct {
	Resource string `json:"resource"`
	Limit    string `json:"limit"` // empty if none is known
	Unit     string `json:"unit"`
	inspect.PoolStatus
}

// MarshalJSON adds the resource, limit and unit to the JSON of the pool.
func (p poolJSON) MarshalJSON() ([]byte, error) {
	type plain inspect.PoolStatus
	out := struct {
		Resource string `json:"resource"`
		Limit    string `json:"limit"`
		Unit     string `json:"unit"`
		plain
		TotalLimit *int64 `json:"totalLimit"` // null if unknown
	}{Resource: p.Resource, Limit: p.Limit, Unit: p.Unit, plain: plain(p.PoolStatus)}
	if p.TotalLimit > 0 {
		out.TotalLimit = &p.TotalLimit
	}
	return json.Marshal(out)
}

func newPool() *cobra.Command {
	return &cobra.Command{
		Use:   "pool RESOURCE",
		Short: "Show each agent's part of a resource's quota",
		Long: `Pool shows the quota of a resource and what each live agent can count on: its class's share among
live classes, divided by the class's live agents. An agent may also use what others leave.

The quota is the first shared limit on requests. Where there is none, as with GitHub's core requests,
it is the first shared limit in another unit. Where all limits are per model or API key, as with Anthropic, it
is the sum over the models or keys in use.`,
		Example:           "  sluice pool github\n  sluice pool github --json | jq .allocations",
		Args:              needs("RESOURCE"),
		ValidArgsFunction: completeShown,
		RunE: func(cmd *cobra.Command, args []string) error {
			var classes []string
			p, err := reading(cmd, args, func(ctx context.Context, s *session) (poolJSON, error) {
				classes = s.classNames()
				return readPool(ctx, s, args[0])
			})
			if err != nil {
				return err
			}
			return printResult(cmd, p, func(s *screen) { s.pool(&p, classes) })
		},
	}
}

func readPool(ctx context.Context, s *session, resource string) (poolJSON, error) {
	p := poolJSON{Resource: resource}
	var err error
	if p.PoolStatus, err = s.gate.Pool(ctx, resource); err != nil {
		return p, err
	}
	var userOf func(agent string) string
	for name, a := range p.Allocations {
		if a.Leased {
			continue
		}
		if userOf == nil {
			userOf = s.lastUsers(time.Now())
		}
		a.User = cmp.Or(userOf(name), a.User)
		p.Allocations[name] = a
	}
	limit := mainLimit(s.limits[resource])
	if limit == nil {
		return p, nil
	}
	p.Limit, p.Unit = limit.Name, cmp.Or(limit.Unit, sluice.Requests)
	return p, nil
}

// mainLimit returns the limit that stands for a resource's quota, the one that Gate.Pool divides: the first shared limit
// on requests, else the first in another unit, else the first concurrency limit, else the first on requests of each model
// or key; nil if there is none.
func mainLimit(limits []sluice.Limit) *sluice.Limit {
	var first, places, each *sluice.Limit
	for i := range limits {
		switch l := &limits[i]; {
		case l.Plan:
		case len(l.Per) > 0:
			shared := !slices.ContainsFunc(l.Per, func(s sluice.Scope) bool { return s&^store.Shared != 0 })
			if shared && l.Kind != sluice.Concurrency && cmp.Or(l.Unit, sluice.Requests) == sluice.Requests {
				each = cmp.Or(each, l)
			}
		case l.Kind == sluice.Concurrency:
			places = cmp.Or(places, l)
		case l.Unit == "" || l.Unit == sluice.Requests:
			return l
		default:
			first = cmp.Or(first, l)
		}
	}
	return cmp.Or(first, places, each)
}

// pool shows which agent has what.
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
		s.line("No agent is live: the first one to ask can count on all of it.")
		return
	}
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "agent", Least: 10}, {Head: "class"}, {Head: "", Drop: 2}, {Head: "used", Right: true}, {Head: "allocated", Right: true},
		{Head: "lease", Right: true, Drop: 1}, {Head: "held for", Right: true, Drop: 6}, {Head: "state", Drop: 3}, {Head: "user", Least: 6, Drop: 4},
		{Head: "machine", Least: 6, Drop: 5},
	}}
	names := slices.SortedFunc(maps.Keys(p.Allocations), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Allocations[a].Priority, p.Allocations[b].Priority), cmp.Compare(a, b))
	})
	for _, name := range names {
		a := p.Allocations[name]
		row := []show.Cell{
			{Text: s.Text(name, nameWidth)}, {Text: s.Text(nth(classes, a.Priority), 12)}, {}, {Text: show.Count(a.Used)}, {Text: "?", Colour: show.Dim},
			show.Lease(a.Leased, a.LeaseExpiry, s.now), s.heldFor(a.Leased, a.LeaseStart), {Text: a.State, Colour: show.OfState(a.State)},
			{Text: s.Text(a.User, nameWidth)}, {Text: s.Text(a.Machine, nameWidth)},
		}
		if a.Allocated >= 0 {
			part := float64(a.Used) / float64(max(a.Allocated, 1))
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
	return ", resets " + show.In(at, s.now)
}

func nth(list []string, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return list[i]
}
