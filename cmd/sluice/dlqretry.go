package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/deadletter"
)

func newDLQRetry() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Run or send an entry again, or all in turn",
		Long: `Retry runs a command again: in its directory, for its agent, with its flags, in the current
environment. Success removes the entry; otherwise the result is added to it. Two processes never
run the same entry at once.

Retry sends a request again through the gate, for its agent. Keys are never kept. The key comes from
the variable of resources.NAME.inject, else from the provider's usual one such as ANTHROPIC_API_KEY,
else from --key-env. The response body goes to --output. Exit codes of a request: 0 a status below
400; 75 it failed again; 77 the provider refuses it.

For a command it exits as sluice run does: with the command's exit code, or with 75 if it was given
up again. With --all entries run one after the other, and the exit code is that of the first failure.`,
		Example:           "  sluice dlq retry 1k4m\n  sluice dlq retry 1k4m --output answer.json\n  sluice dlq retry --all",
		Args:              idOrAll,
		ValidArgsFunction: completeIDs,
	}
	how := &resend{}
	all := cmd.Flags().Bool("all", false, "all entries, oldest first")
	quiet := &how.quiet
	cmd.Flags().BoolVar(quiet, "quiet", false, "print only errors")
	cmd.Flags().StringVar(&how.keyEnv, "key-env", "", "`VARIABLE` that holds the key to send a request with")
	cmd.Flags().StringVar(&how.output, "output", "", "`FILE` for the body of a request's answer; - is standard output")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := letters(cmd)
		if err != nil {
			return err
		}
		if *all {
			if how.output != "" && how.output != "-" {
				return &failure{code: exitUsage, message: "--output: the answers of all would overwrite each other", hint: "retry one by one, or use --output -"}
			}
			return retryAll(cmd, list, how)
		}
		_, err = retryOne(cmd, list, args[0], how)
		return letterFailureOr(err)
	}
	return cmd
}

// letterFailureOr is letterFailure, but passes on the exit code of a child.
func letterFailureOr(err error) error {
	var child childExit
	if err == nil || errors.As(err, &child) {
		return err
	}
	return letterFailure(err)
}

// retryAll runs the entries that exist at the start.
func retryAll(cmd *cobra.Command, list *deadletter.List, how *resend) error {
	entries, err := list.Entries()
	if err != nil {
		return letterFailure(err)
	}
	var first error
	for _, e := range entries {
		stopped, err := retryOne(cmd, list, e.ID, how)
		if err = letterFailureOr(err); err != nil {
			var f *failure
			if first == nil {
				first = err
			} else if errors.As(err, &f) { // the first error is reported at the end
				f.report(cmd.OutOrStdout(), cmd.ErrOrStderr(), false)
			}
		}
		if stopped {
			break
		}
	}
	return first
}

// retryOne runs an entry again. It reports whether a signal asked to end.
func retryOne(cmd *cobra.Command, list *deadletter.List, id string, how *resend) (stopped bool, err error) {
	c, err := list.Claim(id)
	if err != nil {
		return false, err
	}
	defer c.Release()
	e := c.Entry()
	if e.Request != nil {
		return how.send(cmd, c)
	}
	s, back, err := reopen(cmd, &e)
	if err != nil {
		return false, err
	}
	defer back()
	walls, err := wallsOf(s)
	if err != nil {
		return false, err
	}
	j := jobOf(&e, walls)
	g, err := newRunGate(cmd, j.argv, &j.catch)
	if err != nil {
		return false, err
	}
	if err := g.start(&j.catch, s.log.Add); err != nil {
		return false, err
	}
	defer g.closeAfter(s)
	r, err := newRunner(cmd, s, j, g, how.quiet)
	if err != nil {
		return false, err
	}
	leave, err := enter(string(e.Dir))
	if err != nil {
		return false, err
	}
	defer leave()
	r.env = childEnv(r.env, []variable{{"PWD", string(e.Dir)}})
	if r.path, err = lookUp(r.argv[0]); err != nil {
		return false, err
	}
	r.say("sluice: dead letter %s: %s", e.ID, e.Program())
	res, err := r.conduct(cmd.Context())
	stopped = r.keep.stopped()
	if err != nil {
		return stopped, err
	}
	return stopped, r.settle(c, &res)
}

// settle removes an entry that has succeeded, and updates one that has failed.
func (r *runner) settle(c *deadletter.Claim, res *result) error {
	if res.code == 0 && res.why == nil {
		if err := c.Remove(); err != nil {
			return &failure{code: exitUnavailable, message: "it succeeded, but could not be removed: " + err.Error(), hint: "sluice dlq drop " + c.Entry().ID}
		}
		return nil
	}
	e := c.Entry()
	if res.gaveUp == "" {
		res.gaveUp = fmt.Sprintf("exit code %d", res.code)
	}
	r.became(&e, res)
	err := c.Update(e)
	if res.why == nil {
		if err != nil {
			r.say("warning: the dead letter could not be updated: %s", err)
		}
		return res.end()
	}
	res.why.hint = fmt.Sprintf("it is still dead letter %s: sluice dlq show %s tells more", e.ID, e.ID)
	if err != nil {
		res.why.detail = "error: the dead letter could not be updated: " + err.Error()
	}
	return res.end()
}

// reopen opens the gate of an entry, with its configuration and on its store. back closes it.
func reopen(cmd *cobra.Command, e *deadletter.Entry) (s *session, back func(), err error) {
	restore, err := withConfig(cmd, string(e.Config))
	if err != nil {
		return nil, nil, err
	}
	var resources []string
	if e.Resource != "" || e.Request != nil { // a command may need no turn
		resources = []string{e.Resource}
	}
	if s, err = openToStay(cmd, resources...); err != nil {
		restore()
		return nil, nil, err
	}
	back = func() {
		s.closeAfter()
		restore()
	}
	if err := sameStore(e, s); err != nil {
		back()
		return nil, nil, err
	}
	return s, back, nil
}

// withConfig uses the configuration of an entry if the command line names none. back restores the flag.
func withConfig(cmd *cobra.Command, file string) (back func(), err error) {
	flag := cmd.Flags().Lookup("config")
	was := flag.Value.String()
	use := configName(cmd, nil)
	if use == "" {
		use = file
	}
	if use != "" {
		// Absolute, because the entry's directory is another one.
		if use, err = filepath.Abs(use); err != nil {
			return nil, err
		}
	}
	if err := flag.Value.Set(use); err != nil {
		return nil, err
	}
	return func() { _ = flag.Value.Set(was) }, nil // a string flag accepts any value
}

// sameStore refuses to run an entry on another store than its own, where it would count against the wrong limits. File
// stores may have moved.
func sameStore(e *deadletter.Entry, s *session) error {
	was := string(e.Store)
	if was == "" || was == s.store || strings.HasPrefix(was, "file:") && strings.HasPrefix(s.store, "file:") {
		return nil
	}
	return &failure{
		code: exitUsage, message: fmt.Sprintf("this entry belongs to the store %s, not to %s", was, s.store),
		hint: "select that store with --store or SLUICE_STORE",
	}
}

// enter changes to the directory of an entry, from which its program may be named. back returns to the previous one.
func enter(dir string) (back func(), err error) {
	was, err := os.Getwd()
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		return nil, &failure{code: exitUsage, message: "its directory: " + err.Error(), hint: "create it again, or drop the entry"}
	}
	return func() { _ = os.Chdir(was) }, nil
}
