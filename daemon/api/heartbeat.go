package api

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
)

// beat is the body of a heartbeat: what an agent says about itself.
type beat struct {
	Class     string `json:"class"`
	User      string `json:"user"`
	Machine   string `json:"machine"`
	WaitsFor  names  `json:"waits_for"`
	Resources names  `json:"resources"`
}

// CheckInResult is the response to a heartbeat.
type CheckInResult struct {
	Light        string   `json:"light"`
	Allocated    *int64   `json:"allocated"` // nil: not known
	StartNewWork bool     `json:"start_new_work"`
	Chain        []string `json:"chain"`
	Reason       string   `json:"reason,omitempty"`
	// TakenOverBy names the machine that holds the lease now, if it is not the caller's.
	TakenOverBy string `json:"taken_over_by,omitempty"`
}

// joinRequest returns the agent that the path and the body describe.
func (a *API) joinRequest(c *call, b *beat) (sluice.JoinRequest, error) {
	name := c.r.PathValue("name")
	class, err := c.as(&name, b.Class)
	if err != nil {
		return sluice.JoinRequest{}, err
	}
	if b.User, err = c.speaksFor(name, b.User); err != nil {
		return sluice.JoinRequest{}, err
	}
	if err := a.below(c, name, b.Class); err != nil {
		return sluice.JoinRequest{}, err
	}
	return sluice.JoinRequest{Agent: name, Class: class, User: b.User, Machine: b.Machine, WaitsFor: b.WaitsFor, Resources: b.Resources}, nil
}

// below refuses a token of a lower class that speaks for an agent of a higher one. Its heartbeat would take over the
// agent's lease, position or class.
func (a *API) below(c *call, agent, class string) error {
	if c.who.Highest == 0 {
		return nil
	}
	high := slices.Index(a.Classes, a.Gate.Class(agent)) < c.who.Highest && (class == "" || c.who.Agent == "")
	if !high && c.who.Agent == "" {
		held, ok, err := inside.Of(a.Gate).Leased(c.r.Context(), agent)
		if err != nil {
			return err
		}
		high = ok && slices.Index(a.Classes, held.Class) < c.who.Highest
	}
	if high {
		return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("agent %.80q is of a higher class than the token allows", agent), Hint: "use a token of the agent's class, or another agent"}
	}
	return nil
}

func (a *API) heartbeat(c *call) error {
	var b beat
	if err := c.read(&b); err != nil {
		return err
	}
	m, err := a.joinRequest(c, &b)
	if err != nil {
		return err
	}
	if m.Machine == "" {
		m.Machine = "-" // an empty machine would mean the daemon's own; status shows none
	}
	own, err := c.mayBeat(&m)
	if err != nil {
		return err
	}
	s, err := inside.Of(a.Gate).CheckIn(c.r.Context(), m)
	if err != nil {
		return err
	}
	if own {
		a.callers.set(m.Agent, c.who.Token, time.Now())
	}
	out := CheckInResult{Light: s.Light, StartNewWork: s.Start, Chain: s.Chain, Reason: s.Reason, TakenOverBy: s.TakenOverBy}
	if s.Allocated != inspect.Unknown {
		out.Allocated = &s.Allocated
	}
	return c.reply(out)
}

func (a *API) leave(c *call) error {
	m, err := a.joinRequest(c, &beat{Machine: c.r.URL.Query().Get("machine")})
	if err != nil {
		return err
	}
	if err := c.mayEnd(m.Agent); err != nil {
		return err
	}
	if err := a.Gate.Leave(m); err != nil {
		return err
	}
	a.callers.set(m.Agent, "", time.Now())
	return nil
}
