package api

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/money"
	"github.com/sluicehq/sluice/proxy"
)

// maxTTL is how long an unclosed ticket lives if its token is below the highest class. docs/remote.md#rights lists
// everything that such a token can do.
const maxTTL = 10 * time.Minute

// bounded reports whether the caller is below the highest class.
func (c *call) bounded() bool { return c.who.Highest > 0 }

// mayTake refuses tickets that reserve more than one request needs, or live longer than one takes.
func (c *call) mayTake(resource string, cost []sluice.Amount, ttl time.Duration) error {
	if !c.bounded() {
		return nil
	}
	if ttl > maxTTL {
		return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("ttl_ms: the token's tickets live for at most %v, not %v", maxTTL, ttl), Hint: "close and ask again, or use a token of the highest class"}
	}
	for _, a := range cost {
		most := c.mostOf(resource, a.Unit)
		if a.N > most {
			return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("units: a ticket of this token takes at most %s %.80s, not %s", written(a.Unit, most), a.Unit, written(a.Unit, a.N)), Hint: "take several tickets, or use a token of the highest class"}
		}
	}
	return nil
}

// mostOf returns how much of a unit one ticket of a caller below the highest class takes.
func (c *call) mostOf(resource, unit string) int64 {
	switch unit {
	case sluice.Requests:
		return 1 // a ticket is one request
	case sluice.USD:
		return maxMicros
	}
	return max(c.api.most(c.r.Context(), resource, unit).size/2, 1)
}

// written returns an amount of a unit as bodies state it: money in dollars.
func written(unit string, n int64) string {
	if unit == sluice.USD {
		return money.Text(n)
	}
	return strconv.FormatInt(n, 10)
}

// speaksFor returns the user that the caller belongs to. It refuses agents and users that the caller must not speak
// for.
func (c *call) speaksFor(agent, user string) (string, error) {
	as, why := c.api.Users.May(c.api.Gate, proxy.Speaker{Agent: c.who.Agent, User: c.who.User, Highest: c.who.Highest}, agent, user, time.Now())
	if why != "" {
		return "", &Problem{Status: http.StatusForbidden, Detail: why, Hint: proxy.HintOfUser}
	}
	return as, nil
}

// callers records which token introduced each agent, by the agent's name.
type callers struct {
	mu    sync.Mutex
	all   map[string]brought
	swept time.Time
}

type brought struct {
	token string
	at    time.Time // of its last heartbeat
}

const (
	// maxCallers bounds the entries; agents beyond it expire by themselves.
	maxCallers = 100_000
	// maxAgents is how many live agents one token below the highest class can introduce. A fleet has room for 131,072.
	maxAgents = 10_000
	// aliveFor is longer than any lease.
	aliveFor = time.Hour
)

func (o *callers) of(agent string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[agent].token
}

func (o *callers) set(agent, token string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if token == "" {
		delete(o.all, agent)
		return
	}
	if o.all == nil {
		o.all = map[string]brought{}
	}
	if _, known := o.all[agent]; !known && len(o.all) >= maxCallers {
		if o.sweep(now); len(o.all) >= maxCallers {
			return
		}
	}
	o.all[agent] = brought{token, now}
}

// full reports whether a token has introduced as many agents as it may.
func (o *callers) full(agent, token string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) < maxAgents || o.all[agent].token == token {
		return false
	}
	o.sweep(now)
	n := 0
	for _, b := range o.all {
		if b.token == token {
			n++
		}
	}
	return n >= maxAgents
}

// sweep drops agents that are no longer alive, at most once a minute.
func (o *callers) sweep(now time.Time) {
	if now.Sub(o.swept) > time.Minute {
		o.swept = now
		maps.DeleteFunc(o.all, func(_ string, b brought) bool { return now.Sub(b.at) > aliveFor })
	}
}

// mayBeat refuses a heartbeat for a live agent that another token has introduced. Another daemon, or this one before a
// restart, may have introduced it. Then the heartbeat must name the agent's machine and class, so that it takes over
// nothing. The bool reports whether the agent becomes this token's.
func (c *call) mayBeat(m *sluice.JoinRequest) (own bool, err error) {
	if c.who.Token == "" || c.who.Agent != "" {
		return false, nil
	}
	if !c.bounded() {
		return true, nil
	}
	l, alive, err := inside.Of(c.api.Gate).Leased(c.r.Context(), m.Agent)
	if err != nil {
		return false, err
	}
	if !alive {
		if c.api.callers.full(m.Agent, c.who.Token, time.Now()) {
			return false, &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("the token has brought in %d agents already", maxAgents), Hint: "end some, or use a token of the highest class"}
		}
		return true, nil
	}
	switch c.api.callers.of(m.Agent) {
	case c.who.Token:
		return true, nil
	case "":
		if l.Machine == m.Machine && l.Class == m.Class {
			return false, nil
		}
	}
	return false, notYours(m.Agent)
}

// mayEnd refuses to end an agent that another token introduced.
func (c *call) mayEnd(agent string) error {
	if !c.bounded() || c.who.Agent != "" || c.api.callers.of(agent) == c.who.Token {
		return nil
	}
	return notYours(agent)
}

func notYours(agent string) error {
	return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("agent %.80q was not brought in with this token, or before this daemon began", agent), Hint: "its lease ends by itself when its heartbeats stop"}
}

// me tells a caller its identity and its rights, so that a user interface offers only what the daemon would allow.
func (a *API) me(c *call) error {
	class := ""
	if len(a.Classes) > c.who.Highest {
		class = a.Classes[c.who.Highest]
	}
	return c.reply(struct {
		Token   string `json:"token"`
		Agent   string `json:"agent"`
		Class   string `json:"class"`
		Control bool   `json:"control"`
	}{c.who.Token, c.who.Agent, class, c.mayControl() == nil})
}
