package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

type quotaIn struct {
	Resource string `json:"resource,omitempty" jsonschema:"the API, such as anthropic or github; leave it out for all that are in use"`
	Model    string `json:"model,omitempty" jsonschema:"only limits that count requests for this model"`
	Agent    string `json:"agent,omitempty" jsonschema:"another agent to look at; leave it out for yourself"`
}

type quotaOut struct {
	Resources []quota  `json:"resources" jsonschema:"the APIs that are in use, or the one that was asked for"`
	Unused    []string `json:"unused" jsonschema:"APIs that nothing was sent to yet"`
	More      int      `json:"more" jsonschema:"resources that are not listed"`
}

type quota struct {
	Resource   string      `json:"resource"`
	State      string      `json:"state" jsonschema:"failing, degraded, paused, queueing, flowing or idle"`
	Reason     string      `json:"reason" jsonschema:"why it is in that state"`
	UsedUp     bool        `json:"used_up" jsonschema:"whether a limit or budget has nothing left; the reason names it"`
	EndsInS    *int64      `json:"ends_in_s" jsonschema:"seconds until the state is expected to end; null: not known"`
	Light      string      `json:"light" jsonschema:"green; amber: only the highest class goes; red: only emergencies go"`
	LightBinds bool        `json:"light_binds" jsonschema:"whether the light holds requests back"`
	Waiting    int         `json:"waiting" jsonschema:"requests in the queue"`
	InFlight   int         `json:"in_flight" jsonschema:"requests that were sent and not answered yet"`
	Limits     []limitLeft `json:"limits"`
	MoreLimits int         `json:"more_limits" jsonschema:"limits that are not listed"`
	Share      *share      `json:"share" jsonschema:"what you can count on; you may also use what others leave; null: not known"`
}

type limitLeft struct {
	Limit     string     `json:"limit"`
	Unit      string     `json:"unit"`
	Scope     string     `json:"scope" jsonschema:"what the limit is for, such as one model; empty: everything"`
	Size      *int64     `json:"size" jsonschema:"null: not known until the provider states it"`
	Used      int64      `json:"used"`
	Remaining *int64     `json:"remaining" jsonschema:"null: not known"`
	WindowS   float64    `json:"window_s" jsonschema:"the time that the limit is for; 0: it counts requests in flight"`
	ResetsInS *int64     `json:"resets_in_s" jsonschema:"seconds until all of it is there again; null: it comes back bit by bit"`
	ResetsAt  *time.Time `json:"resets_at"`
}

type share struct {
	Allocated int64 `json:"allocated"`
	Used      int64 `json:"used"`
}

// quota answers remaining_quota.
func (s *server) quota(ctx context.Context, q quotaIn) (quotaOut, string, error) {
	out := quotaOut{Resources: []quota{}, Unused: []string{}}
	agent, st, list, err := s.about(ctx, q.Agent, q.Resource)
	if err != nil {
		return out, "", err
	}
	now, a := time.Now(), agentOf(&st, agent)
	var lines []string
	for i := range list {
		r := &list[i]
		switch {
		case q.Resource == "" && unused(r):
			out.Unused = append(out.Unused, r.Name)
			continue
		case len(out.Resources) == maxResources:
			out.More++
			continue
		}
		one := quotaOf(r, a, agent, q.Model, now)
		out.Resources = append(out.Resources, one)
		lines = append(lines, one.sentence(now))
	}
	if len(lines) == 0 {
		lines = append(lines, "Nothing was sent through the gate yet, so no quota is used: "+plain.Names(out.Unused, ", ", 20, 80)+".")
	}
	if out.More > 0 {
		lines = append(lines, fmt.Sprintf("%d more resources are not listed; name one.", out.More))
	}
	return out, strings.Join(lines, "\n"), nil
}

// unused reports whether a resource was never used, like most built-in ones.
func unused(r *inspect.ResourceStatus) bool {
	return r.State == inspect.StateIdle && r.LastSend == nil && r.Sent == 0
}

func quotaOf(r *inspect.ResourceStatus, a *inspect.AgentStatus, agent, model string, now time.Time) quota {
	q := quota{
		Resource: r.Name, State: r.State, Reason: words(r.Reason), UsedUp: r.UsedUp, EndsInS: in(r.Until, now), Light: r.Light, LightBinds: r.LightBinds,
		Waiting: r.AllWaiting(), InFlight: r.InFlight, Limits: []limitLeft{},
	}
	user := ""
	if a != nil {
		user = a.User
		if a.Resource == r.Name && a.Allocated >= 0 {
			q.Share = &share{a.Allocated, a.Used}
		}
	}
	for i := range r.Limits {
		l := &r.Limits[i]
		if !counts(l, agent, user, model) {
			continue
		}
		if len(q.Limits) == maxLimits {
			q.MoreLimits++
			continue
		}
		left := limitLeft{
			Limit: l.Name, Unit: cmp.Or(l.Unit, sluice.Requests), Scope: l.Scope, Used: l.Used, WindowS: float64(l.WindowMS) / 1000,
			ResetsInS: in(l.ResetAt, now), ResetsAt: l.ResetAt,
		}
		if l.Limit > 0 {
			left.Size, left.Remaining = &l.Limit, new(max(l.Remaining, 0))
		}
		q.Limits = append(q.Limits, left)
	}
	return q
}

// said is how many limits a sentence names: the ones with the least left.
const said = 3

func (q *quota) sentence(now time.Time) string {
	var known []limitLeft
	for _, l := range q.Limits {
		if l.Size != nil {
			known = append(known, l)
		}
	}
	slices.SortStableFunc(known, func(a, b limitLeft) int { return cmp.Compare(a.part(), b.part()) })
	var parts []string
	for _, l := range known[:min(len(known), said)] {
		text := fmt.Sprintf("%s of %s %s left", show.Count(*l.Remaining), show.Count(*l.Size), word(l.Unit))
		switch {
		case l.ResetsAt != nil:
			text += ", resets " + show.In(l.ResetsAt, now)
		case l.WindowS > 0:
			text += " (per " + show.Span(time.Duration(l.WindowS*float64(time.Second))) + ")"
		default:
			text += " (in flight)"
		}
		if l.Scope != "" {
			text += " for " + word(l.Scope)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = append(parts, "no limit is known yet")
	}
	text := fmt.Sprintf("%s is %s: %s", word(q.Resource), q.State, strings.Join(parts, "; "))
	if q.Waiting > 0 {
		text += "; " + show.Some(int64(q.Waiting), "request waits", "requests wait")
	}
	if calm := q.State == inspect.StateFlowing || q.State == inspect.StateIdle; q.Reason != "" && (!calm || q.UsedUp) {
		text += ". " + q.Reason
	}
	return strings.TrimSuffix(text, ".") + "."
}

func (l *limitLeft) part() float64 { return float64(*l.Remaining) / float64(max(*l.Size, 1)) }

// valueOf returns the value of one part of a scope such as agent=a,model=m.
func valueOf(scope, part string) string {
	for _, p := range strings.Split(scope, ",") {
		if v, ok := strings.CutPrefix(p, part+"="); ok {
			return v
		}
	}
	return ""
}
