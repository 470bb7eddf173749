package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// asking holds the flags that describe the request, shared by acquire and run.
type asking struct {
	tool, model      string
	keyEnv           string
	cost             amounts
	wait, ttl        timeFlag
	emergency, retry bool
}

// addAsking adds the flags that describe the request.
func addAsking(cmd *cobra.Command) *asking {
	a := &asking{wait: timeFlag(30 * time.Second)}
	cmd.Flags().StringVar(&a.tool, "tool", "", "`TOOL` of the request; its cost counts in the unit work")
	cmd.Flags().StringVar(&a.model, "model", "", "`MODEL`, or part of the API, of the request")
	keyFlag(cmd, &a.keyEnv)
	cmd.Flags().Var(&a.cost, "cost", "what the request takes besides one request")
	cmd.Flags().Var(&a.wait, "wait", "the longest wait; 0 takes what is free now")
	cmd.Flags().Var(&a.ttl, "ttl", "how long an unreleased ticket lives; else the resource's ttl, 10m")
	cmd.Flags().BoolVar(&a.emergency, "emergency", false, "go first and use what others leave; highest class only")
	cmd.Flags().BoolVar(&a.retry, "retry", false, "count the request as a retry")
	return a
}

// request builds the request that the flags describe.
func (a *asking) request(cmd *cobra.Command, s *session, resource string, id identity) (req sluice.Request, err error) {
	req = sluice.Request{
		Resource: resource, Agent: id.agent, Class: id.class, User: id.user, Tool: a.tool, Model: a.model, Priced: a.model,
		Cost: a.cost, Retry: a.retry, Emergency: a.emergency, TTL: time.Duration(a.ttl),
	}
	if req.TTL > store.MaxTTL {
		return req, &failure{code: exitUsage, message: fmt.Sprintf("--ttl: %s is too long", a.ttl.String()), hint: "a ticket lives for at most " + shortTime(store.MaxTTL)}
	}
	if req.Key, err = s.keyLabel(cmd, resource, a.keyEnv); err != nil {
		return req, err
	}
	s.warnOfUnits("--cost", resource, a.cost)
	part, cost := provider.Usual(s.file.Dialect(resource), a.model)
	if req.Model = part; len(req.Cost) == 0 {
		req.Cost = cost
	}
	return req, nil
}

// warnOfUnits warns about units of a flag that count nowhere.
func (s *session) warnOfUnits(flag, resource string, list amounts) {
	nowhere, units := inside.Of(s.gate).CountNowhere(resource, list)
	for _, unit := range nowhere {
		hint := "it has none"
		if len(units) > 0 {
			hint = didYouMean(unit, units, "its limits count "+strings.Join(units, ", "))
		}
		s.notes.Warn(fmt.Sprintf("%s %s: no limit of %s counts this unit; %s", flag, oneLine(unit), resource, hint))
	}
}

func newAcquire() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acquire RESOURCE",
		Short: "Wait for permission to send one request",
		Long: `Acquire waits until one request may be sent, in turn with all other callers of the resource, and
exits with 0. A resource is one of the configuration, or a provider with known limits (github).

Without --hold the request counts as sent now. With --hold the ticket stays open until
"sluice release TICKET" reports the response. That makes counting exact and lets one caller's 429
pause the whole fleet.

A request costs 1 in the unit requests, and its --tool's cost in the unit work. --cost states
other units, such as input_tokens=1200. On github a request is a read that counts against core;
--model search, code_search or graphql names another part of the API, and
--cost core=1,points=5,content=1 is a write.

Where limits are per API key (split: key, per: [key]), --key-env names the variable that holds the key
of this request. Only a label of the key reaches the store.

Exit codes: 0 granted; 64 usage, unknown resource; 69 the store cannot be reached; 75 not within
--wait, or too many waiting; 77 refused: the cost is above a limit's size, or the class may not do this;
78 bad configuration; 128+n ended by signal n.`,
		Example: `  sluice acquire github && gh api /user
  sluice acquire search-api --agent indexer --class p1 --wait 2m
  t=$(sluice acquire search-api --hold --json | jq -r .ticket); curl ...; sluice release $t --status 200`,
		Args:              needs("RESOURCE"),
		ValidArgsFunction: completeResources,
	}
	addIdentity(cmd)
	flags := addAsking(cmd)
	hold := cmd.Flags().Bool("hold", false, "keep the ticket until it is released")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		s, err := openGate(cmd, args[0])
		if err != nil {
			return err
		}
		defer s.closing(&err)
		id, err := identityOf(cmd, s)
		if err != nil {
			return err
		}
		req, err := flags.request(cmd, s, args[0], id)
		if err != nil {
			return err
		}
		req.Spent, req.Detached = !*hold, *hold
		t, err := s.acquire(cmd, req, time.Duration(flags.wait))
		if err != nil {
			return err
		}
		if err := s.printGrant(cmd.Context(), cmd.OutOrStdout(), req, t, *hold, asJSON(cmd)); err != nil {
			_ = t.Cancel() // the caller never learned its id
			return err
		}
		return nil
	}
	return cmd
}

// acquire waits for a ticket, and shows on stderr that it waits.
func (s *session) acquire(cmd *cobra.Command, req sluice.Request, wait time.Duration) (sluice.Ticket, error) {
	if wait == 0 {
		t, err := s.gate.Try(cmd.Context(), req)
		return t, fail(err)
	}
	ctx, ignore := withSignals(cmd.Context())
	defer ignore()
	stop := s.showWaiting(ctx, cmd.ErrOrStderr(), req)
	limited, cancel := context.WithTimeout(ctx, wait)
	t, err := s.gate.Acquire(limited, req)
	cancel()
	stop()
	if errors.Is(err, context.DeadlineExceeded) {
		// Only now is it certain that the wait was too short. The time to retry may be known by now.
		t, err = s.gate.Try(ctx, req)
	}
	if caught := signalOf(ctx); caught != nil && errors.Is(err, sluice.ErrCancelled) {
		return t, caught.failure("waiting for " + req.Resource)
	}
	return t, fail(err)
}

// grantJSON is what acquire prints with --json.
type grantJSON struct {
	Ticket   string      `json:"ticket"`
	Resource string      `json:"resource"`
	Agent    string      `json:"agent"`
	Class    string      `json:"class"`
	Granted  time.Time   `json:"granted_at"` // from then on the request has its time to arrive
	WaitedMS int64       `json:"waited_ms"`
	Limits   []levelJSON `json:"limits"`
}

type levelJSON struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Unit      string `json:"unit"`
	Limit     *int64 `json:"limit"` // nil means unknown
	Remaining *int64 `json:"remaining"`
}

// levelsWithin is how long a granted command waits to learn what remains of the limits.
const levelsWithin = 100 * time.Millisecond

func (s *session) printGrant(ctx context.Context, w io.Writer, req sluice.Request, t sluice.Ticket, held, asJSON bool) error {
	if !asJSON {
		after := "at once"
		if waited := t.Waited().Round(100 * time.Millisecond); waited > 0 {
			after = "after " + waited.String()
		}
		_, err := fmt.Fprintf(w, "granted %s to %s (%s) %s\n", req.Resource, oneLine(req.Agent), s.className(req.Class), after)
		if err == nil && held {
			_, err = fmt.Fprintf(w, "ticket %s\n", t.ID())
		}
		return written(err)
	}
	grant := grantJSON{
		Ticket: t.ID(), Resource: req.Resource, Agent: req.Agent, Class: s.className(req.Class), Granted: t.GrantedAt().UTC(), WaitedMS: t.Waited().Milliseconds(),
		Limits: []levelJSON{},
	}
	// The ticket is granted in any case, so levels that cannot be read soon are left out: the time in which the request
	// has to arrive is running.
	ctx, cancel := context.WithTimeout(ctx, levelsWithin)
	defer cancel()
	if status, err := s.gate.Resource(ctx, req.Resource); err == nil {
		for _, l := range status.Limits {
			if req.In(l.Scope) {
				level := levelJSON{Name: l.Name, Kind: l.Kind, Unit: l.Unit}
				if l.Limit > 0 {
					level.Limit, level.Remaining = &l.Limit, &l.Remaining
				}
				grant.Limits = append(grant.Limits, level)
			}
		}
	}
	return written(printJSON(w, grant))
}
