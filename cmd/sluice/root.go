package main

import (
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// run carries out one command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if cmd, err := root.ExecuteC(); err != nil {
		if child, ok := errors.AsType[childExit](err); ok {
			return int(child)
		}
		f := asFailure(err)
		if f.hint == usage("sluice") {
			f.hint = usage(cmd.CommandPath())
		}
		f.report(stdout, stderr, wantsJSON(args))
		return f.code
	}
	return exitOK
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "One gate for all callers of a shared API quota",
		Long: "Sluice is one gate that all callers of a shared API quota pass through. It queues requests, shares the\nquota between agents, and pauses all callers when the provider answers 429.\n\n" +
			"To begin, sluice demo shows it in a minute, without network or key. sluice setup finds the clients on this\nmachine. sluice run puts any command behind the gate. docs/cli.md describes every command.",
		Example:       "  sluice demo\n  sluice setup\n  sluice run -- claude\n  sluice status",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          atMost(0),
	}
	var version bool
	root.Flags().BoolVarP(&version, "version", "v", false, "print version, commit and Go version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if version {
			return printVersion(cmd)
		}
		return cmd.Help()
	}
	root.SetFlagErrorFunc(explainFlag)
	root.PersistentFlags().Bool("json", false, "print JSON")
	root.PersistentFlags().String("config", "", "configuration `FILE`; else SLUICE_CONFIG")
	root.PersistentFlags().String("store", "", "store `URL`: file:, file:PATH, redis://HOST:6379, http://HOST:7979 or mem:; else SLUICE_STORE, else the configured one")
	root.SetHelpCommand(newHelp())
	if err := root.MarkPersistentFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // cannot happen: the flag exists
	}
	root.AddCommand(newAcquire(), newRelease(), newObserve(), newPause(), newResume(), newRepair(), newRun(), newServe(), newDLQ())
	root.AddCommand(newStatus(), newWhy(), newAgents(), newPool(), newReport(), newRoute(), newDoctor(), newTop(), newPing(), newSetup(), newService())
	root.AddCommand(newConfig(), newToken(), newKey(), newCA(), newSimulate(), newReplay(), newMock(), newDemo(), newMCP(), newVersion(), newMan())
	return root
}

// wantsJSON searches the arguments for --json, because parsing may have failed before it got there.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}
