package sluice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// RouteChoice is a model that can do a kind of task.
type RouteChoice struct {
	Resource string
	Model    string
	// Part is the Model that requests for this model state, if the provider limits several models together. Empty means
	// the model itself.
	Part string
	// USDPerMTok is the approximate price of a million tokens, in dollars.
	USDPerMTok float64
	// Unpriced is set if USDPerMTok is a guess. Such a model keeps its position in the route; models with a price are
	// tried cheapest first.
	Unpriced bool
}

// maxChoices bounds the models of a route.
const maxChoices = 64

func checkRoutes(routes map[string][]RouteChoice) (map[string][]RouteChoice, error) {
	out := map[string][]RouteChoice{}
	for task, list := range routes {
		if len(list) == 0 || len(list) > maxChoices {
			return nil, invalid("route %.80q: it has %d models, and can have 1 to %d", task, len(list), maxChoices)
		}
		for _, c := range list {
			if c.Resource == "" || c.Model == "" || len(c.Model) > store.MaxName || c.USDPerMTok < 0 || c.USDPerMTok > maxPerMTok {
				return nil, invalid("route %.80q: a choice has a resource, a model, and a price of 0 to %d usd per million tokens", task, maxPerMTok)
			}
		}
		out[task] = slices.Clone(list)
	}
	return out, nil
}

// maxPerMTok is the highest price that is accepted, in dollars per million tokens.
const maxPerMTok = 1_000_000

// tasks returns the kinds of task that have routes, sorted.
func (g *Gate) tasks() []string { return slices.Sorted(maps.Keys(g.routes)) }

// Route picks the model for a kind of task: the cheapest that has room now, otherwise the one that will have room
// soonest. A model has room if [Gate.Try] would grant it to req, whose resource and model Route fills in. For units
// that req.Cost does not state, Route adds the recent average of the model. Route reserves nothing: the result is
// advice.
func (g *Gate) Route(ctx context.Context, task string, req Request) (inspect.Route, error) {
	return g.route(ctx, task, "", &req, 0)
}

// RouteOn is Route among the models of one resource, for callers that cannot use another. It may judge by a state that
// is 200 ms old.
func (g inside) RouteOn(ctx context.Context, resource, task string, req Request) (inspect.Route, error) {
	return g.route(ctx, task, resource, &req, roomsFor)
}

func (g *Gate) route(ctx context.Context, task, resource string, req *Request, within time.Duration) (inspect.Route, error) {
	list, ok := g.routes[task]
	if !ok {
		e := &Error{Err: ErrUnknownTask, Message: fmt.Sprintf("unknown task %.80q", task)}
		if e.Hint = fmt.Sprintf("there are routes for %s", strings.Join(g.tasks(), ", ")); len(g.routes) == 0 {
			e.Hint = "routes: in the configuration names the models for each kind of task"
		}
		return inspect.Route{}, e
	}
	choices, rooms, err := g.choices(ctx, of(list, resource), req, within)
	if err != nil {
		return inspect.Route{}, err
	}
	if len(choices) == 0 && resource != "" {
		return inspect.Route{}, &Error{
			Err: ErrUnknownTask, Resource: resource, Message: fmt.Sprintf("route %.80q has no model of %s", task, resource),
			Hint: "add one to it, or send to a resource that has one",
		}
	}
	if len(choices) == 0 {
		return inspect.Route{}, &Error{
			Err: ErrUnknownResource, Message: fmt.Sprintf("route %.80q: none of its resources is configured", task),
			Hint: "configured are " + strings.Join(g.names(), ", "),
		}
	}
	return route(choices, rooms), nil
}

// of returns the choices of one resource; an empty name means all resources.
func of(list []RouteChoice, resource string) []RouteChoice {
	if resource == "" {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c RouteChoice) bool { return c.Resource != resource })
}

// choices returns the choices whose resources are configured, and the room of each.
func (g *Gate) choices(ctx context.Context, list []RouteChoice, req *Request, within time.Duration) ([]RouteChoice, []room, error) {
	var choices []RouteChoice
	var rooms []room
	for _, c := range list {
		r := g.resources[c.Resource]
		if r == nil {
			continue
		}
		one := *req
		one.Model, one.Priced = partOf(&c), c.Model
		found, err := r.roomFor(ctx, one, within)
		if err != nil {
			return nil, nil, err
		}
		choices, rooms = append(choices, c), append(rooms, found)
	}
	return choices, rooms, nil
}

func partOf(c *RouteChoice) string {
	if c.Part != "" {
		return c.Part
	}
	return c.Model
}

func asChoices(choices []RouteChoice, rooms []room) []policy.Choice {
	list := make([]policy.Choice, len(choices))
	for i, place := range tryOrder(choices) {
		list[i] = policy.Choice{Price: place, Room: rooms[i].open, Wait: rooms[i].wait.Microseconds()}
		if rooms[i].unknown {
			list[i].Wait = -1
		}
	}
	return list
}

// tryOrder returns the position of each choice in the order of trying. Choices without a price keep their position in
// the route. The others take the remaining positions, cheapest first.
func tryOrder(choices []RouteChoice) []int64 {
	var priced []int
	for i := range choices {
		if !choices[i].Unpriced {
			priced = append(priced, i)
		}
	}
	slots := slices.Clone(priced)
	slices.SortStableFunc(priced, func(a, b int) int { return cmp.Compare(micros(choices[a].USDPerMTok), micros(choices[b].USDPerMTok)) })
	out := make([]int64, len(choices))
	for i := range out {
		out[i] = int64(i)
	}
	for k, i := range priced {
		out[i] = int64(slots[k])
	}
	return out
}

func micros(usd float64) int64 { return int64(usd*1e6 + 0.5) }

func route(choices []RouteChoice, rooms []room) inspect.Route {
	picked := policy.Route(asChoices(choices, rooms))
	c, at := &choices[picked.Choice], &rooms[picked.Choice]
	out := inspect.Route{Resource: c.Resource, Model: c.Model, USDPerMTok: c.USDPerMTok, Unpriced: c.Unpriced, Code: picked.Code.String()}
	if !at.open {
		out.Wait, out.Unknown = at.wait, at.unknown
	}
	switch picked.Code {
	case policy.RouteCheapest:
		out.Reason = "it is the cheapest, and has room now"
		if c.Unpriced {
			out.Reason = "it is the first in the route, and has room now; its price is not known"
		}
	case policy.RouteRoom:
		first := picked.Passed[0]
		what := "it is the cheapest"
		if c.Unpriced {
			what = "its price is not known, and it is the first in the route"
		}
		out.Reason = fmt.Sprintf("%s that has room now; %s/%s has none (%s)", what, choices[first].Resource, choices[first].Model, rooms[first].why)
	case policy.RouteSoonest:
		out.Reason = fmt.Sprintf("no model has room now; this one has room first (%s)", at.why)
	default:
		out.Reason = fmt.Sprintf("no model has room now, and it is unknown when one will; this one is the cheapest (%s)", at.why)
	}
	return out
}

// CheaperModel returns a cheaper model that does the same tasks as the request's model and has room for it now. The
// result is RESOURCE/MODEL, as in a route; empty if there is none. The state judged may be 200 ms old.
func (g *Gate) CheaperModel(ctx context.Context, req Request) (string, error) {
	return g.cheaper(ctx, &req, "")
}

// CheaperOn is CheaperModel within the same resource. It returns the name of the model only.
func (g inside) CheaperOn(ctx context.Context, req Request) (string, error) {
	best, err := g.cheaper(ctx, &req, req.Resource)
	return strings.TrimPrefix(best, req.Resource+"/"), err
}

func (g *Gate) cheaper(ctx context.Context, req *Request, within string) (string, error) {
	best, lowest := "", int64(0)
	for _, task := range g.tasks() {
		list := g.routes[task]
		i := slices.IndexFunc(list, func(c RouteChoice) bool {
			return c.Resource == req.Resource && (c.Model == req.Model || partOf(&c) == req.Model)
		})
		if i < 0 {
			continue
		}
		choices, rooms, err := g.choices(ctx, of(list, within), req, roomsFor)
		if err != nil {
			return "", err
		}
		if list[i].Unpriced {
			continue // without a price, nothing is known to be cheaper
		}
		price := micros(list[i].USDPerMTok)
		priced := asChoices(choices, rooms)
		for k := range choices {
			priced[k].Price, priced[k].Room = micros(choices[k].USDPerMTok), rooms[k].open && !choices[k].Unpriced
		}
		if k := policy.Cheaper(priced, price); k >= 0 {
			if p := priced[k].Price; best == "" || p < lowest {
				best, lowest = choices[k].Resource+"/"+choices[k].Model, p
			}
		}
	}
	return best, nil
}
