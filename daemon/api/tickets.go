package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/ticketid"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// ask is the body of a request for a ticket.
type ask struct {
	Resource  string                     `json:"resource"`
	Agent     string                     `json:"agent"`
	Class     string                     `json:"class"`
	User      string                     `json:"user"`
	Tool      string                     `json:"tool"`
	Model     string                     `json:"model"`
	Key       string                     `json:"key"`
	Units     map[string]json.RawMessage `json:"units"`
	WaitMS    *int64                     `json:"wait_ms"`
	Emergency bool                       `json:"emergency"`
	Retry     bool                       `json:"retry"`
	TTLMS     *int64                     `json:"ttl_ms"`
}

// Grant is the response with a granted ticket.
type Grant struct {
	Ticket   string  `json:"ticket"`
	Resource string  `json:"resource"`
	Agent    string  `json:"agent"`
	Class    string  `json:"class"`
	WaitedMS int64   `json:"waited_ms"`
	Limits   []Level `json:"limits"`
}

// Level is what is left of a limit.
type Level struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Unit      string `json:"unit"`
	Limit     *int64 `json:"limit"` // nil means unknown
	Remaining *int64 `json:"remaining"`
}

func (a *API) acquire(c *call) error {
	var q ask
	if err := c.read(&q); err != nil {
		return err
	}
	req, wait, err := a.request(c, &q)
	if err != nil {
		return err
	}
	if wait, err = c.await(req.Resource, wait); err != nil {
		return err
	}
	ctx := c.r.Context()
	mine := opened{cost: req.Cost, model: req.Model}
	if begun := time.Now(); c.bounded() {
		if !a.open.room(ctx, req.Resource, mine, a.Limits[req.Resource], wait) {
			return cmp.Or(ctx.Err(), error(tooMany()))
		}
		wait = max(wait-time.Since(begun), 0)
	}
	var t sluice.Ticket
	if wait == 0 {
		t, err = a.Gate.Try(ctx, req)
	} else {
		limited, cancel := context.WithTimeout(ctx, wait)
		t, err = a.Gate.Acquire(limited, req)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			t, err = a.Gate.Try(ctx, req) // now the time of the retry may be known
		}
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // the client will never learn of the ticket
		return errors.Join(err, t.Cancel())
	}
	if mine.until = time.Now().Add(cmp.Or(req.TTL, maxTTL)); c.bounded() && !a.open.add(req.Resource, t.ID(), mine, a.Limits[req.Resource], time.Now()) {
		return errors.Join(tooMany(), t.Cancel()) // other tickets were granted while this one waited
	}
	if c.who.Token != "" { // without tokens, any caller may end it
		a.owners.add(t.ID(), c.owner(req.Agent), time.Now())
	}
	return c.reply(a.grant(ctx, t, &req))
}

// request converts an ask into a request, and returns how long to wait for it.
func (a *API) request(c *call, q *ask) (req sluice.Request, wait time.Duration, err error) {
	if q.Resource == "" {
		return req, 0, &Problem{Status: http.StatusBadRequest, Detail: "resource is missing", Hint: "name the resource to send to, such as github"}
	}
	if wait, err = millis("wait_ms", q.WaitMS, defaultWait, maxWait); err != nil {
		return req, 0, err
	}
	ttl, err := millis("ttl_ms", q.TTLMS, 0, store.MaxTTL)
	if err != nil {
		return req, 0, err
	}
	class, err := c.as(&q.Agent, q.Class)
	if err != nil {
		return req, 0, err
	}
	if q.Emergency && c.who.Highest > 0 {
		return req, 0, &Problem{Status: http.StatusForbidden, Detail: "the token's class has no emergencies", Hint: "leave emergency out, or use a token of the highest class"}
	}
	if q.User, err = c.speaksFor(q.Agent, q.User); err != nil {
		return req, 0, err
	}
	if q.Key, err = c.keyLabel(c.r.Context(), q.Resource, q.Key); err != nil {
		return req, 0, err
	}
	cost, err := units("units", q.Units)
	if err != nil {
		return req, 0, err
	}
	part, usual := provider.Usual(a.Dialect(q.Resource), q.Model)
	if err := c.mayTake(q.Resource, cost, ttl); err != nil {
		return req, 0, err
	}
	if len(cost) == 0 {
		cost = usual
	}
	c.tellNowhere(q.Resource, cost)
	cost = c.money(q.Resource, cmp.Or(q.Model, part), nil, cost)
	return sluice.Request{
		Resource: q.Resource, Agent: q.Agent, Class: class, User: q.User, Tool: q.Tool, Model: part, Priced: q.Model, Key: q.Key,
		Cost: cost, Retry: q.Retry, Emergency: q.Emergency, TTL: ttl, Detached: true,
	}, wait, nil
}

// grant describes a ticket. It leaves out levels that cannot be read: the ticket is granted all the same.
func (a *API) grant(ctx context.Context, t sluice.Ticket, req *sluice.Request) Grant {
	g := Grant{Ticket: t.ID(), Resource: req.Resource, Agent: req.Agent, Class: req.Class, WaitedMS: t.Waited().Milliseconds(), Limits: []Level{}}
	if g.Class == "" {
		g.Class = a.Gate.Class(req.Agent)
	}
	limits, err := a.levels.of(ctx, a.Gate, req.Resource)
	if err != nil {
		return g
	}
	for _, l := range limits {
		if req.In(l.Scope) {
			level := Level{Name: l.Name, Kind: l.Kind, Unit: l.Unit}
			if l.Limit > 0 {
				level.Limit, level.Remaining = &l.Limit, &l.Remaining
			}
			g.Limits = append(g.Limits, level)
		}
	}
	return g
}

// tellNowhere names the stated units that neither a limit nor a budget counts in a header, so that a mistyped unit is
// noticed.
func (c *call) tellNowhere(resource string, list []sluice.Amount) {
	nowhere, _ := inside.Of(c.api.Gate).CountNowhere(resource, list)
	for i := range nowhere {
		nowhere[i] = url.QueryEscape(nowhere[i])
	}
	if slices.Sort(nowhere); len(nowhere) > 0 {
		c.w.Header().Set("Sluice-Not-Counted", strings.Join(nowhere, ", "))
	}
}

// owner returns the owner of a ticket: a token, or the agent if there is no token.
func (c *call) owner(agent string) string {
	if c.who.Token != "" {
		return "token " + c.who.Token
	}
	return agent
}

// ticket returns the ticket that the path names.
func (a *API) ticket(c *call) (sluice.Ticket, error) {
	id := c.r.PathValue("id")
	if ticketid.Resource(id) == "" {
		return sluice.Ticket{}, &Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("%.80q is no ticket", id), Hint: "a ticket looks like RESOURCE.1f-2a"}
	}
	if (c.who.Agent != "" || c.who.Highest > 0) && !a.owners.has(id, c.owner(c.who.Agent)) {
		return sluice.Ticket{}, &Problem{Status: http.StatusForbidden, Detail: "the ticket was not granted to a bearer of this token, or before this daemon began", Hint: "a token that is bound to an agent or a class ends its own tickets only"}
	}
	return a.Gate.Ticket(id)
}

// said is the provider's response as the caller reports it.
type said struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	// Body is the beginning of the response's body, decompressed. It is read and not stored.
	Body string `json:"body"`
}

// readAnswer reads a reported response in the dialect of a resource.
func (a *API) readAnswer(resource string, s *said) (sluice.Answer, provider.Observation, error) {
	if s.Status != 0 && (s.Status < 100 || s.Status > 599) {
		return sluice.Answer{}, provider.Observation{}, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("status: %d is no status of HTTP", s.Status), Hint: "100 to 599, or 0 if there was no response"}
	}
	r := &provider.Response{Status: s.Status, Header: map[string][]string{}, Body: []byte(s.Body[:min(len(s.Body), provider.MaxBody)])}
	for name, value := range s.Headers {
		r.Header[strings.ToLower(name)] = []string{value}
	}
	o := a.Dialect(resource).Observe(r, time.Now())
	answer := o.Answer(a.Limits[resource])
	answer.Status = s.Status
	return answer, o, nil
}

func (a *API) answer(c *call) error {
	t, err := a.ticket(c)
	if err != nil {
		return err
	}
	var s said
	if err := c.read(&s); err != nil {
		return err
	}
	resource := ticketid.Resource(t.ID())
	said, _, err := a.readAnswer(resource, &s)
	if err != nil {
		return err
	}
	answer, alone := c.believe(resource, said)
	held, err := t.Answer(answer)
	if err != nil {
		return err
	}
	return c.reply(struct {
		Verdict string `json:"verdict"`
		Held    bool   `json:"held"`
	}{said.Verdict.String(), held || alone})
}

func (a *API) renew(c *call) error {
	t, err := a.ticket(c)
	if err != nil {
		return err
	}
	var q struct {
		WaitMS *int64 `json:"wait_ms"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	wait, err := millis("wait_ms", q.WaitMS, defaultWait, maxWait)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), max(wait, time.Millisecond))
	defer cancel()
	id := t.ID()
	if err := t.Renew(ctx); err != nil {
		if !errors.Is(err, sluice.ErrStore) { // the store has taken it back
			a.open.end(ticketid.Resource(id), id)
		}
		return err
	}
	if c.who.Agent != "" || c.who.Highest > 0 {
		a.owners.add(t.ID(), c.owner(c.who.Agent), time.Now())
	}
	return c.reply(struct {
		Ticket   string `json:"ticket"`
		WaitedMS int64  `json:"waited_ms"`
	}{t.ID(), t.Waited().Milliseconds()})
}

func (a *API) close(c *call) error {
	t, err := a.ticket(c)
	if err != nil {
		return err
	}
	var q struct {
		Usage map[string]json.RawMessage `json:"usage"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	usage, err := units("usage", q.Usage)
	if err != nil {
		return err
	}
	resource := ticketid.Resource(t.ID())
	c.tellNowhere(resource, usage)
	reserved := a.open.reserved(resource, c.r.PathValue("id"))
	if err := t.Close(c.money(resource, t.PricedAs(), reserved, c.used(resource, reserved, usage))...); err != nil {
		return err
	}
	a.open.end(resource, c.r.PathValue("id"))
	return nil
}

func (a *API) cancel(c *call) error {
	t, err := a.ticket(c)
	if err != nil {
		return err
	}
	if err := t.Cancel(); err != nil {
		return err
	}
	a.open.end(ticketid.Resource(t.ID()), c.r.PathValue("id"))
	return nil
}
