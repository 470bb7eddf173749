package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

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
	ctx := c.r.Context()
	if err := a.Gate.Heartbeat(ctx, m); err != nil {
		return err
	}
	work, err := a.Gate.StartNewWork(ctx, m.Agent)
	if err != nil {
		return err
	}
	s := Standing{Light: "green", StartNewWork: work.Start, Chain: work.Chain, Reason: work.Reason}
	if s.Chain == nil {
		s.Chain = []string{}
	}
	status, err := a.Gate.Status(ctx)
	if err != nil {
		return err
	}
	for _, agent := range status.Agents {
		if agent.Name == m.Agent {
			s.Allocated = agent.Allocated
			for _, r := range status.Resources {
				if r.Name == agent.Resource {
					s.Light = r.Light
				}
			}
		}
	}
	return c.reply(s)
}

func (a *API) leave(c *call) error {
	m, err := a.member(c, &beat{Machine: c.r.URL.Query().Get("machine")})
	if err != nil {
		return err
	}
	return a.Gate.Depart(m)
}

func (a *API) observe(c *call) error {
	var s struct {
		said
		Agent string `json:"agent"`
		Model string `json:"model"`
	}
	if err := c.read(&s); err != nil {
		return err
	}
	if err := c.mayControl(); err != nil { // what it tells may hold everybody
		return err
	}
	name := c.r.PathValue("name")
	if s.Agent == "" && c.who.Agent == "" {
		s.Agent = "(api)"
	}
	if _, err := c.as(&s.Agent, ""); err != nil {
		return err
	}
	answer, err := a.readAnswer(name, &s.said)
	if err != nil {
		return err
	}
	if err := a.Gate.Observe(c.r.Context(), sluice.Request{Resource: name, Agent: s.Agent, Model: s.Model}, answer); err != nil {
		return err
	}
	return c.reply(struct {
		Verdict string `json:"verdict"`
	}{answer.Verdict.String()})
}

// mayControl refuses those who may not hold everybody: bearers of a token for lower classes.
func (c *call) mayControl() error {
	if c.who.Highest > 0 {
		return &Problem{Status: http.StatusForbidden, Detail: "a token of the highest class is needed to hold everybody, or to let them go"}
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
	return a.Gate.Pause(c.r.Context(), c.r.PathValue("name"), d, q.Reason)
}

func (a *API) resume(c *call) error {
	if err := c.mayControl(); err != nil {
		return err
	}
	return a.Gate.Resume(c.r.Context(), c.r.PathValue("name"))
}

func (a *API) route(c *call) error {
	var q struct {
		Task  string           `json:"task"`
		Units map[string]int64 `json:"units"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	need, err := units(q.Units)
	if err != nil {
		return err
	}
	r, err := a.Gate.Route(c.r.Context(), q.Task, need...)
	if err != nil {
		return err
	}
	var wait *int64
	if !r.Unknown {
		ms := r.Wait.Milliseconds()
		wait = &ms
	}
	return c.reply(struct {
		Model      string  `json:"model"`
		Resource   string  `json:"resource"`
		WaitMS     *int64  `json:"wait_ms"`
		USDPerMTok float64 `json:"usd_per_mtok"`
		Reason     string  `json:"reason"`
	}{r.Model, r.Resource, wait, r.USDPerMTok, r.Reason})
}

func (a *API) status(c *call) error {
	s, err := a.Gate.Status(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(s)
}

func (a *API) pool(c *call) error {
	p, err := a.Gate.Pool(c.r.Context(), c.r.PathValue("name"))
	if err != nil {
		return err
	}
	return c.reply(p)
}

func (a *API) why(c *call) error {
	q := c.r.URL.Query()
	list := []sluice.Waiting{}
	names := []string{q.Get("resource")}
	if names[0] == "" {
		s, err := a.Gate.Status(c.r.Context())
		if err != nil {
			return err
		}
		names = nil
		for _, r := range s.Resources {
			names = append(names, r.Name)
		}
	}
	for _, name := range names {
		some, err := a.Gate.Why(c.r.Context(), name)
		if err != nil {
			return err
		}
		for _, w := range some {
			if (q.Get("agent") == "" || q.Get("agent") == w.Agent) && (q.Get("ticket") == "" || q.Get("ticket") == w.Ticket) {
				list = append(list, w)
			}
		}
	}
	return c.reply(struct {
		Waiting []sluice.Waiting `json:"waiting"`
	}{list})
}

func (a *API) report(c *call) error {
	from, err := since(c.r.URL.Query().Get("since"))
	if err != nil {
		return err
	}
	r, err := a.Report(c.r.Context(), from)
	if err != nil {
		return err
	}
	return c.reply(r)
}

// eventWithin is how long a listener may take to read what there is.
const eventWithin = 10 * time.Second

// events sends what happens as it does (server-sent events). One that cannot follow loses some, and is told how many.
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
		// One who does not read must not stay for ever.
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
