package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

func (a *API) observe(c *call) error {
	var s struct {
		said
		Agent string `json:"agent"`
		Model string `json:"model"`
		Key   string `json:"key"`
	}
	if err := c.read(&s); err != nil {
		return err
	}
	if err := c.mayControl(); err != nil { // a pause holds every caller
		return err
	}
	name := c.r.PathValue("name")
	key, err := c.keyLabel(c.r.Context(), name, s.Key)
	if err != nil {
		return err
	}
	if s.Agent == "" && c.who.Agent == "" {
		s.Agent = "(api)"
	}
	if _, err := c.as(&s.Agent, ""); err != nil {
		return err
	}
	answer, o, err := a.readAnswer(name, &s.said)
	if err != nil {
		return err
	}
	part := provider.PartOf(a.Dialect(name), s.Model, &o)
	if err := a.Gate.Observe(c.r.Context(), sluice.Request{Resource: name, Agent: s.Agent, Model: part, Key: key}, answer); err != nil {
		return err
	}
	return c.reply(struct {
		Verdict string `json:"verdict"`
	}{answer.Verdict.String()})
}

// mayControl refuses callers with a token below the highest class, because pause and resume affect every caller.
func (c *call) mayControl() error {
	if c.who.Highest > 0 {
		return &Problem{Status: http.StatusForbidden, Detail: "pause, resume and observe need a token of the highest class", Hint: "use such a token, or ask the operator of the gate"}
	}
	return nil
}

func (a *API) pause(c *call) error {
	var q struct {
		ForMS  *int64 `json:"for_ms"`
		Reason string `json:"reason"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	if err := c.mayControl(); err != nil {
		return err
	}
	d, err := millis("for_ms", q.ForMS, time.Minute, 24*time.Hour)
	if err != nil {
		return err
	}
	return a.Pause(c.r.Context(), c.r.PathValue("name"), d, q.Reason)
}

func (a *API) resume(c *call) error {
	if err := c.mayControl(); err != nil {
		return err
	}
	return a.Resume(c.r.Context(), c.r.PathValue("name"))
}

func (a *API) route(c *call) error {
	var q struct {
		Task  string                     `json:"task"`
		Agent string                     `json:"agent"`
		Class string                     `json:"class"`
		User  string                     `json:"user"`
		Units map[string]json.RawMessage `json:"units"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	class, err := c.as(&q.Agent, q.Class)
	if err != nil {
		return err
	}
	if q.User, err = c.speaksFor(q.Agent, q.User); err != nil {
		return err
	}
	need, err := units("units", q.Units)
	if err != nil {
		return err
	}
	r, err := a.Gate.Route(c.r.Context(), q.Task, sluice.Request{Agent: q.Agent, Class: class, User: q.User, Cost: need})
	if err != nil {
		return err
	}
	var wait *int64
	if !r.Unknown {
		wait = new(r.Wait.Milliseconds())
	}
	return c.reply(struct {
		Model      string  `json:"model"`
		Resource   string  `json:"resource"`
		WaitMS     *int64  `json:"wait_ms"`
		USDPerMTok float64 `json:"usd_per_mtok"`
		Unpriced   bool    `json:"unpriced,omitempty"`
		Reason     string  `json:"reason"`
	}{r.Model, r.Resource, wait, r.USDPerMTok, r.Unpriced, r.Reason})
}

func (a *API) status(c *call) error {
	return c.result(a.Status(c.r.Context()))
}

func (a *API) pool(c *call) error {
	ctx, name := c.r.Context(), c.r.PathValue("name")
	return a.at(ctx, name, func(g *sluice.Gate) error { return c.result(g.Pool(ctx, name)) })
}
