package api

import (
	"encoding/json"
	"fmt"
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
		Units map[string]json.RawMessage `json:"units"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	need, err := units("units", q.Units)
	if err != nil {
		return err
	}
	r, err := a.Gate.Route(c.r.Context(), q.Task, need...)
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

// eventWithin is how long a listener may take to read the pending events.
const eventWithin = 10 * time.Second

// events sends events as they happen, as server-sent events. A listener that is too slow loses some, and is told how
// many.
func (a *API) events(c *call) error {
	f, ok := c.w.(http.Flusher)
	if !ok || a.Events == nil {
		return &Problem{Status: http.StatusNotImplemented, Detail: "there are no events here"}
	}
	l, err := a.Events.Listen()
	if err != nil {
		return err
	}
	defer l.Close()
	c.done = true
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	f.Flush()
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	rc := http.NewResponseController(c.w)
	for {
		// A listener that does not read must not stay forever.
		_ = rc.SetWriteDeadline(time.Now().Add(15*time.Second + eventWithin))
		select {
		case <-c.r.Context().Done():
			return nil
		case <-a.Events.Done():
			return nil
		case <-alive.C:
			if _, err := fmt.Fprint(c.w, ": alive\n\n"); err != nil {
				return nil //nolint:nilerr // it is gone
			}
		case e := <-l.C:
			data, err := json.Marshal(e)
			if err != nil {
				continue
			}
			if _, err := fmt.Fprintf(c.w, "event: %s\ndata: %s\n\n", e.Kind, data); err != nil {
				return nil //nolint:nilerr // it is gone
			}
		}
		f.Flush()
	}
}
