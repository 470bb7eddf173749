package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sluicehq/sluice/inspect"
)

// URIs of the resources.
const (
	statusURI = "sluice://status"
	reportURI = "sluice://report"
)

const (
	maxListed = 100     // agents in a status, and callers of each resource
	maxText   = 1 << 20 // bytes of a resource
)

// addResources adds the resources that a client can attach to a conversation.
func (s *server) addResources(to *sdk.Server) {
	s.addResource(to, &sdk.Resource{
		URI: statusURI, Name: "status", Title: "Status of the gate", MIMEType: "application/json",
		Description: "Every API with its state, limits and queue, every living agent, and budgets: what sluice status --json prints, up to 100 agents.",
	}, s.status)
	s.addResource(to, &sdk.Resource{
		URI: reportURI, Name: "report", Title: "Report of the last 24 hours", MIMEType: "application/json",
		Description: "What was sent in the last 24 hours, by whom, with retries, refusals and dollars: what sluice report --json prints, up to 100 callers for each API.",
	}, s.report)
}

func (s *server) addResource(to *sdk.Server, r *sdk.Resource, read func(context.Context) (any, error)) {
	to.AddResource(r, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		ctx, cancel := s.bound(ctx)
		defer cancel()
		v, err := read(ctx)
		if err != nil {
			return nil, failed(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if len(text) > maxText {
			return nil, fmt.Errorf("error: %s has %d bytes, more than %d\nhint: use the tools, which answer for one agent or API", r.URI, len(text), maxText)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.URI, MIMEType: r.MIMEType, Text: string(text)}}}, nil
	})
}

// status returns the status of the gate, with long lists cut.
func (s *server) status(ctx context.Context) (any, error) {
	st, err := s.Gate.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		inspect.Status
		MoreAgents int `json:"more_agents"`
	}{Status: st, MoreAgents: max(len(st.Agents)-maxListed, 0)}
	out.Agents = out.Agents[:min(len(out.Agents), maxListed)]
	for i := range out.Resources {
		r := &out.Resources[i]
		r.Callers = r.Callers[:min(len(r.Callers), maxListed)]
		r.Limits = r.Limits[:min(len(r.Limits), maxListed)]
		r.Models = r.Models[:min(len(r.Models), maxListed)]
	}
	return out, nil
}

// report returns the report of the last day, without the callers that sent the least.
func (s *server) report(ctx context.Context) (any, error) {
	rep, err := s.Gate.Report(ctx, time.Now().Add(-defaultHours*time.Hour))
	if err != nil {
		return nil, err
	}
	for i := range rep.Resources {
		r := &rep.Resources[i]
		r.Callers = r.Callers[:min(len(r.Callers), maxListed)]
	}
	if s.Show != nil {
		return s.Show(&rep), nil
	}
	return rep, nil
}
