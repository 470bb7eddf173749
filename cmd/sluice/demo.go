package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/demo"
)

// exitNotAsPromised ends a demo whose result is not as promised. The result itself says why.
const exitNotAsPromised = childExit(1)

func newDemo() *cobra.Command {
	var fast bool
	var scenario string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch six agents share one key, without the gate and with it",
		Long: `Demo starts a mock provider with a limit of 120 requests a minute, and six agents of three classes
that share one key, all as processes on this machine. First each agent backs off on its own. Then
the same agents do the same work through sluice serve. A table compares both. It takes
about a minute, needs no network and no key, and leaves nothing behind. docs/demo.md explains the
figures.

--scenario runs a fleet of your own instead, live: a file as for sluice simulate, or the name of a built-in
scenario. sluice replay --scenario writes one from a log. It takes twice as long as the work.

Exit codes: 0 no request was refused through the gate, and it was faster; 1 otherwise, and the table
says why; 64 usage; 70 a process failed; 128+n ended by signal n.`,
		Example: "  sluice demo\n  sluice demo --fast --json\n  sluice demo --scenario my-fleet.yaml",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			script := demo.Minute()
			if fast {
				script = demo.Fast()
			}
			if cmd.Flags().Changed("scenario") {
				var err error
				if script, err = ownDemo(scenario, fast); err != nil {
					return err
				}
			}
			return runDemo(cmd, script)
		},
	}
	cmd.Flags().BoolVar(&fast, "fast", false, "fewer calls, about 20 seconds")
	cmd.Flags().StringVar(&scenario, "scenario", "", "run the fleet of a scenario: `FILE.yaml` as for sluice simulate, or a built-in name")
	completeFlag(cmd, "scenario", completeScenarios)
	cmd.AddCommand(newDemoPart())
	return cmd
}

// ownDemo returns the demo of a user's own fleet.
func ownDemo(scenario string, fast bool) (demo.Script, error) {
	if fast {
		return demo.Script{}, &failure{code: exitUsage, message: "--fast is the built-in fleet: it does not go with --scenario", hint: "fewer calls in the scenario make it faster"}
	}
	sc, err := loadScenario(scenario)
	if err != nil {
		return demo.Script{}, err
	}
	script, err := demo.FromScenario(sc)
	if err != nil {
		return script, &failure{code: exitUsage, message: "the scenario cannot be run live: " + err.Error(), hint: "sluice simulate runs it in virtual time"}
	}
	return script, nil
}

func runDemo(cmd *cobra.Command, script demo.Script) error {
	self, err := os.Executable()
	if err != nil {
		return &failure{code: exitInternal, message: "cannot find the sluice executable: " + err.Error()}
	}
	out, live := cmd.OutOrStdout(), cmd.OutOrStdout()
	if asJSON(cmd) {
		live = io.Discard // stdout is only for the result
		if stderr := cmd.ErrOrStderr(); isTerminal(stderr) {
			live = stderr
		}
	}
	view := newDemoView(live, &script)
	ctx, ignore := withSignals(cmd.Context())
	defer ignore()
	report, err := demo.Run(ctx, demo.Options{Script: script, Self: self, PartArgs: demoPartArgs, Show: view.show})
	view.end()
	if c := signalOf(ctx); c != nil {
		f := asFailure(c.failure("the demo ran"))
		f.hint = "all that it had started has ended"
		return f
	}
	if err != nil {
		return &failure{code: exitInternal, message: "the demo could not be run: " + err.Error(), hint: "it needs to listen on 127.0.0.1, to start itself, and a directory for temporary files"}
	}
	if asJSON(cmd) {
		err = written(printJSON(out, report))
	} else {
		err = printDemo(out, report, script.Gate != "")
	}
	if err == nil && !report.OK {
		err = exitNotAsPromised
	}
	return err
}
