package proxy

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/inside"
)

// headerParent names the agent that the sender works for.
const headerParent = headerPrefix + "Parent"

// parentWithin bounds how long telling the store about the parent may delay a request.
const parentWithin = 500 * time.Millisecond

// parentHeaders lists the headers in which agents name the agent that started them.
var parentHeaders = []ownHeader{
	{header: headerParent},
	{header: "X-Parent-Agent-Id"},
	{"X-Claude-Code-Parent-Agent-Id", agentHeader.prefix, agentHeader.enough},
}

// parentOf returns the agent that the sender works for, under the name that the proxy knows, or "". A Claude Code agent
// that names no parent was started by its session.
func parentOf(h http.Header) string {
	if name := firstName(h, parentHeaders); name != "" || get(h, agentHeader.header) == "" {
		return name
	}
	return sessionHeader.name(h)
}

// checkParent refuses an invalid value in Sluice's own header. Headers of other programs are not checked.
func checkParent(h http.Header) *refusal {
	if n := len(get(h, headerParent)); n > maxName {
		return refuse(http.StatusBadRequest, fmt.Sprintf("the name of the parent has %d bytes, more than %d", n, maxName), "shorten it")
	}
	return nil
}

// mayHold reports whether a request may name its parent: a parent starts no new work while its child is limited. A
// token below the highest class must not hold agents of a higher class that way; then the request goes on without the
// parent.
func (p *Proxy) mayHold(r *http.Request, parent string) bool {
	token, borne := p.tokens.find(r)
	highest := slices.Index(p.classes, token.Class)
	if parent == "" || !borne || highest <= 0 {
		return parent != ""
	}
	if inside.Of(p.gate).AgentAbove(parent, highest) {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), parentWithin)
	defer cancel()
	held, leased, err := inside.Of(p.gate).Leased(ctx, parent)
	return err == nil && (!leased || slices.Index(p.classes, held.Class) >= highest)
}

// reportParent tells the gate that the parent waits for the sender, until stop is called. It repeats that, because a request
// may be held longer than the gate remembers. On an error the request goes on.
func (p *Proxy) reportParent(ctx context.Context, child, parent string) (stop func()) {
	if child == "" || parent == "" || child == parent || max(len(child), len(parent)) > maxName {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	tell := func() {
		within, done := context.WithTimeout(ctx, parentWithin)
		defer done()
		if err := p.gate.WorksFor(within, child, parent); err != nil && ctx.Err() == nil {
			p.log.Warn("could not record for which agent this one works", "agent", child, "error", err)
		}
	}
	tell()
	var mu sync.Mutex
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(inside.Of(p.gate).WorksForEvery(), func() {
		tell()
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			timer.Reset(inside.Of(p.gate).WorksForEvery())
		}
	})
	return func() {
		cancel()
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
	}
}
