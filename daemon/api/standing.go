package api

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
)

// beat is what an agent says of itself.
type beat struct {
	Class     string   `json:"class"`
	User      string   `json:"user"`
	Machine   string   `json:"machine"`
	WaitsFor  []string `json:"waits_for"`
	Resources []string `json:"resources"`
}

// Standing is what an agent is told.
type CheckInResult struct {
	Light        string   `json:"light"`
	Allocated    int64    `json:"allocated"`
	StartNewWork bool     `json:"start_new_work"`
	Chain        []string `json:"chain"`
	Reason       string   `json:"reason,omitempty"`
	// TakenOverBy is the machine that has the lease now, if it is not the one that asks.
	TakenOverBy string `json:"taken_over_by,omitempty"`
}

// member is the agent that a path and a body speak of.
func (a *API) member(c *call, b *beat) (sluice.JoinRequest, error) {
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

// below refuses bearers of a token for lower classes who speak for an agent of a higher one: what they say would take its lease, its
// place, or its class.
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
		return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("agent %.80q is of a higher class than the token allows", agent)}
	}
	return nil
}

func (a *API) heartbeat(c *call) error {
	var b beat
	if err := c.read(&b); err != nil {
		return err
	}
	m, err := a.member(c, &b)
	if err != nil {
		return err
	}
	if m.Machine == "" {
		m.Machine = "-" // it is not this one
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
	return c.reply(CheckInResult{
		Light: s.Light, Allocated: s.Allocated, StartNewWork: s.Start, Chain: s.Chain, Reason: s.Reason, TakenOverBy: s.TakenOverBy,
	})
}

func (a *API) leave(c *call) error {
	m, err := a.member(c, &beat{Machine: c.r.URL.Query().Get("machine")})
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
