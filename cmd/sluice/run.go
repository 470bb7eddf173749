package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// maxAttempts is the largest number that the configuration allows.
const maxAttempts = 1000

// runFlags holds the flags of run, in addition to those of acquire.
type runFlags struct {
	ask      *asking
	resource string
	waitsFor []string
	newWork  bool
	noGate   bool
	quiet    bool
	catch    bool // --intercept
	leave    bool // --no-intercept
	caught   interceptFlags
	attempts int
	deadline timeFlag
	scatter  timeFlag
}

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command behind the gate",
		Long: `Run starts a command when it is its turn, and exits with the command's exit code. Meanwhile its agent
holds a lease and, where slots are configured, one of its user's slots. The command keeps its terminal,
files and signals. On Windows the console sends Ctrl-C and Ctrl-Break to both, and a run that is killed
takes its command with it.

Calls of the command to known providers can pass the gate: their base-URL variables (ANTHROPIC_BASE_URL,
OPENAI_BASE_URL, GROQ_BASE_URL, GITHUB_API_URL, ...) point to a proxy on this machine while it runs. A
variable that is already set becomes the gate's upstream. Of clients that are known to need it, such as
codex and gemini, python and node, connections to their providers are intercepted: the command gets a
proxy and a CA bundle (HTTPS_PROXY, SSL_CERT_FILE and others). Other connections are tunnelled unchanged.
What goes past the gate is counted, and said at the end.
At providers the gate trusts the certificates that the command trusts (SSL_CERT_FILE,
NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, ...), and those in upstream_ca of the configuration.

--intercept intercepts what any command sends to gated hosts: those of known providers and of configured
upstreams. Base-URL variables then stay as they are, and --only-gated refuses other hosts. --no-intercept
decrypts nothing, and --no-gate changes nothing at all. intercept: in the configuration is the default.

Without --resource it takes a turn at the only resource of the configuration if that has neither a
provider nor an upstream: then it counts the starts of commands. An API counts requests, and no start,
except with --no-gate. Otherwise the command holds slot and lease and takes no turn.

Where limits are per API key, each of these calls counts for the key that it carries, and the command's own
turn for the key in the variable that --key-env or the resource's key_env names.

A command that exits with 75 is run again, until --attempts or --deadline is reached; then it is kept
as a dead letter (see sluice dlq). No other exit code is retried. Input from a pipe cannot be read
again: pass files by name.

Exit codes: the command's; 128+n if signal n killed it; 126 it cannot be run; 127 it was not found;
64 usage, unknown resource; 69 the store cannot be reached; 75 not within --wait, start no new
work, or given up; 77 refused; 78 bad configuration.`,
		Example: `  sluice run -- ./nightly.sh
  sluice run --resource github --agent indexer --class p1 -- gh repo sync
  sluice run --resource search-api --scatter 5m --attempts 3 -- python fetch.py
  sluice run --intercept -- ./agent --verbose`,
		Args: commandAfterDashes,
	}
	addIdentity(cmd)
	f := &runFlags{ask: addAsking(cmd), deadline: timeFlag(retry.DefaultDeadline)}
	flags := cmd.Flags()
	flags.StringVar(&f.resource, "resource", "", "`RESOURCE` to take a turn at; else the only one of the configuration, if it is no API")
	flags.StringSliceVar(&f.waitsFor, "waits-for", nil, "`AGENTS` whose work this one's depends on, besides those of the configuration")
	flags.Bool("pass-token", false, "give the command the daemon's token (SLUICE_TOKEN, or the one in the store's address); a nested sluice needs it")
	flags.BoolVar(&f.newWork, "new-work", false, "wait, within --wait, while an agent that this one depends on is limited, and while a window of a subscription is used up")
	flags.IntVar(&f.attempts, "attempts", retry.DefaultAttempts, "start the command at most `N` times, the first included; else as configured")
	flags.Var(&f.deadline, "deadline", "the last attempt starts before this time is over; else as configured")
	flags.Var(&f.scatter, "scatter", "spread commands that would start together over this time: those of the same resource, or those without one")
	flags.BoolVar(&f.noGate, "no-gate", false, "do not point the command's clients to the gate: only its start is gated")
	flags.BoolVar(&f.catch, "intercept", false, "decrypt and gate all connections of the command to gated hosts, by being its proxy; else only those of clients that need it")
	flags.BoolVar(&f.leave, "no-intercept", false, "decrypt nothing: calls pass the gate by base-URL variables only")
	f.caught.add(cmd)
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors")
	completeFlag(cmd, "resource", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return knownResources(cmd), cobra.ShellCompDirectiveNoFileComp
	})
	completeFlag(cmd, "waits-for", completeAgents)
	cmd.RunE = func(cmd *cobra.Command, argv []string) error { return f.run(cmd, argv) }
	return cmd
}

// commandAfterDashes requires the command after --, so that its flags are not mixed with ours.
func commandAfterDashes(cmd *cobra.Command, args []string) error {
	hint := "sluice run [flags] -- COMMAND [ARGUMENT...]"
	switch {
	case len(args) == 0 || args[0] == "":
		return &failure{code: exitUsage, message: "no command given", hint: hint}
	case cmd.ArgsLenAtDash() != 0:
		return &failure{code: exitUsage, message: fmt.Sprintf("%.80q: put the command after --", args[0]), hint: hint}
	}
	return nil
}

// check refuses invalid flags before anything else happens.
func (f *runFlags) check(cmd *cobra.Command) error {
	bad := func(flag, format string, args ...any) error {
		return &failure{code: exitUsage, message: "--" + flag + ": " + fmt.Sprintf(format, args...), hint: "see sluice run --help"}
	}
	switch {
	case f.attempts < 1 || f.attempts > maxAttempts:
		return bad("attempts", "%d is out of range: 1 to %d", f.attempts, maxAttempts)
	case f.deadline <= 0:
		return bad("deadline", "it has to be longer than 0")
	case time.Duration(f.scatter) > store.MaxTTL:
		return bad("scatter", "%s is too long: at most %s", f.scatter.String(), shortTime(store.MaxTTL))
	case f.resource == "" && cmd.Flags().Changed("resource"):
		return bad("resource", "it is empty")
	case f.catch && f.noGate:
		return bad("intercept", "it does not go together with --no-gate")
	case f.catch && f.leave:
		return bad("intercept", "it does not go together with --no-intercept")
	case f.catch:
		f.caught.mode = config.InterceptOn
	case f.leave:
		f.caught.mode = config.InterceptOff
	}
	return f.caught.need(cmd, "intercept", f.catch || !f.noGate && !f.leave && configName(cmd, nil) != "") // the configuration may say so
}

func (f *runFlags) run(cmd *cobra.Command, argv []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	path, err := lookUp(argv[0])
	if err != nil {
		return err
	}
	var g *runGate
	if !f.noGate {
		if g, err = newRunGate(cmd, argv, &f.caught); err != nil {
			return err
		}
	}
	resource, err := f.onlyResource(cmd, g)
	if err != nil {
		return err
	}
	open := resource
	if f.newWork { // the agents it waits for may be limited on any resource
		if open, err = f.allResources(cmd); err != nil {
			return err
		}
	}
	s, err := openToStay(cmd, open...)
	if err != nil {
		return err
	}
	defer s.closeAfter()
	j, err := f.job(cmd, s, strings.Join(resource, ""), argv)
	if err != nil {
		return err
	}
	if g != nil {
		if err := g.start(&f.caught, s.log.Add); err != nil {
			return err
		}
		defer g.closeAfter(s)
	}
	r, err := newRunner(cmd, s, j, g, f.quiet)
	if err != nil {
		return err
	}
	r.path = path
	res, err := r.conduct(cmd.Context())
	if err != nil {
		return err
	}
	switch {
	case res.gaveUp == "":
	case within():
		return childExit(res.code) // the enclosing run continues from here
	default:
		r.bury(&res)
	}
	return res.end()
}

// within reports whether this run is inside another one that retries by itself.
func within() bool { return os.Getenv(envAgain) != "" }

// closeAfter ends a session after its command. An error is only a warning: it does not change the command's result.
func (s *session) closeAfter() {
	if err := s.close(); err != nil {
		fmt.Fprintf(s.stderr, "warning: the gate could not be closed: %s\n", harmless(err.Error()))
	}
}

// allResources returns the resources of the configuration and the one of the flag.
func (f *runFlags) allResources(cmd *cobra.Command) ([]string, error) {
	file, err := selectedConfig(cmd, nil)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(file.Resources))
	if f.resource != "" && !slices.Contains(names, f.resource) {
		names = append(names, f.resource)
	}
	return names, nil
}

// onlyResource returns the resource to take a turn at: none or one.
func (f *runFlags) onlyResource(cmd *cobra.Command, g *runGate) ([]string, error) {
	if f.resource != "" {
		return []string{f.resource}, nil
	}
	file, err := selectedConfig(cmd, nil)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(file.Resources))
	if len(names) == 1 && (f.noGate || countsCommands(file, names[0])) {
		return names, nil
	}
	return nil, nil
}

// countsCommands reports whether the starts of commands are what a resource counts. An API counts requests: those that pass
// the gate take turns themselves, and one that never sees a request is not charged for the start of a command.
func countsCommands(file *config.File, name string) bool {
	kind := file.Resources[name].Provider
	return (kind == "" || kind == "generic") && file.UpstreamOf(name) == ""
}

func (f *runFlags) job(cmd *cobra.Command, s *session, resource string, argv []string) (job, error) {
	who, err := identityOf(cmd, s)
	if err != nil {
		return job{}, err
	}
	j := job{argv: argv, wait: time.Duration(f.ask.wait), waitsFor: f.waitsFor, newWork: f.newWork, scatter: time.Duration(f.scatter), catch: f.caught, waitGiven: cmd.Flags().Changed("wait")}
	if j.req, err = f.ask.request(cmd, s, resource, who); err != nil {
		return job{}, err
	}
	if j.walls, err = wallsOf(s); err != nil {
		return job{}, err
	}
	if cmd.Flags().Changed("attempts") {
		j.walls.Attempts = f.attempts
	}
	if cmd.Flags().Changed("deadline") {
		j.walls.Deadline = time.Duration(f.deadline)
	}
	if within() {
		j.walls.Attempts = 1
	}
	return j, nil
}

// wallsOf returns the retry policy of the configuration, with defaults.
func wallsOf(s *session) (retry.Policy, error) {
	c, err := s.file.GateConfig(time.Now())
	if err != nil {
		return retry.Policy{}, configFailure(err)
	}
	if c.Retry.Attempts <= 0 {
		c.Retry.Attempts = retry.DefaultAttempts
	}
	if c.Retry.Deadline <= 0 {
		c.Retry.Deadline = retry.DefaultDeadline
	}
	return c.Retry, nil
}

// newRunner prepares a job for its run, with the environment of the child.
func newRunner(cmd *cobra.Command, s *session, j job, g *runGate, quiet bool) (*runner, error) {
	vars, err := variables(cmd, s, &j)
	if err != nil {
		return nil, fail(err)
	}
	if g != nil {
		vars = append(vars, g.variables(j.req.Agent, j.req.Class, j.req.User)...)
	}
	r := &runner{job: j, s: s, gate: g, stderr: cmd.ErrOrStderr(), quiet: quiet, env: childEnv(os.Environ(), vars)}
	for _, v := range vars {
		if v.name == envConfig {
			r.config = v.value
		}
	}
	return r, nil
}

// conduct runs the job and passes signals on to it. It first prints what it is going to do.
func (r *runner) conduct(ctx context.Context) (result, error) {
	var stop context.Context
	r.keep, stop = newKeeper(ctx)
	defer r.keep.close()
	what := "takes its turn at " + r.req.Resource
	if r.req.Resource == "" {
		what = "takes no turn (no --resource)"
	}
	r.say("sluice: agent %s, class %s, %s; store %s", r.req.Agent, r.s.className(r.req.Class), what, r.s.store)
	if r.gate == nil {
		return r.run(stop)
	}
	if line := r.gate.announce(); line != "" {
		r.say("sluice: %s", line)
	}
	res, err := r.run(stop)
	if r.sent > 0 {
		if line := r.gate.sum(r.req.Resource != ""); line != "" {
			r.say("sluice: %s", line)
		}
	}
	return res, err
}
