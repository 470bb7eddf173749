package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/money"
	"github.com/sluicehq/sluice/internal/shellword"
)

func newDLQShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show everything kept of an entry, including arguments",
		Long: `Show prints everything that is kept of an entry, including a command's arguments. A request's body is
private: only its size is shown. --body prints the body alone.`,
		Example:           "  sluice dlq show 1k4m\n  sluice dlq show 1k4m --body | jq .model",
		Args:              oneID,
		ValidArgsFunction: completeIDs,
	}
	body := cmd.Flags().Bool("body", false, "print only the body of a request")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := letters(cmd)
		if err != nil {
			return err
		}
		e, err := list.Get(args[0])
		if err != nil {
			return letterFailure(err)
		}
		if *body {
			return printBody(cmd, &e)
		}
		return printResult(cmd, shown(&e), func(s *screen) { s.letter(&e) })
	}
	return cmd
}

// shown returns an entry as --json prints it: without the body of its request, and money in dollars.
func shown(e *deadletter.Entry) any {
	type entry deadletter.Entry
	type paid struct {
		entry
		Cost map[string]json.Number `json:"cost,omitempty"`
	}
	out := paid{entry(*e), costOf(e)}
	if e.Request == nil {
		return out
	}
	r := *e.Request
	size := len(r.Body)
	r.Body = ""
	type request struct {
		deadletter.Request
		Size int `json:"body_bytes"`
	}
	return struct {
		paid
		Kind    string  `json:"kind"`
		Request request `json:"request"`
	}{out, string(e.Kind()), request{r, size}}
}

// costOf returns the cost of an entry as --cost states it. Entries keep money in millionths of a dollar.
func costOf(e *deadletter.Entry) map[string]json.Number {
	cost := map[string]json.Number{}
	for unit, n := range e.Cost {
		if cost[unit] = json.Number(strconv.FormatInt(n, 10)); unit == sluice.USD {
			cost[unit] = json.Number(money.Text(n))
		}
	}
	return cost
}

func printBody(cmd *cobra.Command, e *deadletter.Entry) error {
	switch {
	case e.Damaged != "":
		return letterFailure(fmt.Errorf("%w: %s: %s", deadletter.ErrDamaged, e.ID, e.Damaged))
	case e.Request == nil:
		return &failure{code: exitUsage, message: "dead letter " + e.ID + " is a command, and has no body", hint: "sluice dlq show " + e.ID}
	case e.Request.Lost != "":
		return &failure{code: exitUsage, message: fmt.Sprintf("dead letter %s has no body: %s", e.ID, e.Request.Lost), hint: "sluice dlq show " + e.ID}
	}
	_, err := io.WriteString(cmd.OutOrStdout(), string(e.Request.Body))
	return written(err)
}

// request shows the fields that only a request has.
func (s *screen) request(e *deadletter.Entry, field func(name, format string, args ...any)) {
	r := e.Request
	field("request", "%s %s", shellword.Escape(r.Method), shellword.Escape(r.Path))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		field("", "%s: %s", shellword.Escape(name), shellword.Escape(strings.Join(r.Header[name], ", ")))
	}
	field("left out", "%s", shellword.Escape(strings.Join(r.Left, ", ")))
	if r.Lost != "" {
		field("body", "not kept: %s", r.Lost)
	} else {
		field("body", "%d bytes", len(r.Body))
	}
}

// answers shows the responses to the sends of a request.
func answers(e *deadletter.Entry, field func(name, format string, args ...any)) {
	for i, a := range e.Request.Answers {
		name := ""
		if i == 0 {
			name = "answers"
		}
		what := a.Error
		if a.Status > 0 {
			what = fmt.Sprintf("status %d, %s", a.Status, a.Verdict)
		}
		field(name, "%s  %s", a.Time.Format(time.RFC3339), cmp.Or(what, "none"))
	}
}

func (s *screen) letter(e *deadletter.Entry) {
	field := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			s.line("%-10s  %s", name, harmless(text))
		}
	}
	field("id", "%s", e.ID)
	if e.Damaged != "" {
		field("damaged", "%s", e.Damaged)
		s.line("It cannot be retried; sluice dlq drop %s removes it.", e.ID)
		return
	}
	if e.Request != nil {
		s.request(e, field)
	}
	field("command", "%s", shellword.Line(e.Args()))
	field("directory", "%s", shellword.Escape(string(e.Dir)))
	field("config", "%s", shellword.Escape(string(e.Config)))
	field("store", "%s", shellword.Escape(string(e.Store)))
	field("resource", "%s", e.Resource)
	field("agent", "%s", e.Agent)
	field("class", "%s", e.Class)
	field("user", "%s", e.User)
	field("model", "%s", e.Model)
	field("tool", "%s", e.Tool)
	var cost []string
	stated := costOf(e)
	for _, unit := range slices.Sorted(maps.Keys(stated)) {
		cost = append(cost, unit+"="+stated[unit].String())
	}
	field("cost", "%s", strings.Join(cost, ","))
	field("waits for", "%s", strings.Join(e.WaitsFor, ","))
	if e.Request != nil {
		field("attempts", "%d, given up %s", e.Attempts, times(e.Rounds))
		field("first", "%s", e.First.Format(time.RFC3339))
		field("given up", "%s: %s", e.Time.Format(time.RFC3339), e.Reason)
		answers(e, field)
		return
	}
	field("attempts", "%d, given up %s, each time after at most %d in %s", e.Attempts, times(e.Rounds), e.Most, shortTime(time.Duration(e.Deadline)))
	field("first", "%s", e.First.Format(time.RFC3339))
	field("last", "%s", e.Last.Format(time.RFC3339))
	field("exit code", "%d", e.ExitCode)
	field("given up", "%s: %s", e.Time.Format(time.RFC3339), e.Reason)
	for _, w := range e.Waits {
		field("", "attempt %d waited %s (%s)", w.Attempt, time.Duration(w.Waited), w.Why)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
