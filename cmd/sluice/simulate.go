package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/plot"
)

func newSimulate() *cobra.Command {
	var run simulation
	cmd := &cobra.Command{
		Use:   "simulate [SCENARIO|FILE.yaml]",
		Short: "Run a fleet against a model of its provider, in virtual time",
		Long: "Simulate runs a fleet against a model of its provider under several strategies and shows\n" +
			"what each costs: refused requests, time, money, fairness. Without an argument it lists the\n" +
			"built-in scenarios.\n\n" +
			"Your own file names a provider with its limits and the agents that call it. A complete\n" +
			"example; docs/scenarios.md describes every field:\n\n" +
			"  name: my-fleet\n" +
			"  provider:\n" +
			"    limits:\n" +
			"      - {name: minute, size: 100/min}\n" +
			"  agents:\n" +
			"    - {name: web, class: p0, jobs: 200, every: 3s}\n" +
			"    - {name: batch, class: p2, calls: 300, workers: 8}\n\n" +
			"A file may have 100,000 agents and 3,000,000 calls. The scenario scale is a fleet of that size;\n" +
			"it takes a minute or two. Ctrl-C ends a run.\n\n" +
			"--ablate runs the gate alone, once as it is and once without each of its mechanisms, and shows\n" +
			"what each contributes.",
		Example: "  sluice simulate six-committers\n  sluice simulate my-fleet.yaml --json\n  sluice simulate squad --plot squad.svg\n  sluice simulate overnight --ablate\n  sluice simulate scale",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				run.scenario = args[0]
				ctx, ignore := withSignals(cmd.Context())
				defer ignore()
				err := run.carryOut(ctx, cmd)
				if c := signalOf(ctx); c != nil && err != nil {
					f := asFailure(c.failure("the simulation ran"))
					f.hint = "no result was written"
					return f
				}
				return err
			}
			if run.ablate {
				return &failure{code: exitUsage, message: "--ablate needs a scenario to run", hint: "sluice simulate lists the scenarios that need no file"}
			}
			if run.plot != "" {
				return &failure{code: exitUsage, message: "--plot needs a scenario to draw", hint: "sluice simulate lists the scenarios that need no file"}
			}
			return listScenarios(cmd)
		},
	}
	cmd.ValidArgsFunction = completeScenarios
	cmd.Flags().Uint64Var(&run.seed, "seed", 1, "seed of all random draws; the same seed gives the same figures")
	cmd.Flags().StringVar(&run.plot, "plot", "", "also draw the runs on the light tail into `FILE.svg`")
	cmd.Flags().BoolVar(&run.ablate, "ablate", false, "show what each mechanism of the gate contributes, by leaving it out")
	return cmd
}

func listScenarios(cmd *cobra.Command) error {
	type entry struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	var list []entry
	width := 0
	for _, sc := range sim.Builtin() {
		list = append(list, entry{sc.Name, sc.About})
		width = max(width, len(sc.Name))
	}
	return printResult(cmd, map[string]any{"scenarios": list}, func(s *screen) {
		for _, e := range list {
			s.line("%-*s  %s", width, e.Name, e.About)
		}
	})
}

// simulation holds the flags of simulate.
type simulation struct {
	scenario string // name or file
	seed     uint64
	plot     string // file; empty means none
	ablate   bool
}

func (s *simulation) carryOut(ctx context.Context, cmd *cobra.Command) error {
	sc, err := loadScenario(s.scenario)
	if err != nil {
		return err
	}
	if s.ablate {
		return s.leaveOut(ctx, sc, cmd)
	}
	picture := outFile{flag: "--plot", what: "picture", path: s.plot}
	if s.plot != "" {
		if err := picture.check(); err != nil {
			return err
		}
	}
	p := newProgress(cmd.ErrOrStderr(), sc.Name)
	rep, err := sim.Simulate(ctx, sc, s.seed, p.step)
	p.end()
	if err != nil {
		return tooLong(err)
	}
	if s.plot != "" {
		if err := picture.write(func(w io.Writer) error { return plot.SVG(w, sc, rep) }); err != nil {
			return err
		}
	}
	return printResult(cmd, rep, func(s *screen) { s.simulated(rep) })
}

// tooLong returns the error for a run that takes too long.
func tooLong(err error) error {
	return &failure{code: exitInternal, message: err.Error(), hint: "a shorter horizon or fewer calls make it smaller"}
}

// loadScenario loads a file if arg looks like a path, and otherwise a built-in scenario by name.
func loadScenario(arg string) (*sim.Scenario, error) {
	if !strings.ContainsAny(arg, `/\`) && !strings.HasSuffix(arg, ".yaml") && !strings.HasSuffix(arg, ".yml") {
		sc, err := sim.Load(arg)
		if unknown, ok := errors.AsType[*sim.UnknownScenario](err); ok {
			return nil, &failure{code: exitUsage, message: err.Error(), hint: didYouMean(arg, unknown.Known, "known are "+strings.Join(unknown.Known, ", ")+"; a file's name ends in .yaml")}
		}
		return sc, err
	}
	f, err := os.Open(arg)
	if err != nil {
		code := exitConfig
		if errors.Is(err, fs.ErrNotExist) {
			code = exitUsage
		}
		return nil, &failure{code: code, message: err.Error(), hint: "sluice simulate lists the scenarios that need no file"}
	}
	defer f.Close() //nolint:errcheck // it was only read
	sc, err := sim.Parse(arg, f)
	if bad, ok := errors.AsType[*sim.ParseError](err); ok {
		return nil, &failure{code: exitConfig, message: bad.Error(), detail: bad.Excerpt, hint: "docs/scenarios.md describes every field"}
	}
	if err != nil {
		return nil, &failure{code: exitConfig, message: err.Error()}
	}
	return sc, nil
}
