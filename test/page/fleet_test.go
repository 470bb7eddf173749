package page

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// rowOf is the row of an agent.
func rowOf(name string) string {
	return `[...document.querySelectorAll('.agents .agent')].find(a => a.querySelector('.name').textContent === '` + name + `')`
}

// An agent that vanishes leaves the page when its lease is over, and what it was allocated is with the living.
func TestAnAgentVanishes(t *testing.T) {
	r := begin(t, "resources:\n  search: {limits: [{name: minute, size: 100/min}]}\nleases: {renew: 1s, expire: 3s}\n")
	b := r.open()
	b.until(live)
	beat := func(name string) {
		t.Helper()
		if err := r.gate.Heartbeat(t.Context(), sluice.JoinRequest{Agent: name, Class: "p1", Machine: "box", Resources: []string{"search"}}); err != nil {
			t.Fatal(err)
		}
	}
	beat("gone")
	beat("alive")
	share := func(name, of string) string {
		return rowOf(name) + `?.querySelector('.c-share').textContent.includes('/ ` + of + `search')`
	}
	b.until(share("gone", "50") + ` && ` + share("alive", "50"))
	b.until(`/^idle, lease for \d+ s$/.test(` + rowOf("gone") + `?.querySelector('.doing').textContent ?? '')`)
	soon(b.ctx, t, "it is gone, and the other has all", func() bool {
		beat("alive")
		return b.is(`!` + rowOf("gone") + ` && ` + share("alive", "100"))
	})
}

// A chain of agents that wait for each other's work is shown with its reason, and gone when the pause is.
func TestTheChain(t *testing.T) {
	r := begin(t, plain)
	b := r.open()
	b.until(live)
	if err := r.gate.Pause(t.Context(), "places", 10*time.Minute, "the provider is down"); err != nil {
		t.Fatal(err)
	}
	for _, m := range []sluice.JoinRequest{{Agent: "bottom", Resources: []string{"places"}}, {Agent: "middle", WaitsFor: []string{"bottom"}}, {Agent: "top", WaitsFor: []string{"middle"}}} {
		m.Machine = "box"
		if err := r.gate.Heartbeat(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asks sync.WaitGroup
	defer asks.Wait()
	defer cancel()
	asks.Go(func() {
		if tk, err := r.gate.Acquire(ctx, sluice.Request{Resource: "places", Agent: "bottom"}); err == nil {
			_ = tk.Close()
		}
	})
	b.until(rowOf("bottom") + `?.dataset.agent === 'limited' && ` + rowOf("bottom") + `.querySelector('.doing').textContent.includes('paused')`)
	b.until(rowOf("top") + `?.dataset.agent === 'held' && /no new work: .*top.* → .*middle.* → .*bottom/.test(` + rowOf("top") + `.querySelector('.doing').textContent)`)
	if err := r.gate.Resume(t.Context(), "places"); err != nil {
		t.Fatal(err)
	}
	b.until(rowOf("top") + `.dataset.agent === 'active' && ` + rowOf("top") + `.querySelector('.doing').textContent.includes('depends on')`)
}
