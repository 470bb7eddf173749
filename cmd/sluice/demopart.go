package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/demo"
)

// demoPartArgs start this program as one of the demo's processes.
var demoPartArgs = []string{"demo", "part"}

// partEndWithin is how long a part may take to end. The demo waits longer.
const partEndWithin = 5 * time.Second

// newDemoPart returns the hidden command that the demo starts. A part ends when its input does, so that none is left
// when the demo is killed.
func newDemoPart() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "part",
		Short:  "Be one of the processes of a demo",
		Hidden: true,
		Args:   atMost(0),
		RunE:   func(cmd *cobra.Command, _ []string) error { return needs("PART")(cmd, nil) },
	}
	limits, provider := "", ""
	gate := &cobra.Command{
		Use:  "gate UPSTREAM",
		Args: needs("UPSTREAM"),
		RunE: func(cmd *cobra.Command, args []string) error { return demoGate(cmd, args[0], provider, limits) },
	}
	gate.Flags().StringVar(&limits, "limits", "", "what the gate is told of limits, as a list of YAML")
	gate.Flags().StringVar(&provider, "provider", "anthropic", "whose headers the gate reads")
	cmd.AddCommand(gate, &cobra.Command{
		Use:  "agent",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inPart(demo.RunAgent(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), os.Getenv))
		},
	}, &cobra.Command{
		Use:                "provider",
		DisableFlagParsing: true, // mock parses them
		RunE: func(cmd *cobra.Command, args []string) error {
			return whileFed(cmd, nil, append([]string{"mock"}, args...)...)
		},
	})
	return cmd
}

// demoGate runs the gate of a demo. Like a user without numbers it states no limits and learns them from responses. The
// gate of a user's own fleet is told its limits.
func demoGate(cmd *cobra.Command, upstream, provider, limits string) error {
	signal.Ignore(syscall.SIGPIPE) // a killed demo no longer reads the log; the directory must be removed all the same
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return inPart(err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // errors do not matter: it is a temporary directory
	defer remove()
	config := filepath.Join(dir, "sluice.yaml")
	text := fmt.Sprintf("resources:\n  anthropic:\n    provider: %s\n    upstream: %q\n", provider, upstream)
	if limits != "" {
		text += "    limits: " + limits + "\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return inPart(err)
	}
	// The made-up traffic stays out of the user's event log and reports. The directory is removed after the log is closed.
	if err := os.Setenv("XDG_STATE_HOME", dir); err != nil {
		return inPart(err)
	}
	// Only this process uses the gate. A file store would recreate its directory while it is being removed.
	return whileFed(cmd, remove, "serve", "--json", "--listen", "127.0.0.1:0", "--config", config, "--store", "mem:")
}

// whileFed runs a command line until the input ends. If the command does not end soon after, whileFed calls atLast and
// exits the process.
func whileFed(cmd *cobra.Command, atLast func(), args ...string) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	in := cmd.InOrStdin()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
		time.AfterFunc(partEndWithin, func() {
			if atLast != nil {
				atLast()
			}
			os.Exit(exitInternal)
		})
	}()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(cmd.OutOrStdout())
	root.SetErr(cmd.ErrOrStderr())
	return root.ExecuteContext(ctx)
}

// inPart returns the failure of a part.
func inPart(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitInternal, message: err.Error()}
}
