package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// routeJSON is the model to use.
type routeJSON struct {
	Model      string  `json:"model"`
	Resource   string  `json:"resource"`
	WaitMS     *int64  `json:"wait_ms"` // nil means unknown
	USDPerMTok float64 `json:"usd_per_mtok"`
	Unpriced   bool    `json:"unpriced,omitempty"` // the price is a guess
	Reason     string  `json:"reason"`
}

func newRoute() *cobra.Command {
	var need amounts
	cmd := &cobra.Command{
		Use:   "route TASK [--agent A] [--class C] [--user U]",
		Short: "Pick the cheapest model with room for a kind of task",
		Long: `Route picks one of the models that routes: in the configuration lists for a kind of task: the
cheapest with room now, else the one that will have it soonest. Models without a price keep their
position. Prices are per million tokens, with three input tokens per output token. Nothing is
reserved.

A model has room if "sluice acquire --wait 0" with the same --agent, --class and --user would be
granted: limits, pauses, the queue, the light, shares, the breaker and budgets apply as to that
caller. The time is not later than the grant; it is unknown (wait_ms null) where it depends on other
requests.

The cost of a request is the average of the last ten minutes; --cost states it.

Exit codes: 0 a model was picked, even if it must be waited for; 64 usage, unknown task; 69 the
store cannot be reached; 78 bad configuration.`,
		Example:           "  sluice route simple\n  model=$(sluice route complex --json | jq -r .model)",
		Args:              needs("TASK"),
		ValidArgsFunction: completeTasks,
	}
	addIdentity(cmd)
	cmd.Flags().Var(&need, "cost", "what a request will take")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resources, err := routed(cmd, args[0])
		if err != nil {
			return err
		}
		r, err := reading(cmd, resources, func(ctx context.Context, s *session) (inspect.Route, error) {
			id, err := identityOf(cmd, s)
			if err != nil {
				return inspect.Route{}, err
			}
			return s.gate.Route(ctx, args[0], sluice.Request{Agent: id.agent, Class: id.class, User: id.user, Cost: need})
		})
		if err != nil {
			return err
		}
		out := routeJSON{Model: r.Model, Resource: r.Resource, USDPerMTok: r.USDPerMTok, Unpriced: r.Unpriced, Reason: r.Reason}
		if !r.Unknown {
			out.WaitMS = new(r.Wait.Milliseconds())
		}
		price := usdText(r.USDPerMTok) + " usd per million tokens"
		if r.Unpriced {
			price = "a guess of " + price
		}
		return printLine(cmd, out, "%s/%s, %s, %s: %s", harmless(r.Resource), harmless(r.Model), whenText(&r), price, harmless(r.Reason))
	}
	return cmd
}

func whenText(r *inspect.Route) string {
	switch {
	case r.Unknown:
		return "at an unknown time"
	case r.Wait == 0:
		return "now"
	}
	return "in " + show.Span(r.Wait)
}

// routed returns the resources of a task; only these have to be opened.
func routed(cmd *cobra.Command, task string) ([]string, error) {
	f, err := selectedConfig(cmd, nil)
	if err != nil {
		return nil, err
	}
	list, ok := f.Routes[task]
	if !ok {
		bad := &failure{code: exitUsage, message: fmt.Sprintf("unknown task %.80q", task)}
		if bad.hint = "routes: in the configuration names the models for each kind of task"; len(f.Routes) > 0 {
			known := slices.Sorted(maps.Keys(f.Routes))
			bad.hint = didYouMean(task, known, "there are routes for "+strings.Join(known, ", "))
		} else if name := unselected(configName(cmd, nil)); name != "" {
			bad.hint += "; " + selectHint(name)
		}
		return nil, bad
	}
	var names []string
	for _, route := range list {
		if !slices.Contains(names, before(route)) {
			names = append(names, before(route))
		}
	}
	return names, nil
}

// withRouted adds to resources, if there are any, the resources that their tasks can go to instead.
func withRouted(cmd *cobra.Command, resources []string) []string {
	f, err := selectedConfig(cmd, nil)
	if err != nil {
		return resources // opening them will report the error
	}
	all := slices.Clone(resources)
	for _, list := range f.Routes {
		if slices.ContainsFunc(list, func(route string) bool { return slices.Contains(resources, before(route)) }) {
			for _, route := range list {
				if !slices.Contains(all, before(route)) {
					all = append(all, before(route))
				}
			}
		}
	}
	return all
}

// before returns the resource of a route.
func before(route string) string {
	resource, _, _ := strings.Cut(route, "/")
	return resource
}

func completeTasks(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	f, err := selectedConfig(cmd, nil)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(f.Routes)), cobra.ShellCompDirectiveNoFileComp
}
