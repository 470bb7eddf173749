// Package mcp lets agents ask the gate about their quota with the Model Context Protocol: what is left, why they wait,
// whether to start new work, and what they have spent. Callers with a token of the highest class can also pause and
// resume resources.
//
// [New] returns the server for one caller. The daemon serves it at /mcp ([ServeHTTP]), and sluice mcp on its standard
// input and output ([ServeStdio]).
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// Source answers the questions of the tools. [*sluice.Gate] implements it.
type Source interface {
	Status(ctx context.Context) (inspect.Status, error)
	Why(ctx context.Context, resource string) ([]inspect.Waiting, error)
	StartNewWork(ctx context.Context, agent string) (inspect.NewWork, error)
	Report(ctx context.Context, since time.Time) (inspect.Report, error)
	Pause(ctx context.Context, resource string, d time.Duration, reason string) error
	Resume(ctx context.Context, resource string) error
}

// Caller says who asks.
type Caller struct {
	// Agent is the caller's name. If it is empty, the tools answer for all agents, unless a call names one.
	Agent string
	// Lower reports that the caller is below the highest class: an amber light holds it.
	Lower bool
	// Control reports that the caller may pause and resume resources.
	Control bool
	// Pauses is the reason of a pause if the call states none.
	Pauses string
}

// Options configures a server.
type Options struct {
	Gate   Source
	Caller Caller
	// Version is the version of the program.
	Version string
	// Show converts a report for sluice://report. Nil means the report itself.
	Show func(*inspect.Report) any
}

// Bounds on answers. Agents pay for every line.
const (
	maxResources = 50
	maxLimits    = 50 // of each resource
	maxWaiting   = 50
	maxBudgets   = 50
	maxName      = 128 // bytes of an agent's name, as in the proxy
	callWithin   = 30 * time.Second
)

// instructions tells an agent what the server is for.
const instructions = "Sluice is the gate that shares one API quota among many agents. Before you start a large task or more " +
	"agents, call may_i_start_new_work. Call remaining_quota to plan how much to do until the next reset. If your requests are " +
	"slow, call why_am_i_waiting. Do not retry or poll around the gate: it holds requests and sends them in order."

// schemas is shared by all servers, because each request to the daemon makes one.
var schemas = sdk.NewSchemaCache()

// server implements the tools for one caller.
type server struct {
	Options
	until context.Context // ends running calls, in addition to the call's own context
}

// New returns the server for a caller. Running calls end when until does.
func New(until context.Context, o Options) *sdk.Server {
	s := &server{Options: o, until: until}
	out := sdk.NewServer(
		&sdk.Implementation{Name: "sluice", Title: "Sluice: the shared API quota", Version: cmp.Or(o.Version, "devel")},
		&sdk.ServerOptions{
			Instructions: instructions, SchemaCache: schemas,
			// Neither list changes while a caller is connected, so no stream has to stay open for that.
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
		},
	)
	add(s, out, &sdk.Tool{
		Name: "remaining_quota", Title: "Remaining quota", Annotations: reads,
		Description: "How much of the shared API quota is left: for each API its limits with what remains of them and the seconds " +
			"until they reset, how many requests wait, and your own share. Use it to plan how much work fits before the next reset.",
	}, s.quota)
	add(s, out, &sdk.Tool{
		Name: "why_am_i_waiting", Title: "Why am I waiting", Annotations: reads,
		Description: "Why your requests wait in the gate's queue: the limit in the way, who uses it, your place in the queue and the " +
			"seconds until your turn. Also says if an agent that you depend on is held.",
	}, s.waits)
	add(s, out, &sdk.Tool{
		Name: "may_i_start_new_work", Title: "May I start new work", Annotations: reads,
		Description: "Whether this is a good moment to start new work, yes or no, with the reason and the seconds until it is worth " +
			"asking again. Ask before a large task, and before you start more agents. Work that you have begun may go on either way.",
	}, s.start)
	add(s, out, &sdk.Tool{
		Name: "what_have_i_spent", Title: "What have I spent", Annotations: reads,
		Description: "What you have sent and spent in the last hours: requests, retries, refusals (429), tokens and dollars for each " +
			"API, and what is left of the budgets that you spend from.",
	}, s.spent)
	add(s, out, &sdk.Tool{
		Name: "pause_resource", Title: "Pause an API for everyone", Annotations: &sdk.ToolAnnotations{OpenWorldHint: no},
		Description: "Hold every request of every agent to one API for some minutes, for example while it reports an incident. " +
			"Requests that were sent go on. This stops other agents too: use it only if you were asked to.",
	}, s.pause)
	add(s, out, &sdk.Tool{
		Name: "resume_resource", Title: "End a pause", Annotations: &sdk.ToolAnnotations{OpenWorldHint: no, IdempotentHint: true},
		Description: "End every pause of one API, also one that followed a 429. Waiting requests then go in order, a few at first. " +
			"Use it only if you were asked to.",
	}, s.resume)
	if !o.Caller.Control { // the tools would refuse
		out.AddReceivingMiddleware(without("pause_resource", "resume_resource"))
	}
	s.addResources(out)
	return out
}

var (
	no    = new(bool)
	reads = &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no}
)

// without hides tools from the list. They can still be called, and then say why they refuse.
func without(names ...string) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			res, err := next(ctx, method, req)
			if list, ok := res.(*sdk.ListToolsResult); ok && err == nil {
				list.Tools = slices.DeleteFunc(slices.Clone(list.Tools), func(t *sdk.Tool) bool { return slices.Contains(names, t.Name) })
			}
			return res, err
		}
	}
}

// add adds a tool that answers with data and with a sentence.
func add[In, Out any](s *server, to *sdk.Server, t *sdk.Tool, f func(ctx context.Context, in In) (Out, string, error)) {
	sdk.AddTool(to, t, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		ctx, cancel := s.bound(ctx)
		defer cancel()
		out, sentence, err := f(ctx, in)
		if err != nil {
			return nil, out, failed(err)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: sentence}}}, out, nil
	})
}

// bound returns a context that ends when the call's time is over or the client has left.
func (s *server) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	stop := context.AfterFunc(s.until, cancel)
	return ctx, func() { stop(); cancel() }
}

// failed formats an error for an agent: what is wrong, and what to do.
func failed(err error) error {
	var e *sluice.Error
	var h interface{ Hint() string }
	switch {
	case errors.As(err, &e) && e.Hint != "":
		return fmt.Errorf("error: %w\nhint: %s", err, e.Hint)
	case errors.As(err, &h) && h.Hint() != "":
		return fmt.Errorf("error: %w\nhint: %s", err, h.Hint())
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("error: the gate did not answer within %v\nhint: ask again later", callWithin)
	}
	return fmt.Errorf("error: %w", err)
}

// agent returns the agent that a call is about: the one it names, or else the caller. Reading is not restricted; see
// docs/remote.md#rights.
func (s *server) agent(named string) (string, error) {
	if len(named) > maxName {
		return "", fmt.Errorf("agent: the name has %d bytes, more than %d", len(named), maxName)
	}
	return cmp.Or(named, s.Caller.Agent), nil
}

// about returns the agent that a call is about, the state of the gate, and the resources asked for: the named one, or
// all.
func (s *server) about(ctx context.Context, agent, resource string) (string, inspect.Status, []inspect.ResourceStatus, error) {
	agent, err := s.agent(agent)
	if err != nil {
		return "", inspect.Status{}, nil, err
	}
	st, err := s.Gate.Status(ctx)
	if err != nil || resource == "" {
		return agent, st, st.Resources, err
	}
	one, err := pick(st.Resources, resource)
	if err != nil {
		return "", st, nil, err
	}
	return agent, st, []inspect.ResourceStatus{*one}, nil
}
