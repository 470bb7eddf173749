package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/mcp"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/proxy"
)

// serveMCP answers agents that ask about their quota. Access and agent names follow the same rules as in the API.
func (g *generation) serveMCP(w http.ResponseWriter, r *http.Request) {
	caller, err := g.mcpCaller(r)
	if err != nil {
		g.daemon.refuse(w, r, api.ProblemOf(err))
		return
	}
	mcp.ServeHTTP(w, r, mcp.Options{
		Gate: mcpGate{API: g.api, generation: g}, Caller: caller, Version: g.daemon.options.Version, Show: func(r *inspect.Report) any { return g.daemon.options.Show(r, false) },
	})
}

// maxAgentName bounds the length of an agent's name, as in the proxy.
const maxAgentName = 128

// mcpCaller returns who asks: the token's agent, or else the agent that a header names.
func (g *generation) mcpCaller(r *http.Request) (mcp.Caller, error) {
	who, err := g.identify(r)
	if err != nil {
		return mcp.Caller{}, err
	}
	agent, class := proxy.Named(r.Header)
	switch {
	case len(agent) > maxAgentName:
		return mcp.Caller{}, &api.Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the name of the agent has %d bytes, more than %d", len(agent), maxAgentName), Hint: "shorten it"}
	case who.Agent != "" && agent != "" && agent != who.Agent:
		return mcp.Caller{}, &api.Problem{
			Status: http.StatusForbidden, Detail: fmt.Sprintf("the token is agent %s's, not %.80q's", who.Agent, agent), Hint: "leave the agent out, or use its own token",
		}
	}
	agent = cmp.Or(who.Agent, agent)
	in := slices.Index(g.classes, cmp.Or(class, g.gate.Class(agent)))
	switch {
	case in < 0:
		return mcp.Caller{}, &api.Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("unknown class %.80q", class), Hint: "use one of: " + strings.Join(g.classes, ", ")}
	case class != "" && in < who.Highest:
		return mcp.Caller{}, &api.Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("the token allows class %s at most, not %s", g.classes[who.Highest], class)}
	}
	return mcp.Caller{
		Agent: agent, Lower: max(in, who.Highest) > 0, Control: who.Highest == 0, Pauses: "paused by " + cmp.Or(agent, who.Token, "an agent"),
	}, nil
}

// mcpGate is the gate that MCP reads: it includes the pools that the configuration does not name, and its reports
// include dollars.
type mcpGate struct {
	*api.API   // Status, Why, Pause, Resume
	generation *generation
}

func (m mcpGate) StartNewWork(ctx context.Context, agent string) (inspect.NewWork, error) {
	return m.generation.gate.StartNewWork(ctx, agent)
}

func (m mcpGate) Report(ctx context.Context, since time.Time) (inspect.Report, error) {
	return m.generation.report(ctx, since)
}
