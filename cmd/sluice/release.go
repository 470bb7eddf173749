package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/ticketid"
	"github.com/sluicehq/sluice/store"
)

func newRelease() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release TICKET",
		Short: "End a ticket of acquire --hold, and report the response",
		Long: `Release ends a ticket: the request is over. --status and --header report the provider's response. A
success ends the backoff after refusals, a 429 pauses the resource for all callers, and rate-limit headers
correct what is counted. Only headers about limits are read, and none is kept.

Some refusals are explained only by their text, such as a 403 of GitHub's secondary rate limit:
--body passes it. Sluice reads the first 64 KiB and stores, logs and shows none of it. Other users of
the machine can see arguments; use @FILE for private text.

--usage corrects what was charged; units that it does not name keep their estimate. The unit usd is in
dollars, as in usd=0.02. A ticket that has already ended is no error; limits do not count its usage then, and
budgets only if its ttl is over. Tickets of acquire without --hold have ended.

Exit codes: 0 it has ended; 64 usage, unknown ticket; 69 the store cannot be reached; 78 bad
configuration.`,
		Example: `  sluice release search-api.1f-2a
  sluice release $t --status 429 --retry-after 30
  sluice release $t --status 403 --body @answer.json
  sluice release $t --status 200 --header 'x-ratelimit-remaining: 12' --usage input_tokens=1180,output_tokens=310`,
		Args:              needs("TICKET"),
		ValidArgsFunction: completeTickets,
	}
	flags := addResponse(cmd)
	var usage amounts
	cmd.Flags().Var(&usage, "usage", "what the request really used")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if ticketid.Resource(args[0]) == "" {
			return &failure{
				code: exitUsage, message: fmt.Sprintf("%.80q is not a ticket", args[0]), hint: "a ticket looks like RESOURCE.1f-2a, as acquire --hold prints it",
			}
		}
		s, err := openReadOnly(cmd, ticketid.Resource(args[0]))
		if err != nil {
			return err
		}
		defer s.closing(&err)
		t, err := s.gate.Ticket(args[0])
		if err != nil {
			return fail(err)
		}
		s.warnOfUnits("--usage", ticketid.Resource(args[0]), usage)
		r, err := s.release(cmd, t, flags, usage)
		if err != nil {
			return err
		}
		return r.print(cmd)
	}
	return cmd
}

// releaseJSON is what release prints with --json.
type releaseJSON struct {
	Ticket   string `json:"ticket"`
	Resource string `json:"resource"`
	// State is released, or ended if the ticket had ended before.
	State       string     `json:"state"`
	Verdict     string     `json:"verdict"`
	PausedUntil *time.Time `json:"paused_until"`
	status      int        // of the response
}

// release reports the response for the ticket, if there is one, and closes the ticket.
func (s *session) release(cmd *cobra.Command, t sluice.Ticket, flags *response, usage amounts) (releaseJSON, error) {
	r := releaseJSON{Ticket: t.ID(), Resource: ticketid.Resource(t.ID()), State: "released", Verdict: store.VerdictNone.String()}
	var read []sluice.Amount
	if flags.given() {
		a, _, err := flags.answer(s, r.Resource)
		if err != nil {
			return r, err
		}
		read = a.Usage
		_, err = t.Answer(a)
		switch {
		case errors.Is(err, sluice.ErrEnded):
			r.State = "ended"
		case err != nil:
			return r, fail(err)
		default:
			r.status, r.Verdict = a.Status, a.Verdict.String()
			if a.Verdict != store.VerdictOK {
				r.PausedUntil = s.pausedUntil(cmd, r.Resource)
			}
		}
	}
	if ended, err := inside.Of(s.gate).HasEnded(cmd.Context(), t); err != nil {
		return r, fail(err)
	} else if ended {
		r.State = "ended"
	}
	if r.State == "ended" && len(usage) > 0 {
		s.notes.Warn("--usage: the ticket has ended, so no limit counts this, and a budget only if its ttl is over; acquire --hold keeps it open")
	}
	if err := t.Close(merge(read, usage)...); err != nil {
		return r, fail(err)
	}
	return r, nil
}

// merge returns the usage of the response, overridden by what the caller states.
func merge(read, said []sluice.Amount) []sluice.Amount {
	left := slices.DeleteFunc(slices.Clone(read), func(a sluice.Amount) bool {
		return slices.ContainsFunc(said, func(b sluice.Amount) bool { return a.Unit == b.Unit })
	})
	return slices.Concat(said, left)
}

func (r *releaseJSON) print(cmd *cobra.Command) error {
	text := r.State + " " + r.Ticket
	if r.State == "ended" {
		text = r.Ticket + " has ended already"
	} else if r.Verdict != store.VerdictNone.String() {
		text += ": " + verdictText(r.Verdict, r.status) + untilText(r.PausedUntil)
	}
	return printLine(cmd, r, "%s", text)
}
