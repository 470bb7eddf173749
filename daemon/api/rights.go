package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// What a token below the highest class can cause at most; docs/remote.md#rights has the table.
const (
	// maxHint is the longest Retry-After that it can report.
	maxHint = time.Minute
	// maxTTL is how long its tickets live if they are not closed.
	maxTTL = 10 * time.Minute
)

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
		most := int64(1) // a ticket is one request
		if a.Unit != "requests" {
			most = c.api.half(resource, a.Unit)
		}
		if most > 0 && a.N > most {
			return &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("units: a ticket of this token takes at most %d %.80s, not %d", most, a.Unit, a.N), Hint: "take several tickets, or use a token of the highest class"}
		}
	}
	return nil
}

// used bounds the usage that a caller below the highest class states: what is above its estimate is charged to all.
// The bound is the whole limit: a lower one would count less than the provider has seen.
func (c *call) used(resource string, usage []sluice.Amount) []sluice.Amount {
	if !c.bounded() {
		return usage
	}
	for i := range usage {
		most := int64(1)
		if usage[i].Unit != "requests" {
			most = 2*c.api.half(resource, usage[i].Unit) + 1
		}
		if most > 1 || usage[i].Unit == "requests" {
			usage[i].N = min(usage[i].N, most)
		}
	}
	return usage
}

// half is half of the smallest limit on a unit, at least 1; 0 where no size is configured.
func (a *API) half(resource, unit string) int64 {
	least := int64(0)
	for _, l := range a.Limits[resource] {
		if l.Unit == unit && l.Size > 0 && (least == 0 || l.Size < least) {
			least = l.Size
		}
	}
	if least == 0 {
		return 0
	}
	return max(least/2, 1)
}

// believe bounds what a reported answer can do to others. The gate has not seen the answer itself: a caller below the
// highest class can begin the usual pause, and no longer one. It cannot state limits, a spent quota or a billing stop.
func (c *call) believe(a sluice.Answer) sluice.Answer {
	if !c.bounded() {
		return a
	}
	a.Limits = nil
	a.RetryAfter = min(a.RetryAfter, maxHint)
	switch a.Verdict {
	case sluice.VerdictExhausted:
		a.Verdict = sluice.VerdictThrottled
	case sluice.VerdictBilling:
		a.Verdict = sluice.VerdictError
	}
	return a
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

// mayBeat refuses heartbeats in the name of an agent that another token has brought in and that is alive. It reports
// whether the agent becomes this token's.
func (c *call) mayBeat(agent string) (own bool, err error) {
	if c.who.Token == "" || c.who.Agent != "" {
		return false, nil
	}
	if !c.bounded() {
		return true, nil
	}
	_, alive, err := c.api.Gate.LeaseClass(c.r.Context(), agent)
	if err != nil {
		return false, err
	}
	owner := c.api.callers.of(agent)
	if alive && owner != "" && owner != c.who.Token {
		return false, notYours(agent)
	}
	return !alive, nil
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
