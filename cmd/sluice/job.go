package main

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/retry"
)

// job is a command to be run behind the gate, and how.
type job struct {
	argv []string
	req  sluice.Request // for its turn; without a resource it takes none
	wait time.Duration  // until the first attempt
	// waitGiven tells that the command line says how long.
	waitGiven bool

	waitsFor []string
	newWork  bool
	scatter  time.Duration
	walls    retry.Policy
	catch    *interceptFlags // nil: calls are not intercepted
}

// letter is the job as a dead letter, without what became of it.
func (j *job) letter() deadletter.Entry {
	e := deadletter.Entry{
		Resource: j.req.Resource, Agent: j.req.Agent, Class: j.req.Class, User: j.req.User, Model: j.req.Model, Tool: j.req.Tool, Key: j.req.Key,
		Emergency: j.req.Emergency, Argv: deadletter.Texts(j.argv), Wait: deadletter.Millis(j.wait), TTL: deadletter.Millis(j.req.TTL),
		Most: j.walls.Attempts, Deadline: deadletter.Millis(j.walls.Deadline), WaitsFor: j.waitsFor, NewWork: j.newWork,
	}
	if c := j.catch; c != nil {
		e.Intercept = &deadletter.Intercept{OnlyGated: c.onlyGated, Tunnel: c.tunnel}
	}
	for _, a := range j.req.Cost {
		if e.Cost == nil {
			e.Cost = map[string]int64{}
		}
		e.Cost[a.Unit] = a.N
	}
	return e
}

// jobOf is the job of a dead letter. How long to wait between attempts is for the configuration
// of today to say.
func jobOf(e *deadletter.Entry, walls retry.Policy) job {
	walls.Attempts, walls.Deadline = cmp.Or(e.Most, walls.Attempts), cmp.Or(time.Duration(e.Deadline), walls.Deadline)
	j := job{argv: e.Args(), wait: time.Duration(e.Wait), waitsFor: e.WaitsFor, newWork: e.NewWork, walls: walls, catch: interceptOf(e)}
	j.req = sluice.Request{
		Resource: e.Resource, Agent: e.Agent, Class: e.Class, User: e.User, Model: e.Model, Tool: e.Tool, Key: e.Key,
		Emergency: e.Emergency, Retry: true, TTL: time.Duration(e.TTL),
	}
	for unit, n := range e.Cost {
		j.req.Cost = append(j.req.Cost, sluice.Amount{Unit: unit, N: n})
	}
	return j
}

// interceptOf is how calls of a dead letter's command are intercepted, nil if they are not.
func interceptOf(e *deadletter.Entry) *interceptFlags {
	if e.Intercept == nil {
		return nil
	}
	return &interceptFlags{onlyGated: e.Intercept.OnlyGated, tunnel: e.Intercept.Tunnel}
}

// The variables that a child is given.
const (
	envAgent  = "SLUICE_AGENT"
	envClass  = "SLUICE_CLASS"
	envUser   = "SLUICE_USER"
	envStore  = "SLUICE_STORE"
	envConfig = "SLUICE_CONFIG"
	envToken  = "SLUICE_TOKEN" // of the daemon whose store is used; a child gets it only with --pass-token
	envSlot   = "SLUICE_SLOT"  // the agent whose slot and lease the parent holds
	envAgain  = "SLUICE_AGAIN" // set where the parent tries again: those within it do not, or attempts would multiply
)

// variable is one of a child's environment. An empty value means that it has none.
type variable struct{ name, value string }

// variables are what a child is told of the gate that it runs behind.
func variables(cmd *cobra.Command, s *session, j *job) ([]variable, error) {
	vars := []variable{{envAgent, j.req.Agent}, {envClass, j.req.Class}, {envUser, j.req.User}, {envSlot, j.req.Agent}}
	pass, _ := cmd.Flags().GetBool("pass-token") // commands without the flag pass none
	if !pass {
		vars = append(vars, variable{envToken, ""}) // the child talks to the gate of this run, which needs none
	}
	if j.walls.Attempts > 1 {
		vars = append(vars, variable{envAgain, "1"})
	}
	if name := configName(cmd, nil); name != "" {
		full, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		vars = append(vars, variable{envConfig, full})
	}
	at, err := placeOf(cmd, s.file)
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(at.url, "file:"); ok {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		return append(vars, variable{envStore, "file:" + full}), nil
	}
	// The address of another store may hold a password. The child has it if this process was
	// given it so; what stands in the configuration it reads there.
	flag, _ := cmd.Flags().GetString("store")
	if flag != "" || os.Getenv(envStore) != "" {
		if !pass {
			at.url = withoutToken(at.url)
		}
		vars = append(vars, variable{envStore, at.url})
	}
	return vars, nil
}

// withoutToken is the address of a store without the token of its daemon.
func withoutToken(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil || u.Scheme != "http" && u.Scheme != "https" {
		return address
	}
	u.User = nil
	return u.String()
}

// childEnv is an environment with variables set, or removed where they are empty.
func childEnv(base []string, vars []variable) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(vars, func(v variable) bool { return v.name == name })
	})
	for _, v := range vars {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// inherit takes what was not given from the run that this one is nested in: the user, and where
// it acts for the same agent, the class. What the configuration says of another agent goes first.
func inherit(cmd *cobra.Command, who *identity) {
	slot := os.Getenv(envSlot)
	same := who.agent == slot
	if same && !cmd.Flags().Changed("class") {
		who.class = cmp.Or(os.Getenv(envClass), who.class)
	}
	switch user := os.Getenv(envUser); {
	case slot == "" || cmd.Flags().Changed("user"):
	case same:
		who.user = cmp.Or(user, who.user)
	default:
		who.user = cmp.Or(who.user, user)
	}
}
