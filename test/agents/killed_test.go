//go:build linux || darwin

package agents_test

import (
	"maps"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

const short = `
resources:
  api: {limits: [{name: hour, size: 1000/h}]}
leases: {renew: 1s, expire: 3s}
slots: {per: user, max: 1, ttl: 3s}
`

// parts is who has what of the resource, by what can be asked: status and pool on the command line, and the API, which the page reads.
func (r *rig) parts() (all map[string]map[string]int64) {
	r.Helper()
	var cli, api inspect.Status
	var pool, apiPool inspect.PoolStatus
	r.sluice(0, &cli, "status", "--json")
	r.sluice(0, &pool, "pool", "api", "--json")
	r.call(&api, http.MethodGet, "/v1/status", "")
	r.call(&apiPool, http.MethodGet, "/v1/pool/api", "")
	all = map[string]map[string]int64{}
	for name, s := range map[string]*inspect.Status{"status": &cli, "GET /v1/status": &api} {
		all[name] = map[string]int64{}
		for _, a := range s.Agents {
			all[name][a.Name] = a.Allocated
		}
	}
	for name, p := range map[string]*inspect.PoolStatus{"pool": &pool, "GET /v1/pool": &apiPool} {
		all[name] = map[string]int64{}
		for agent, a := range p.Allocations {
			all[name][agent] = a.Allocated
		}
	}
	return all
}

// agent is one that is alive; nil: it is not.
func (r *rig) agent(name string) *inspect.AgentStatus {
	r.Helper()
	var s inspect.Status
	r.call(&s, http.MethodGet, "/v1/status", "")
	if i := slices.IndexFunc(s.Agents, func(a inspect.AgentStatus) bool { return a.Name == name }); i >= 0 {
		return &s.Agents[i]
	}
	return nil
}

// An agent killed with -9 holds its part of the quota and its user's slot until its lease is over. Then both are with the living.
func TestKilledAgentGivesEverythingBack(t *testing.T) {
	r := begin(t, short)
	run := r.start("run", "--agent", "victim", "--class", "p1", "--user", "me", "--resource", "api", "--no-gate", "--", "sleep", "600")
	living := func() {
		if code := r.call(nil, http.MethodPut, "/v1/agents/living", `{"class":"p1","user":"you","machine":"elsewhere","resources":["api"]}`); code != http.StatusOK {
			t.Fatalf("the living one's heartbeat is answered with %d", code)
		}
	}
	newcomer := func() int {
		return r.call(nil, http.MethodPut, "/v1/agents/newcomer", `{"class":"p1","user":"me","machine":"elsewhere","resources":["api"]}`)
	}
	has := func(want map[string]int64) func() bool {
		return func() bool {
			living()
			for name, got := range r.parts() {
				if !maps.Equal(got, want) {
					t.Logf("%s: %v", name, got)
					return false
				}
			}
			return true
		}
	}
	r.until("both have half", has(map[string]int64{"victim": 500, "living": 500}))
	if code := newcomer(); code != http.StatusTooManyRequests {
		t.Errorf("another agent of the same user is answered with %d, though its slot is taken", code)
	}
	victim := r.agent("victim")
	if victim == nil || !victim.Leased || victim.User != "me" || victim.Class != "p1" || victim.Machine == "" || victim.LeaseStartedAt == nil || victim.LeaseExpiresAt == nil {
		t.Fatalf("the one to be killed is %+v", victim)
	}
	if err := run.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-run.done
	if a := r.agent("victim"); a != nil { // it may have sent another heartbeat
		victim = a
	}
	over := *victim.LeaseExpiresAt
	r.until("the living one has all of it", func() bool {
		if time.Until(over) > time.Second/2 {
			if code := newcomer(); code != http.StatusTooManyRequests && time.Now().Before(over) {
				t.Fatalf("another agent of the same user is answered with %d before the lease is over", code)
			}
		}
		living()
		if a := r.agent("living"); a == nil || a.Allocated != 1000 {
			return false
		}
		if early := time.Until(over); early > 0 {
			t.Fatalf("what the dead one had is given away %v before its lease is over", early)
		}
		return true
	})
	r.until("everything says so", has(map[string]int64{"living": 1000}))
	r.until("another agent of the same user gets the slot", func() bool { return newcomer() == http.StatusOK })
	r.until("the two living share it", func() bool {
		newcomer()
		return has(map[string]int64{"living": 500, "newcomer": 500})()
	})
	t.Logf("all of it seen %v after the end of the lease", time.Since(over).Round(time.Millisecond))
}
