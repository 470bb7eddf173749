package main

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

const (
	refusedFor = time.Hour // how far back refusals are shown
	maxRefused = 20
)

// refusedJSON is a refused request, and the reason.
type refusedJSON struct {
	Time     time.Time  `json:"time"`
	Resource string     `json:"resource"`
	Agent    string     `json:"agent"`
	Class    string     `json:"class"`
	Limit    string     `json:"limit"`
	Plan     bool       `json:"plan"` // the limit is a window of a subscription, and used a part of size
	Used     int64      `json:"used"`
	Size     int64      `json:"size"`
	Reason   string     `json:"reason"`
	Behind   string     `json:"behind"` // what it would have waited for, if the reason is a deadline or a full queue
	RetryAt  *time.Time `json:"retry_at"`
}

// readRefused returns the last refusals on this machine, the latest first: of the named resources, or of all without
// names. Only the event log has them: a refused request leaves nothing in the store.
func (s *session) readRefused(names []string, of whose, now time.Time) ([]refusedJSON, error) {
	list, ours := []refusedJSON{}, s.ours()
	err := eventlog.ReadKinds(s.dir, now.Add(-refusedFor), []string{inspect.EventRefused}, func(e inspect.Event) bool {
		if !eventlog.IsOf(&e, ours) || len(names) > 0 && !slices.Contains(names, e.Resource) || of.agent != "" && e.Agent != of.agent {
			return true
		}
		list = append(list, refusedJSON{
			Time: e.Time.UTC(), Resource: e.Resource, Agent: e.Agent, Class: e.Class, Limit: e.Limit, Plan: s.isPlan(e.Resource, e.Limit),
			Used: e.Used, Size: e.Size, Reason: e.Reason, Behind: e.Behind, RetryAt: e.RetryAt,
		})
		if len(list) > maxRefused {
			list = slices.Delete(list, 0, 1)
		}
		return true
	})
	slices.Reverse(list)
	return list, err
}

// countRefused counts the recent refusals of each resource in this machine's event log. If the store is a daemon's, it adds
// the refusals that the daemon lists. The daemon lists only its latest ones. Unreadable logs count nothing.
func (s *session) countRefused(ctx context.Context, names []string, now time.Time) map[string]int {
	list, sameLog, _ := s.daemonRefused(ctx, names, whose{})
	count, ours := map[string]int{}, s.ours()
	for i := range list {
		count[list[i].Resource]++
	}
	if sameLog {
		return count
	}
	_ = eventlog.ReadKinds(s.dir, now.Add(-refusedFor), []string{inspect.EventRefused}, func(e inspect.Event) bool {
		if eventlog.IsOf(&e, ours) {
			count[e.Resource]++
		}
		return true
	})
	return count
}

// isPlan reports whether a limit is a window of a subscription.
func (s *session) isPlan(resource, limit string) bool {
	return slices.ContainsFunc(s.limits[resource], func(l sluice.Limit) bool { return l.Plan && l.Name == limit })
}

// refused shows the recent refusals.
func (s *screen) refused(list []refusedJSON) {
	if len(list) == 0 {
		return
	}
	s.line("\nrefused in the last hour")
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "when", Right: true}, {Head: "resource", Least: 8}, {Head: "agent", Least: 8}, {Head: "class", Drop: 2}, {Head: "why", Least: 16},
		{Head: "used", Right: true, Drop: 3}, {Head: "of", Right: true, Drop: 4}, {Head: "again in", Right: true, Drop: 1},
	}}
	for i := range list {
		r := &list[i]
		row := []show.Cell{
			{Text: show.Ago(r.Time, s.now)}, {Text: s.Text(r.Resource, nameWidth)}, {Text: s.Text(r.Agent, nameWidth)}, {Text: s.Text(r.Class, 12)},
			{Text: s.Text(show.Refusal(r.Reason, r.Behind, r.Limit), 80)}, {}, {}, {Text: show.Left(r.RetryAt, s.now)},
		}
		if r.Size > 0 {
			row[5].Text, row[6].Text = show.Count(r.Used), show.Count(r.Size)
		}
		if r.Size > 0 && r.Plan { // the provider states percent
			row[5].Text, row[6].Text = show.Percent(float64(r.Used)/float64(r.Size)), "100%"
		}
		if r.Reason == "budget" { // in millionths of a dollar
			row[5].Text, row[6].Text = usdText(float64(r.Used)/1e6)+" usd", usdText(float64(r.Size)/1e6)+" usd"
		}
		t.Add(row...)
	}
	s.table(t)
}
