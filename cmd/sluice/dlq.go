package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/shellword"
	"github.com/sluicehq/sluice/internal/show"
)

func newDLQ() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, show, retry and drop failed commands and requests",
		Long: `When sluice run gives a command up, it keeps it as a dead letter with everything needed to run it
again: at most 1,000 entries and 16 MiB, oldest dropped first. Command lines can hold secrets: only
their user can read the files. Environment and input are not kept.

With dead_letters: on, a resource's requests that failed for good are kept too: method, path, headers
without keys, body, attempts and responses; at most 1,000 entries and 64 MiB. It is off by default,
because bodies are private. dead_letters: {key_env: NAME} encrypts both kinds.

You can shorten an ID while it is unique.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDLQList(), newDLQShow(), newDLQRetry(), newDLQDrop())
	return cmd
}

// letters opens the dead letters that the command line selects.
func letters(cmd *cobra.Command) (*deadletter.List, error) {
	f, err := selectedConfig(cmd, nil)
	if err != nil {
		return nil, err
	}
	at, err := placeOf(cmd, f)
	if err != nil {
		return nil, err
	}
	return openedIn(at.dir, f)
}

// letterFailure converts an error of the list into a failure.
func letterFailure(err error) error {
	if err == nil {
		return nil
	}
	f := &failure{code: exitUnavailable, message: err.Error(), hint: "check permissions and free space there"}
	switch {
	case errors.As(err, &f):
	case errors.Is(err, deadletter.ErrUnknown):
		f.code, f.hint = exitUsage, "sluice dlq list shows all entries"
	case errors.Is(err, deadletter.ErrAmbiguous):
		f.code, f.hint = exitUsage, "give more of the id; sluice dlq list shows all entries"
	case errors.Is(err, deadletter.ErrClaimed):
		f.code, f.hint = exitNotYet, "wait for the other one to end"
	case errors.Is(err, deadletter.ErrDamaged) && (strings.HasSuffix(err.Error(), deadletter.NoKey) || strings.HasSuffix(err.Error(), deadletter.WrongKey)):
		f.code, f.hint = exitUnavailable, "set the variable that dead_letters.key_env names to the key that it was encrypted with, or remove it with sluice dlq drop ID"
	case errors.Is(err, deadletter.ErrDamaged):
		f.code, f.hint = exitUnavailable, "sluice dlq drop ID removes it"
	}
	return f
}

// idOrAll requires either one id or --all.
func idOrAll(cmd *cobra.Command, args []string) error {
	all, _ := cmd.Flags().GetBool("all")
	if all == (len(args) > 0) || len(args) > 1 {
		return &failure{code: exitUsage, message: "give the id of one entry, or --all", hint: "sluice dlq list shows all entries"}
	}
	return nil
}

func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &failure{code: exitUsage, message: "give the id of one entry", hint: "sluice dlq list shows all entries"}
	}
	return nil
}

// completeIDs completes the id of an entry.
func completeIDs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	list, err := letters(cmd)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	entries, _ := list.Entries() // on an error there is nothing to complete
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID+"\t"+shellword.Escape(subject(&e)))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// letterJSON is an entry in a list, without its arguments, which may hold secrets.
type letterJSON struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"` // command or request; empty if it cannot be read
	Time     time.Time `json:"time"`
	Resource string    `json:"resource"`
	Agent    string    `json:"agent"`
	Class    string    `json:"class"`
	Attempts int       `json:"attempts"`
	Reason   string    `json:"reason"`
	ExitCode int       `json:"exit_code"`
	Program  string    `json:"program"`
	Args     int       `json:"args"` // how many
	// For a request: its path without the query, and the status of the last response.
	Method  string `json:"method,omitempty"`
	Path    string `json:"path,omitempty"`
	Status  int    `json:"status,omitempty"`
	Body    *int   `json:"body_bytes,omitempty"` // nil if it was not kept
	Damaged string `json:"damaged,omitempty"`
}

func newDLQList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List entries, oldest first, without command arguments",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := letters(cmd)
			if err != nil {
				return err
			}
			entries, err := list.Entries()
			if err != nil {
				return letterFailure(err)
			}
			all := []letterJSON{}
			for _, e := range entries {
				all = append(all, listed(&e))
			}
			return printResult(cmd, map[string]any{"dead_letters": all}, func(s *screen) { s.letters(entries) })
		},
	}
}

func listed(e *deadletter.Entry) letterJSON {
	l := letterJSON{
		ID: e.ID, Time: e.Time, Resource: e.Resource, Agent: e.Agent, Class: e.Class, Attempts: e.Attempts, Reason: e.Reason, ExitCode: e.ExitCode,
		Program: e.Program(), Args: max(len(e.Argv)-1, 0), Damaged: e.Damaged,
	}
	if e.Damaged == "" {
		l.Kind = string(e.Kind())
	}
	if r := e.Request; r != nil {
		l.Method, l.Status = r.Method, lastStatus(e)
		l.Path, _, _ = strings.Cut(r.Path, "?")
		if r.Lost == "" {
			l.Body = new(len(r.Body))
		}
	}
	return l
}

func (s *screen) letters(entries []deadletter.Entry) {
	if len(entries) == 0 {
		s.line("There are no dead letters: no command of sluice run was given up, and no request where dead_letters is on.")
		return
	}
	t := &show.Table{Columns: []show.Column{
		{Head: "id"}, {Head: "given up", Drop: 2}, {Head: "agent", Least: 8}, {Head: "resource", Least: 8, Drop: 3}, {Head: "attempts", Right: true},
		{Head: "result", Right: true}, {Head: "what", Least: 12}, {Head: "why", Least: 8, Drop: 1},
	}}
	cell := func(text string) show.Cell { return show.Cell{Text: s.Text(text, 60)} }
	for _, e := range entries {
		when := show.Ago(e.Time, s.now)
		if e.Damaged != "" {
			what := show.Cell{Text: "(damaged)", Colour: show.Red}
			if e.Damaged == deadletter.NoKey || e.Damaged == deadletter.WrongKey {
				what = show.Cell{Text: "(encrypted)"}
			}
			t.Add(cell(e.ID), cell(when), cell(""), cell(""), cell(""), cell(""), what, cell(e.Damaged))
			continue
		}
		outcome, what := fmt.Sprint(e.ExitCode), e.Program()+arguments(len(e.Argv)-1)
		if e.Request != nil {
			if outcome, what = "-", subject(&e); lastStatus(&e) > 0 {
				outcome = fmt.Sprint(lastStatus(&e))
			}
		}
		t.Add(cell(e.ID), cell(when), cell(e.Agent), cell(e.Resource), cell(fmt.Sprint(e.Attempts)), cell(outcome), cell(what), cell(e.Reason))
	}
	s.table(t)
}

// arguments formats the number of arguments.
func arguments(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " (1 argument)"
	}
	return fmt.Sprintf(" (%d arguments)", n)
}

func newDLQDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "drop ID",
		Short:             "Remove an entry, or all, for good",
		Example:           "  sluice dlq drop 1k4m\n  sluice dlq drop --all",
		Args:              idOrAll,
		ValidArgsFunction: completeIDs,
	}
	all := cmd.Flags().Bool("all", false, "all entries, except those being retried")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := letters(cmd)
		if err != nil {
			return err
		}
		if *all {
			entries, err := list.Entries()
			if err != nil {
				return letterFailure(err)
			}
			for _, e := range entries {
				args = append(args, e.ID)
			}
		}
		dropped, err := drop(list, args, *all)
		if err != nil {
			return letterFailure(err)
		}
		return printLine(cmd, map[string]any{"dropped": dropped}, "dropped %s", cmp.Or(strings.Join(dropped, " "), "nothing"))
	}
	return cmd
}

// drop removes entries. With all it skips entries that are being retried or are already gone.
func drop(list *deadletter.List, ids []string, all bool) ([]string, error) {
	dropped := []string{}
	for _, id := range ids {
		e, err := list.Get(id)
		if err == nil {
			err = list.Remove(e.ID)
		}
		switch {
		case all && (errors.Is(err, deadletter.ErrClaimed) || errors.Is(err, deadletter.ErrUnknown)):
		case err != nil:
			return dropped, err
		default:
			dropped = append(dropped, e.ID)
		}
	}
	return dropped, nil
}
