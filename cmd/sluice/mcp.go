package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/daemon/mcp"
	"github.com/sluicehq/sluice/inspect"
)

func newMCP() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp [--agent A] [--class C]",
		Short: "Let an agent ask about its quota (Model Context Protocol)",
		Long: `Mcp speaks the Model Context Protocol on stdin and stdout. Agents such as Claude Code and Codex start
it once it is in their list of MCP servers. It has these tools:

  remaining_quota       what is left of each limit, and the seconds until it resets
  why_am_i_waiting      the limit in the way, who uses it, the position in the queue
  may_i_start_new_work  yes or no, why, and the seconds until it is worth asking again
  what_have_i_spent     requests, retries, tokens and dollars, and what is left of budgets
  pause_resource        hold all callers of an API
  resume_resource       end a pause

and the resources sluice://status and sluice://report. It reads the store of the other commands. The
agent is --agent, else SLUICE_AGENT; without either the answers cover all agents. A daemon serves the
same at /mcp, with the rights of the caller's token. docs/mcp.md shows how to add it to each client.

A line that is not a JSON-RPC message is answered with an error.

Exit codes: 0 the client ended the conversation, or a signal came; 64 usage; 70 stdin or stdout failed;
78 bad configuration.`,
		Example: `  claude mcp add sluice -- sluice mcp
  claude mcp add sluice --env SLUICE_AGENT=indexer -- sluice mcp
  codex mcp add sluice -- sluice mcp
  claude mcp add --transport http sluice http://127.0.0.1:7979/mcp --header "Authorization: Bearer $SLUICE_TOKEN"`,
		Args: atMost(0),
	}
	cmd.Flags().String("agent", "", "agent `NAME`; else SLUICE_AGENT, else all agents")
	cmd.Flags().String("class", "", "priority `CLASS` of the agent; else the configured one, else the lowest")
	completeFlag(cmd, "agent", completeAgents)
	completeFlag(cmd, "class", completeClasses)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		caller, err := localCaller(cmd)
		if err != nil {
			return err
		}
		ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		gate := &localGate{cmd: cmd}
		defer gate.Close()
		o := mcp.Options{
			Gate: gate, Caller: caller, Version: buildVersion(debug.ReadBuildInfo()).Version,
			Show: func(r *inspect.Report) any { return asReport(r) },
		}
		if err := mcp.ServeStdio(ctx, o, os.Stdin, noClose{cmd.OutOrStdout()}); err != nil {
			return &failure{code: exitInternal, message: "the MCP session failed: " + err.Error(), hint: "this command is for MCP clients; docs/mcp.md shows how to add it"}
		}
		return nil
	}
	return cmd
}

// noClose is an output that Close leaves open.
type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// localCaller returns the caller who starts the command: the user of this machine, with all rights of the command line.
// It reports a bad configuration before a client waits for answers.
func localCaller(cmd *cobra.Command) (mcp.Caller, error) {
	f, err := configOf(cmd)
	if err != nil {
		return mcp.Caller{}, err
	}
	if _, err := placeOf(cmd, f); err != nil {
		return mcp.Caller{}, err
	}
	c := mcp.Caller{Control: true, Lower: true, Pauses: "paused by " + loginName()}
	id, err := identityOf(cmd, &session{file: f})
	if err != nil {
		return c, err
	}
	c.Lower = id.class != f.Classes[0].Name
	if cmd.Flags().Changed("agent") || os.Getenv(envAgent) != "" { // the login name is not an agent here
		c.Agent, c.Pauses = id.agent, "paused by "+id.agent
	}
	return c, nil
}

// localGate is the store of the other commands, opened for reading. The first call opens it. A call that comes
// staleAfter later, or after a failure, opens it again, so that it sees new configurations and pools.
type localGate struct {
	cmd *cobra.Command

	mu    sync.Mutex // held while the store is opened, so that concurrent calls open it once
	s     *session   // nil if not open
	at    time.Time  // when it was opened
	users int
	stale bool // closed when the last user is done
}

const staleAfter = 30 * time.Second

// look reads with an open session.
func look[T any](g *localGate, read func(s *session) (T, error)) (got T, err error) {
	s, err := g.take()
	if err != nil {
		return got, err
	}
	got, err = read(s)
	g.give(errors.Is(err, sluice.ErrStore))
	return got, fail(err)
}

// change calls do with a session of its own, whose store exists.
func (g *localGate) change(do func(s *session) error) (err error) {
	s, err := openReadOnly(g.cmd)
	if err != nil {
		return err
	}
	defer s.closing(&err)
	return fail(do(s))
}

func (g *localGate) take() (*session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.s != nil && g.users == 0 && (g.s.empty || time.Since(g.at) > staleAfter) {
		g.end()
	}
	if g.s == nil {
		s, err := openToLook(g.cmd)
		if err != nil {
			return nil, err
		}
		g.s, g.at, g.stale = s, time.Now(), false
	}
	g.users++
	return g.s, nil
}

func (g *localGate) give(failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	if g.stale = g.stale || failed; g.stale && g.users == 0 {
		g.end()
	}
}

// end closes the store. It holds nothing in it, so errors do not matter.
func (g *localGate) end() {
	if g.s != nil {
		_ = g.s.close()
		g.s = nil
	}
}

// Close closes the store. It must not run concurrently with calls.
func (g *localGate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end()
}

func (g *localGate) Status(ctx context.Context) (inspect.Status, error) {
	return look(g, func(s *session) (inspect.Status, error) { return s.gate.Status(ctx) })
}

func (g *localGate) Why(ctx context.Context, resource string) ([]inspect.Waiting, error) {
	return look(g, func(s *session) ([]inspect.Waiting, error) { return s.gate.Why(ctx, resource) })
}

func (g *localGate) StartNewWork(ctx context.Context, agent string) (inspect.NewWork, error) {
	return look(g, func(s *session) (inspect.NewWork, error) { return s.gate.StartNewWork(ctx, agent) })
}

func (g *localGate) Report(ctx context.Context, since time.Time) (inspect.Report, error) {
	return look(g, func(s *session) (inspect.Report, error) { return readReport(ctx, s, since) })
}

func (g *localGate) Pause(ctx context.Context, resource string, d time.Duration, reason string) error {
	return g.change(func(s *session) error { return s.gate.Pause(ctx, resource, d, reason) })
}

func (g *localGate) Resume(ctx context.Context, resource string) error {
	return g.change(func(s *session) error { return s.gate.Resume(ctx, resource) })
}
