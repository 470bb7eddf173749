package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// maxTTL is how long the tickets of a token below the highest class live if nobody closes them.
// docs/remote.md#rights has all that such a token can cause.
const maxTTL = 10 * time.Minute

// bounded reports a caller below the highest class.
func (c *call) bounded() bool { return c.who.Highest > 0 }

// mayTake refuses tickets that hold more than one request needs, for longer than one takes.
func (c *call) mayTake(resource string, cost []sluice.Amount, ttl time.Duration) error {
	if !c.bounded() {
		return nil
	}
	if ttl > maxTTL {
		return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("ttl_ms: the token's tickets live for at most %v, not %v", maxTTL, ttl), Hint: "close and ask again, or use a token of the highest class"}
	}
	for _, a := range cost {
		most := c.api.most(c.r.Context(), resource, a.Unit).size
		switch a.Unit {
		case "requests":
			most = 1 // a ticket is one request
		case sluice.USD:
		default:
			most = max(most/2, 1)
		}
		if a.N > most {
			return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("units: a ticket of this token takes at most %d %.80s, not %d", most, a.Unit, a.N), Hint: "take several tickets, or use a token of the highest class"}
		}
	}
	return nil
}

// callers are the agents that tokens have brought in, by name.
type callers struct {
	mu  sync.Mutex
	all map[string]string // token by agent
}

// maxCallers bounds them; the agents of others expire by themselves.
const maxCallers = 100_000

func (o *callers) of(agent string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[agent]
}

func (o *callers) set(agent, token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil || len(o.all) >= maxCallers {
		o.all = map[string]string{}
	}
	if token == "" {
		delete(o.all, agent)
		return
	}
	o.all[agent] = token
}

// mayBeat refuses heartbeats in the name of a live agent that another token has brought in. Another daemon, or this one
// before it was started anew, may have brought it in: then a heartbeat must name the machine and the class that the
// agent has, so that it takes over nothing. It reports whether the agent becomes this token's.
func (c *call) mayBeat(m *sluice.Member) (own bool, err error) {
	if c.who.Token == "" || c.who.Agent != "" {
		return false, nil
	}
	if !c.bounded() {
		return true, nil
	}
	l, alive, err := c.api.Gate.Leased(c.r.Context(), m.Agent)
	if err != nil || !alive {
		return err == nil, err
	}
	switch c.api.callers.of(m.Agent) {
	case c.who.Token:
		return false, nil
	case "":
		if l.Machine == m.Machine && l.Class == m.Class {
			return false, nil
		}
	}
	return false, notYours(m.Agent)
}

// mayEnd refuses to end an agent that this token has not brought in.
func (c *call) mayEnd(agent string) error {
	if !c.bounded() || c.who.Agent != "" || c.api.callers.of(agent) == c.who.Token {
		return nil
	}
	return notYours(agent)
}

func notYours(agent string) error {
	return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("agent %.80q was not brought in with this token, or before this daemon began", agent), Hint: "its lease ends by itself when its heartbeats stop"}
}
