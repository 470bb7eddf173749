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
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/retry"
)

// job is a command to run behind the gate, with its settings.
type job struct {
	argv []string
	req  sluice.Request // for its turn; without a resource it needs none
	wait time.Duration  // for the first attempt
	// waitGiven reports that the command line states the wait.
	waitGiven bool

	waitsFor []string
	newWork  bool
	scatter  time.Duration
	walls    retry.Policy
	catch    interceptFlags
}

// letter returns the job as a dead letter, without its outcome.
func (j *job) letter() deadletter.Entry {
	e := deadletter.Entry{
		Resource: j.req.Resource, Agent: j.req.Agent, Class: j.req.Class, User: j.req.User, Model: j.req.Model, Tool: j.req.Tool, Key: j.req.Key,
		Emergency: j.req.Emergency, Argv: deadletter.Texts(j.argv), Wait: deadletter.Millis(j.wait), TTL: deadletter.Millis(j.req.TTL),
		Most: j.walls.Attempts, Deadline: deadletter.Millis(j.walls.Deadline), WaitsFor: j.waitsFor, NewWork: j.newWork,
	}
	if c := &j.catch; c.mode == config.InterceptOn || c.onlyGated || len(c.tunnel) > 0 {
		e.Intercept = &deadletter.Intercept{OnlyGated: c.onlyGated, Tunnel: c.tunnel}
	}
	e.NoIntercept = j.catch.mode == config.InterceptOff
	for _, a := range j.req.Cost {
		if e.Cost == nil {
			e.Cost = map[string]int64{}
		}
		e.Cost[a.Unit] = a.N
	}
	return e
}

// jobOf returns the job of a dead letter. The current configuration decides the waits between attempts.
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

// interceptOf returns how the calls of a dead letter's command are intercepted.
func interceptOf(e *deadletter.Entry) interceptFlags {
	switch {
	case e.Intercept != nil:
		return interceptFlags{mode: config.InterceptOn, onlyGated: e.Intercept.OnlyGated, tunnel: e.Intercept.Tunnel}
	case e.NoIntercept:
		return interceptFlags{mode: config.InterceptOff}
	}
	return interceptFlags{}
}

// Environment variables for a child.
const (
	envAgent  = "SLUICE_AGENT"
	envClass  = "SLUICE_CLASS"
	envUser   = "SLUICE_USER"
	envStore  = "SLUICE_STORE"
	envConfig = "SLUICE_CONFIG"
	envToken  = "SLUICE_TOKEN" // token of the daemon whose store is used; a child gets it only with --pass-token
	envSlot   = "SLUICE_SLOT"  // the agent whose slot and lease the parent holds
	envAgain  = "SLUICE_AGAIN" // set if the parent retries: nested runs then do not, or attempts would multiply
)

// variable is one variable of a child's environment. An empty value removes it.
type variable struct{ name, value string }

// variables returns the variables that describe the gate to a child.
func variables(cmd *cobra.Command, s *session, j *job) ([]variable, error) {
	vars := []variable{{envAgent, j.req.Agent}, {envClass, j.req.Class}, {envUser, j.req.User}, {envSlot, j.req.Agent}}
	pass, _ := cmd.Flags().GetBool("pass-token") // commands without the flag do not pass it
	if !pass {
		vars = append(vars, variable{envToken, ""}) // the child uses the gate of this run, which needs no token
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
	// The address of another store may hold a password. The child gets it only if this process got it the same way. If
	// it is in the configuration, the child reads it there.
	flag, _ := cmd.Flags().GetString("store")
	if flag != "" || os.Getenv(envStore) != "" {
		if !pass {
			at.url = withoutToken(at.url)
		}
		vars = append(vars, variable{envStore, at.url})
	}
	return vars, nil
}

// withoutToken returns the address of a store without the token of its daemon.
func withoutToken(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil || u.Scheme != "http" && u.Scheme != "https" {
		return address
	}
	u.User = nil
	return u.String()
}

// childEnv returns base with variables set, or removed if they are empty.
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

// inherit takes missing values from the enclosing run: the user and, for the same agent, the class. For another agent
// the configuration comes first.
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
