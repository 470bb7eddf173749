package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/store"
)

// replaying holds the flags of replay.
type replaying struct {
	format, resource        string
	requests, input, output rateFlag
	tokens                  rateFlag
	burst, concurrency      int64
	algorithm               string
	perModel                bool
	classes                 []string
	retryWithin, follow     timeFlag
	seed                    uint64
	plot                    bool
	html, scenario, config  string
}

func newReplay() *cobra.Command {
	f := &replaying{retryWithin: timeFlag(replay.DefaultRetryWithin), follow: timeFlag(replay.DefaultFollow)}
	cmd := &cobra.Command{
		Use:   "replay LOG",
		Short: "Replay a log through the gate in virtual time: 429s, duration and cost, before and after",
		Long: `Replay reads a log of requests and shows what the gate would have made of them: refusals (429), duration,
waiting time and cost, in the log and with the gate. Nothing is sent.

LOG is an event log of Sluice (its directory or a file), an access log of JSON lines or CSV with time, caller,
model, tokens and status, or LiteLLM's spend log (JSON, JSON lines, CSV). - reads standard input. The format is
guessed; --format states it.

The limits come from --requests and the like, else from --config, else from the refusals in the log. A request
that was refused and sent again is one call. docs/replay.md states every assumption.

--scenario writes a fleet like the log's for sluice simulate and sluice demo. --config-out writes a configuration to
start from.`,
		Example: "  sluice replay ~/.local/state/sluice\n  sluice replay access.jsonl --requests 100/min --class web=p0 --plot\n" +
			"  sluice replay spend.csv --config sluice.yaml --html replay.html\n  sluice replay access.jsonl --scenario fleet.yaml --config-out sluice.yaml",
		Args: needs("LOG"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", "format of the log: "+strings.Join(replay.Formats, ", ")+"; else it is guessed")
	flags.StringVar(&f.resource, "resource", "", "replay the requests to the `RESOURCE`; else the one with the most, and its limits in the configuration")
	flags.Var(&f.requests, "requests", "limit on requests, such as 100/min")
	flags.Var(&f.input, "input-tokens", "limit on input tokens, such as 50000/min")
	flags.Var(&f.output, "output-tokens", "limit on output tokens, such as 10000/min")
	flags.Var(&f.tokens, "tokens", "limit on all tokens, such as 60000/min")
	flags.Int64Var(&f.concurrency, "concurrency", 0, "limit on requests under way")
	flags.StringVar(&f.algorithm, "algorithm", "bucket", "how the limits are enforced: "+strings.Join(mock.Algorithms, ", "))
	flags.Int64Var(&f.burst, "burst", 0, "how many requests the bucket of --requests holds; else one window's worth")
	flags.BoolVar(&f.perModel, "per-model", false, "the limits count for each model")
	flags.StringArrayVar(&f.classes, "class", nil, "class of a caller as `CALLER=CLASS`; can be given several times")
	flags.Var(&f.retryWithin, "retry-within", "a request this long after a refusal of the same caller and model can be its retry")
	flags.Var(&f.follow, "follow", "a call that begins within this time after its caller's previous call waited for that call; 0: no call waited")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of all random draws")
	flags.BoolVar(&f.plot, "plot", false, "also draw requests over time")
	flags.StringVar(&f.html, "html", "", "also write one self-contained page with plots into `FILE`; - prints the page")
	flags.StringVar(&f.scenario, "scenario", "", "also write a scenario for sluice simulate into `FILE.yaml`, which must not exist; - prints it")
	flags.StringVar(&f.config, "config-out", "", "also write a configuration to start from into `FILE.yaml`, which must not exist; - prints it")
	completeFlag(cmd, "format", cobra.FixedCompletions(replay.Formats, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "algorithm", cobra.FixedCompletions(mock.Algorithms, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *replaying) run(cmd *cobra.Command, name string) error {
	outputs, err := f.outputs(cmd, name)
	if err != nil {
		return err
	}
	if f.format != "" && !slices.Contains(replay.Formats, f.format) {
		return &failure{code: exitUsage, message: fmt.Sprintf("--format %.80q is not one of %s", f.format, strings.Join(replay.Formats, ", ")), hint: "without it the format is guessed"}
	}
	setup, resource, err := f.setup(cmd)
	if err != nil {
		return err
	}
	log, err := replay.Read(name, f.format, resource, cmd.InOrStdin())
	if err != nil {
		return badLog(err)
	}
	if err := f.checkCallers(log); err != nil {
		return err
	}
	p := newProgress(cmd.ErrOrStderr(), "replay")
	setup.Progress = func(part float64) { p.step(sim.Progress{Strategy: "the gate", Runs: 1, Part: part}) }
	r, err := replay.New(log, *setup)
	if _, ok := errors.AsType[*replay.ErrNoLimits](err); ok {
		return &failure{code: exitUsage, message: err.Error(), hint: "--requests 100/min and the like state them, or --config FILE"}
	}
	if err != nil {
		return &failure{code: exitInternal, message: err.Error()}
	}
	rep, err := r.Run()
	p.end()
	if err != nil {
		return tooLong(err)
	}
	printed := false
	for _, o := range outputs {
		if err := o.write(cmd.OutOrStdout(), r, rep); err != nil {
			return err
		}
		printed = printed || o.file.path == "-"
	}
	if printed {
		return nil
	}
	return printResult(cmd, rep, func(s *screen) { s.replay(rep, f.plot) })
}

// badLog returns the error for a log that cannot be read.
func badLog(err error) error {
	hint := "docs/replay.md describes the formats; --format says which one it is"
	if e, ok := errors.AsType[*replay.Error](err); ok {
		hint = cmp.Or(e.Hint, hint)
	}
	return &failure{code: exitUsage, message: harmless(err.Error()), hint: hint}
}

// setup returns what the log is replayed against: from the flags, or else from the configuration.
func (f *replaying) setup(cmd *cobra.Command) (*replay.Setup, string, error) {
	s := &replay.Setup{
		Assumptions: replay.Assumptions{RetryWithin: time.Duration(f.retryWithin), Follow: time.Duration(f.follow)},
		PerModel:    f.perModel, Classes: sim.Classes, Seed: f.seed,
	}
	resource := f.resource
	limits, err := f.limits()
	if err != nil {
		return nil, "", err
	}
	s.Limits = limits
	var file *config.File
	if name := configName(cmd, nil); name != "" {
		if file, err = loadConfig(name); err != nil {
			return nil, "", err
		}
		s.Classes = nil
		for _, c := range file.Classes {
			s.Classes = append(s.Classes, store.Class{Name: c.Name, Weight: int64(c.Share)})
		}
		c, err := file.GateConfig(time.Now())
		if err != nil {
			return nil, "", configFailure(err)
		}
		s.Order = c.Order
		if len(limits) == 0 {
			if resource, s.Limits, err = configured(file, &c, resource); err != nil {
				return nil, "", err
			}
			s.Use = c.Resources[resource].Use
		}
	}
	s.Class, err = f.classOf(s.Classes, file)
	return s, resource, err
}

// limits returns the limits of the flags.
func (f *replaying) limits() ([]sim.Limit, error) {
	kind, known := map[string]store.Kind{"bucket": store.Bucket, "rolling": store.Rolling, "fixed": store.Fixed}[f.algorithm]
	if !known {
		return nil, &failure{code: exitUsage, message: fmt.Sprintf("--algorithm %.80q is not one of %s", f.algorithm, strings.Join(mock.Algorithms, ", ")), hint: didYouMean(f.algorithm, mock.Algorithms, usage("sluice replay"))}
	}
	if f.burst != 0 && (kind != store.Bucket || f.requests.N == 0 || f.burst < 0) {
		return nil, &failure{code: exitUsage, message: "--burst is the size of the bucket of --requests", hint: "give --requests 50/min --burst 10"}
	}
	var all []sim.Limit
	for _, l := range []struct {
		name, unit string
		rate       rateFlag
	}{{"requests", sim.Requests, f.requests}, {"input-tokens", sim.InputTokens, f.input}, {"output-tokens", sim.OutputTokens, f.output}, {"tokens", sim.Tokens, f.tokens}} {
		if l.rate.N == 0 {
			continue
		}
		limit := sim.Limit{Name: l.name, Kind: kind, Unit: l.unit, Size: l.rate.N, Window: l.rate.Window, PerModel: f.perModel}
		if kind == store.Bucket {
			limit.Burst = l.rate.N
		}
		if l.unit == sim.Requests && f.burst > 0 {
			limit.Burst = f.burst
		}
		if !sim.BucketFits(max(limit.Burst, limit.Size), limit.Size, limit.Window) {
			return nil, &failure{code: exitUsage, message: fmt.Sprintf("--%s %s cannot be counted exactly", l.name, l.rate.String()), hint: "give a smaller number, or a shorter window"}
		}
		all = append(all, limit)
	}
	if f.concurrency < 0 || f.concurrency > 1_000_000 {
		return nil, &failure{code: exitUsage, message: "--concurrency is between 1 and 1000000", hint: "leave it out if any number may be under way"}
	}
	if f.concurrency > 0 {
		all = append(all, sim.Limit{Name: "concurrency", Kind: store.Concurrency, Unit: sim.Requests, Size: f.concurrency})
	}
	return all, nil
}

// configured returns the limits that a configuration states for a resource. If resource is empty, the file must have
// limits for only one.
func configured(file *config.File, c *sluice.Config, resource string) (string, []sim.Limit, error) {
	var names []string
	for name, r := range file.Resources {
		if len(r.Limits) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if resource == "" {
		if len(names) != 1 {
			return "", nil, &failure{code: exitUsage, message: fmt.Sprintf("the configuration states limits of %d resources", len(names)), hint: "--resource names the one to replay: " + strings.Join(names, ", ")}
		}
		resource = names[0]
	}
	r, known := c.Resources[resource]
	if !known {
		return "", nil, &failure{code: exitUsage, message: fmt.Sprintf("the configuration has no resource %q", resource), hint: "known are " + strings.Join(names, ", ")}
	}
	limits, left := modelled(&r)
	if len(limits) == 0 {
		why := "states no size"
		if len(left) > 0 {
			why = "is per agent, user, tool or key"
		}
		return "", nil, &failure{code: exitUsage, message: fmt.Sprintf("no limit of the resource %q can be replayed: each %s", resource, why), hint: "--requests 100/min and the like state the provider's limits"}
	}
	return resource, limits, nil
}

// modelled returns the limits of a resource that a provider can have. left names the others: your own limits per agent,
// user, tool or key.
func modelled(r *sluice.Resource) (limits []sim.Limit, left []string) {
	for _, l := range r.Limits {
		one := sim.Limit{Name: l.Name, Kind: l.Kind, Unit: cmp.Or(l.Unit, sim.Requests), Size: l.Size, Burst: l.Burst, Window: l.Window}
		one.PerModel = slices.Contains(l.Per, sluice.PerModel)
		if one.Kind == store.Bucket && one.Burst == 0 {
			one.Burst = l.Size
		}
		own := slices.ContainsFunc(l.Per, func(per sluice.Scope) bool { return per != sluice.PerModel })
		switch {
		case l.Size == 0 || l.Plan:
		case own || !slices.Contains(sim.Units, one.Unit),
			one.Kind != store.Concurrency && !sim.BucketFits(max(one.Burst, one.Size), one.Size, one.Window):
			left = append(left, l.Name)
		default:
			limits = append(limits, one)
		}
	}
	return limits, left
}

// classOf returns the class of each caller: from --class, or else from the configuration.
func (f *replaying) classOf(classes []store.Class, file *config.File) (func(string) string, error) {
	stated := map[string]string{}
	for _, one := range f.classes {
		at := strings.LastIndex(one, "=")
		if at < 1 {
			return nil, &failure{code: exitUsage, message: fmt.Sprintf("--class %.80q is not CALLER=CLASS", one), hint: "such as --class web=p0"}
		}
		if !slices.ContainsFunc(classes, func(c store.Class) bool { return c.Name == one[at+1:] }) {
			return nil, &failure{code: exitUsage, message: fmt.Sprintf("--class %.80q: there is no such class", one), hint: "the classes are " + strings.Join(namesOf(classes), ", ")}
		}
		stated[one[:at]] = one[at+1:]
	}
	return func(caller string) string {
		if class := stated[cmp.Or(caller, replay.NoCaller)]; class != "" || file == nil {
			return class
		}
		return file.Agents[caller].Class
	}, nil
}

// checkCallers checks that the log has the callers of --class.
func (f *replaying) checkCallers(log *replay.Log) error {
	callers := map[string]bool{}
	for i := range log.Sends {
		callers[cmp.Or(log.Sends[i].Caller, replay.NoCaller)] = true
	}
	for _, one := range f.classes {
		caller := one[:strings.LastIndex(one, "=")]
		if callers[caller] {
			continue
		}
		names := slices.Sorted(maps.Keys(callers))
		known := (&screen{}).Names(names, ", ", 20, nameWidth)
		return &failure{code: exitUsage, message: fmt.Sprintf("--class %.80q: the log has no such caller", one), hint: didYouMean(caller, names, "the callers are "+known)}
	}
	return nil
}

func namesOf(classes []store.Class) (names []string) {
	for _, c := range classes {
		names = append(names, c.Name)
	}
	return names
}
