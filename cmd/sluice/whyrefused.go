package main

import (
	"slices"
	"time"

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
	Used     int64      `json:"used"`
	Size     int64      `json:"size"`
	Reason   string     `json:"reason"`
	RetryAt  *time.Time `json:"retry_at"`
}

// readRefused returns the last refusals on this machine, the latest first. Only the event log has them: a refused
// request leaves nothing in the store.
func readRefused(dir string, names []string, of whose, now time.Time) ([]refusedJSON, error) {
	list := []refusedJSON{}
	if of.ticket != "" {
		return list, nil // a refused request has no ticket
	}
	err := eventlog.ReadKinds(dir, now.Add(-refusedFor), []string{inspect.EventRefused}, func(e inspect.Event) bool {
		if !slices.Contains(names, e.Resource) || of.agent != "" && e.Agent != of.agent {
			return true
		}
		list = append(list, refusedJSON{
			Time: e.Time.UTC(), Resource: e.Resource, Agent: e.Agent, Class: e.Class, Limit: e.Limit, Used: e.Used, Size: e.Size,
			Reason: e.Reason, RetryAt: e.RetryAt,
		})
		if len(list) > maxRefused {
			list = slices.Delete(list, 0, 1)
		}
		return true
	})
	slices.Reverse(list)
	return list, err
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
			{Text: s.Text(show.Reason(r.Reason, r.Limit), 80)}, {}, {}, {Text: show.Left(r.RetryAt, s.now)},
		}
		if r.Size > 0 {
			row[5].Text, row[6].Text = show.Count(r.Used), show.Count(r.Size)
		}
		if r.Reason == "budget" { // in millionths of a dollar
			row[5].Text, row[6].Text = usdText(float64(r.Used)/1e6)+" usd", usdText(float64(r.Size)/1e6)+" usd"
		}
		t.Add(row...)
	}
	s.table(t)
}
