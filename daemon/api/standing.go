package api

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/sluicehq/sluice"
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
type Standing struct {
	Light        string   `json:"light"`
	Allocated    int64    `json:"allocated"`
	StartNewWork bool     `json:"start_new_work"`
	Chain        []string `json:"chain"`
	Reason       string   `json:"reason,omitempty"`
	// TakenOverBy is the machine that has the lease now, if it is not the one that asks.
	TakenOverBy string `json:"taken_over_by,omitempty"`
}

// member is the agent that a path and a body speak of.
func (a *API) member(c *call, b *beat) (sluice.Member, error) {
	name := c.r.PathValue("name")
	class, err := c.as(&name, b.Class)
	if err != nil {
		return sluice.Member{}, err
	}
	if c.who.Agent != "" {
		b.User = "" // whose agent it is, the configuration says
	}
	if slices.Index(a.Classes, a.Gate.Class(name)) < c.who.Highest && b.Class == "" {
		return sluice.Member{}, &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("agent %.80q is of a higher class than the token allows", name)}
	}
	return sluice.Member{Agent: name, Class: class, User: b.User, Machine: b.Machine, WaitsFor: b.WaitsFor, Resources: b.Resources}, nil
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
	s, err := a.Gate.CheckIn(c.r.Context(), m)
	if err != nil {
		return err
	}
	return c.reply(Standing{
		Light: s.Light, Allocated: s.Allocated, StartNewWork: s.Start, Chain: s.Chain, Reason: s.Reason, TakenOverBy: s.TakenOverBy,
	})
}

func (a *API) leave(c *call) error {
	m, err := a.member(c, &beat{Machine: c.r.URL.Query().Get("machine")})
	if err != nil {
		return err
	}
	return a.Gate.Depart(m)
}
