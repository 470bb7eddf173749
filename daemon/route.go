package daemon

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// auto is the prefix of a model name that leaves the choice to the gate: auto:TASK.
const auto = "auto:"

// router returns a function that chooses the model of a call: if the call asks for it, or if its budget reroutes.
func router(g *sluice.Gate, resource string) func(context.Context, sluicehttp.Caller, *provider.ParsedRequest) (string, error) {
	return func(ctx context.Context, c sluicehttp.Caller, asked *provider.ParsedRequest) (string, error) {
		task, caller := proxy.Task(ctx), sluice.Request{Resource: resource, Agent: c.Agent, Class: c.Class, User: c.User, Tool: c.Tool, Emergency: c.Emergency}
		if named, ok := strings.CutPrefix(asked.Model, auto); ok {
			task = cmp.Or(named, task)
		}
		if task != "" {
			r, err := inside.Of(g).RouteOn(ctx, resource, task, caller)
			return r.Model, err
		}
		if !asked.Tokens || asked.Model == "" {
			return "", nil
		}
		s, err := inside.Of(g).BudgetState(ctx, c.Agent, c.User)
		if err != nil || !s.Over || !slices.Contains(s.Policies, sluice.OverReroute) {
			return "", nil //nolint:nilerr // the budget is tried again when the call goes, and says what is wrong
		}
		caller.Model = asked.Model
		model, err := inside.Of(g).CheaperOn(ctx, caller)
		if model == "" && err == nil {
			caller.Model = asked.Part
			model, err = inside.Of(g).CheaperOn(ctx, caller)
		}
		return model, err
	}
}
