package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

func newObserve() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "observe RESOURCE",
		Short: "Report a provider response that has no ticket",
		Long: `Observe reports the response to a request that did not pass the gate. Stated limits correct what is
counted, and a refusal pauses the resource for all callers. Where limits are per API key, it pauses
only the key in the variable that --key-env names. --body passes the text of a response that
only its text explains, such as a 403. Sluice reads the first 64 KiB and stores, logs and shows none
of it.

Exit codes: 0 reported; 64 usage, unknown resource; 69 the store cannot be reached; 78 bad
configuration.`,
		Example: `  sluice observe github --status 200 --header 'x-ratelimit-remaining: 4100' --header 'x-ratelimit-limit: 5000'
  sluice observe search-api --status 429 --retry-after 30
  sluice observe github --status 403 --body @answer.json`,
		Args:              needs("RESOURCE"),
		ValidArgsFunction: completeResources,
	}
	addIdentity(cmd)
	flags := addResponse(cmd)
	model := cmd.Flags().String("model", "", "`MODEL`, or part of the API, of the response")
	var keyEnv string
	keyFlag(cmd, &keyEnv)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if !flags.given() {
			return &failure{code: exitUsage, message: "no response given", hint: "give --status, --header, --body or --retry-after"}
		}
		s, err := openReadOnly(cmd, args[0])
		if err != nil {
			return err
		}
		defer s.closing(&err)
		id, err := identityOf(cmd, s)
		if err != nil {
			return err
		}
		a, o, err := flags.answer(s, args[0])
		if err != nil {
			return err
		}
		req := sluice.Request{Resource: args[0], Agent: id.agent, Class: id.class, User: id.user, Model: provider.PartOf(s.file.Dialect(args[0]), *model, &o)}
		if req.Key, err = s.keyLabel(cmd, args[0], keyEnv); err != nil {
			return err
		}
		if err := s.gate.Observe(cmd.Context(), req, a); err != nil {
			return fail(err)
		}
		return s.printObserved(cmd, args[0], a, o.Ignored)
	}
	return cmd
}

// observedJSON is what observe prints with --json.
type observedJSON struct {
	Resource    string     `json:"resource"`
	Verdict     string     `json:"verdict"`
	Limits      []string   `json:"limits"`  // stated by the response
	Ignored     int        `json:"ignored"` // invalid header fields
	PausedUntil *time.Time `json:"paused_until"`
}

func (s *session) printObserved(cmd *cobra.Command, resource string, a sluice.Answer, ignored int) error {
	o := observedJSON{
		Resource: resource, Verdict: a.Verdict.String(), Limits: []string{}, Ignored: ignored, PausedUntil: s.pausedUntil(cmd, resource),
	}
	for _, l := range a.Limits {
		o.Limits = append(o.Limits, l.Limit)
	}
	return printLine(cmd, o, "%s: %s%s", resource, verdictText(o.Verdict, a.Status), untilText(o.PausedUntil))
}

// verdictText says what a response means for the quota. A refusal for another reason means nothing for it.
func verdictText(verdict string, status int) string {
	if verdict == store.VerdictOK.String() && status >= 400 {
		return fmt.Sprintf("status %d is not a rate limit", status)
	}
	return verdict
}
