package mcp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/nearest"
	"github.com/sluicehq/sluice/internal/show"
)

// plain makes foreign text harmless: names and reasons come from any agent.
var plain show.Style

func word(text string) string  { return plain.Text(text, 80) }
func words(text string) string { return plain.Text(text, 200) }

// in returns the whole seconds until a moment, because agents have no clock.
func in(at *time.Time, now time.Time) *int64 {
	if at == nil {
		return nil
	}
	return new(max(int64((at.Sub(now)+time.Second-1)/time.Second), 0))
}

// pick returns the resource with a name, or an error that lists the known names.
func pick(all []inspect.ResourceStatus, name string) (*inspect.ResourceStatus, error) {
	names := map[string]bool{}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
		names[all[i].Name] = true
	}
	known := slices.Sorted(maps.Keys(names))
	hint := "known are " + plain.Names(known, ", ", maxResources, 80)
	if near := nearest.Name(name, known); near != "" {
		hint = "did you mean " + word(near) + "?"
	}
	return nil, &sluice.Error{Err: sluice.ErrUnknownResource, Message: fmt.Sprintf("unknown resource %.80q", name), Hint: hint}
}

// agentOf returns a live agent, or nil if the agent is not alive.
func agentOf(s *inspect.Status, name string) *inspect.AgentStatus {
	if i := slices.IndexFunc(s.Agents, func(a inspect.AgentStatus) bool { return a.Name == name }); name != "" && i >= 0 {
		return &s.Agents[i]
	}
	return nil
}

// counts reports whether a limit counts the requests of an agent for a model. An empty model means any. Limits of other
// agents, users, tools and keys do not count.
func counts(l *inspect.LimitStatus, agent, user, model string) bool {
	scope := l.Scope
	q := sluice.Request{Agent: agent, User: user, Model: model}
	if model == "" {
		q.Model = valueOf(scope, "model")
	}
	return q.In(scope)
}

var errNoResource = errors.New("resource: name the API, such as anthropic; remaining_quota lists them")
