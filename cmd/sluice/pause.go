package main

import (
	"time"

	"github.com/spf13/cobra"
)

func newPause() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause RESOURCE --for TIME",
		Short: "Hold all callers of a resource",
		Long: `Pause holds all callers of the resource, in every process that shares the store. Granted requests
continue. A longer pause stays as it is. "sluice resume" ends a pause early. A resource in mode observe
holds no request and cannot be paused.

Exit codes: 0 paused; 64 usage, unknown resource, mode observe; 69 the store cannot be reached; 78 bad
configuration.`,
		Example:           `  sluice pause github --for 10m --reason 'GitHub reports an incident'`,
		Args:              needs("RESOURCE"),
		ValidArgsFunction: completeShown,
	}
	var length timeFlag
	cmd.Flags().Var(&length, "for", "how long")
	reason := cmd.Flags().String("reason", "", "reason `TEXT`, shown to people")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if length == 0 && cmd.Flags().Changed("for") {
			return &failure{code: exitUsage, message: "--for: a pause of 0 is not allowed", hint: "give a time such as 60s or 10m; sluice resume ends a pause"}
		}
		if length <= 0 {
			return &failure{code: exitUsage, message: "--for is missing", hint: "give a time such as 60s or 10m"}
		}
		s, err := openReadOnly(cmd, args[0])
		if err != nil {
			return err
		}
		defer s.closing(&err)
		if *reason == "" {
			*reason = "paused by " + loginName()
		}
		if err := s.gate.Pause(cmd.Context(), args[0], time.Duration(length), *reason); err != nil {
			return fail(err)
		}
		return s.printPaused(cmd, args[0], "paused")
	}
	return cmd
}

// pausedJSON is what pause and resume print with --json.
type pausedJSON struct {
	Resource    string     `json:"resource"`
	PausedUntil *time.Time `json:"paused_until"`
	PauseReason string     `json:"pause_reason"`
	BillingStop bool       `json:"billing_stop"` // no pause, so resume does not end it
}

func (s *session) printPaused(cmd *cobra.Command, resource, done string) error {
	status, err := s.gate.Resource(cmd.Context(), resource)
	if err != nil {
		return fail(err)
	}
	p := pausedJSON{resource, status.PausedUntil, status.PauseReason, status.BillingStop}
	text := resource + ": " + done
	switch {
	case p.PausedUntil != nil:
		text += " until " + p.PausedUntil.UTC().Format(time.RFC3339) + " (" + oneLine(p.PauseReason) + ")"
	case status.BillingStop:
		text = resource + ": no pause holds it; its billing stop ends with the first request that the provider serves"
	}
	return printLine(cmd, p, "%s", text)
}
