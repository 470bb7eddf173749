//go:build linux || darwin

package agents_test

import (
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

const chained = `
resources:
  api: {limits: [{name: inflight, concurrency: 10}]}
  other: {limits: [{name: inflight, concurrency: 10}]}
agents:
  top: {waits_for: [middle]}
`

// standing is what an agent is told that speaks to the daemon.
type standing struct {
	StartNewWork bool     `json:"start_new_work"`
	Chain        []string `json:"chain"`
	Reason       string   `json:"reason"`
	TakenOverBy  string   `json:"taken_over_by"`
}

// Three agents in a chain: top speaks to the daemon and waits for middle by configuration; middle is a run that says it waits for
// bottom; bottom is a run that cannot go on. Each is another process, and all they share is a file.
func TestChainAcrossProcesses(t *testing.T) {
	r := begin(t, chained)
	top := func() (s standing) {
		if code := r.call(&s, http.MethodPut, "/v1/agents/top", `{"machine":"elsewhere"}`); code != http.StatusOK {
			t.Fatalf("the heartbeat is answered with %d", code)
		}
		return s
	}
	middle := r.start("run", "--agent", "middle", "--waits-for", "bottom", "--no-gate", "--", "sleep", "600")
	r.until("middle is alive", func() bool { a := r.agent("middle"); return a != nil && a.Leased })
	if s := top(); !s.StartNewWork || len(s.Chain) != 0 {
		t.Fatalf("nobody is limited, and top is told %+v", s)
	}
	r.sluice(0, nil, "pause", "api", "--for", "1h", "--reason", "test")
	if s := top(); !s.StartNewWork {
		t.Errorf("a pause that holds nobody up is no reason, and top is told %+v", s)
	}
	bottom := r.start("run", "--agent", "bottom", "--resource", "api", "--wait", "2h", "--deadline", "3h", "--no-gate", "--", "true")
	r.until("bottom waits", func() bool {
		var w struct{ Waiting []inspect.Waiting }
		r.call(&w, http.MethodGet, "/v1/why", "")
		return len(w.Waiting) > 0
	})
	since := time.Now()
	var told standing
	r.until("top is told", func() bool { told = top(); return !told.StartNewWork })
	r.delay("top was told", since)
	if !slices.Equal(told.Chain, []string{"top", "middle", "bottom"}) || told.Reason == "" {
		t.Errorf("top is told %+v", told)
	}
	r.chainIsShown()
	r.sluice(0, nil, "resume", "api")
	since = time.Now()
	bottom.ends()
	r.until("it is over for top", func() bool { told = top(); return told.StartNewWork })
	r.delay("top was told that it is over", since)
	r.sluice(0, nil, "run", "--agent", "middle", "--new-work", "--wait", "30s", "--no-gate", "--quiet", "--", "true")
	if middle.hasEnded() {
		t.Errorf("work that was under way is over: %v\n%s", middle.err, middle.stderr.Bytes())
	}
}

// chainIsShown looks at all the places where people and programs see it.
func (r *rig) chainIsShown() {
	r.Helper()
	long, short := []string{"top", "middle", "bottom"}, []string{"middle", "bottom"}
	var refused struct {
		Error struct {
			Code  any
			Chain []string
		}
	}
	r.sluice(75, &refused, "run", "--agent", "middle", "--new-work", "--wait", "0", "--no-gate", "--json", "--", "true")
	if !slices.Equal(refused.Error.Chain, short) {
		r.Errorf("sluice run --new-work is refused with the chain %q", refused.Error.Chain)
	}
	var why struct {
		Waiting []inspect.Waiting
		Held    []inspect.Held
	}
	r.sluice(0, &why, "why", "--agent", "top", "--json")
	if len(why.Waiting) != 0 || len(why.Held) != 1 || !slices.Equal(why.Held[0].Chain, long) {
		r.Errorf("sluice why says %+v", why)
	}
	why.Held = nil
	r.call(&why, http.MethodGet, "/v1/why?agent=top", "")
	if len(why.Held) != 1 || !slices.Equal(why.Held[0].Chain, long) {
		r.Errorf("GET /v1/why says %+v", why)
	}
	var cli, api inspect.Status
	r.sluice(0, &cli, "status", "--json")
	r.call(&api, http.MethodGet, "/v1/status", "")
	for name, s := range map[string]*inspect.Status{"sluice status": &cli, "GET /v1/status": &api} {
		chains := map[string][]string{}
		for _, a := range s.Agents {
			chains[a.Name+" "+a.State] = a.PauseChain
		}
		if !slices.Equal(chains["top held"], long) || !slices.Equal(chains["middle held"], short) || chains["bottom limited"] == nil {
			r.Errorf("%s has %v", name, chains)
		}
	}
}

// delay says how long something took, and if that was longer than is promised on a machine with nothing else to do. On such a
// machine, which SLUICE_STRICT says that this is, that is an error.
func (r *rig) delay(what string, since time.Time) {
	r.Helper()
	took := time.Since(since).Round(time.Millisecond)
	switch {
	case took <= 2*time.Second:
		r.Logf("%s after %v", what, took)
	case os.Getenv("SLUICE_STRICT") != "":
		r.Errorf("%s after %v", what, took)
	default:
		r.Logf("LATE: %s after %v", what, took)
	}
}

// An agent that moves to another machine is told where it was, and not taken back from there.
func TestAgentMovesThroughTheDaemon(t *testing.T) {
	r := begin(t, chained)
	beat := func(machine string) (s standing) {
		if code := r.call(&s, http.MethodPut, "/v1/agents/nomad", `{"machine":"`+machine+`"}`); code != http.StatusOK {
			t.Fatalf("the heartbeat is answered with %d", code)
		}
		return s
	}
	machine := func() string {
		var s inspect.Status
		r.sluice(0, &s, "status", "--json")
		if len(s.Agents) != 1 {
			t.Fatalf("alive are %+v", s.Agents)
		}
		return s.Agents[0].Machine
	}
	beat("one")
	if s := beat("two"); s.TakenOverBy != "" || !s.StartNewWork || machine() != "two" {
		t.Errorf("the second machine is told %+v", s)
	}
	if s := beat("one"); s.TakenOverBy != "two" || s.StartNewWork || machine() != "two" {
		t.Errorf("the first machine is told %+v", s)
	}
	if code := r.call(nil, http.MethodDelete, "/v1/agents/nomad?machine=one", ""); code != http.StatusNoContent || machine() != "two" {
		t.Errorf("the first machine leaves: %d", code)
	}
}
