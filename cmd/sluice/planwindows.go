package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// windowJSON is a window of a subscription, as why shows it.
type windowJSON struct {
	Resource string     `json:"resource"`
	Limit    string     `json:"limit"`
	Scope    string     `json:"scope"`
	WindowMS int64      `json:"window_ms"`
	Percent  float64    `json:"used_percent"`
	ResetAt  *time.Time `json:"reset_at"`
	GoneAt   *time.Time `json:"gone_at"`

	status inspect.LimitStatus
}

// windowsOf returns the windows of a resource, as why shows them.
func windowsOf(r *inspect.ResourceStatus) (list []windowJSON) {
	for _, l := range planOf(r.Limits) {
		list = append(list, windowJSON{r.Name, l.Name, l.Scope, l.WindowMS, float64(l.Used) * 100 / float64(max(l.Limit, 1)), l.ResetAt, l.GoneAt, l})
	}
	return list
}

// windows shows the state of the subscriptions.
func (s *screen) windows(list []windowJSON) {
	for i := range list {
		s.line("%s: %s", s.Paint(show.Bold, s.Text(list[i].Resource, nameWidth)), s.window(&list[i].status))
	}
	if len(list) > 0 {
		s.line("")
	}
}

// planOf returns the windows of a resource, the shortest first.
func planOf(limits []inspect.LimitStatus) []inspect.LimitStatus {
	plan := slices.DeleteFunc(slices.Clone(limits), func(l inspect.LimitStatus) bool { return !l.Plan })
	slices.SortStableFunc(plan, func(a, b inspect.LimitStatus) int { return cmp.Compare(a.WindowMS, b.WindowMS) })
	return plan
}

// otherLimits returns the limits of a resource that are not windows.
func otherLimits(limits []inspect.LimitStatus) []inspect.LimitStatus {
	return slices.DeleteFunc(slices.Clone(limits), func(l inspect.LimitStatus) bool { return l.Plan })
}

// window describes a window of a subscription in words.
func (s *screen) window(l *inspect.LimitStatus) string {
	text := show.Window(s.Text(strings.TrimPrefix(l.Scope, "model="), nameWidth), time.Duration(l.WindowMS)*time.Millisecond, l.Used, l.Limit, l.ResetAt, l.GoneAt, s.now)
	if l.Limit > 0 && (l.Used >= l.Limit || l.GoneAt != nil) {
		return s.Paint(show.Amber, text)
	}
	return text
}
