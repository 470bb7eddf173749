//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// fleet is a store and a configuration that several processes share.
type fleet struct {
	t     *testing.T
	env   []string
	child string
}

func newFleet(t *testing.T, text string) *fleet {
	t.Helper()
	return newFleetOn(t, "file:"+filepath.Join(t.TempDir(), "store"), text)
}

func newFleetOn(t *testing.T, store, text string) *fleet {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &fleet{t, []string{"SLUICE_STORE=" + store, "SLUICE_CONFIG=" + config}, child(t)}
}

func (f *fleet) start(args ...string) *process {
	f.t.Helper()
	return start(f.t, f.env, args...)
}

// agents returns the agents that hold a lease.
func (f *fleet) agents() (names []string) {
	f.t.Helper()
	cmd := proctest.Command(f.t, "sluice", "agents", "--json")
	cmd.Env = append(os.Environ(), f.env...)
	out, err := cmd.Output()
	var list agentsJSON
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range list.Agents {
		if a.LeaseExpiresAt != nil && !strings.Contains(a.Name, "#") { // and not an instance with its slot
			names = append(names, a.Name)
		}
	}
	return names
}

// Each command takes its own slot, also if several belong to one agent.
func TestRunsOfOneAgentTakeASlotEach(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 2}\n")
	hold := func(wait string) *process {
		return f.start("run", "--agent", "one", "--user", "u", "--wait", wait, "--quiet", "--", f.child, "hold")
	}
	first, second := hold("1m"), hold("1m")
	first.says("ready")
	second.says("ready")
	hold("0").ends(exitNotYet)
	third := hold("5m")
	first.stdin.Close()
	first.ends(0)
	third.says("ready")
	for _, p := range []*process{second, third} {
		p.stdin.Close()
		p.ends(0)
	}
	if got := f.agents(); len(got) != 0 {
		t.Errorf("leases are still held by %q", got)
	}
}

func TestThirdWaitsForASlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 2}\nresources: {api: {limits: [{name: minute, size: 80/min}]}}\n")
	hold := func(agent, wait string) *process {
		return f.start("run", "--agent", agent, "--user", "u", "--wait", wait, "--", f.child, "hold")
	}
	one, two := hold("one", "1m"), hold("two", "1m")
	one.says("ready")
	two.says("ready")
	late := hold("late", "0")
	late.ends(exitNotYet)
	late.warns(`all slots of user "u" are taken (2)`)
	three := hold("three", "5m")
	three.warns("waits for a slot")
	if got := strings.Join(f.agents(), " "); got != "one two" {
		t.Errorf("leases are held by %q", got)
	}
	one.stdin.Close()
	one.ends(0)
	three.says("ready")
	two.stdin.Close()
	two.ends(0)
	three.stdin.Close()
	three.ends(0)
	if got := f.agents(); len(got) != 0 {
		t.Errorf("leases are still held by %q", got)
	}
}

// A signal during a wait ends only the wait.
func TestSignalEndsTheWaitForASlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 1}\n")
	one := f.start("run", "--agent", "one", "--", f.child, "hold")
	one.says("ready")
	two := f.start("run", "--agent", "two", "--wait", "5m", "--", f.child, "hold")
	two.warns("agent two")
	two.signal(syscall.SIGTERM)
	two.ends(128 + int(syscall.SIGTERM))
	two.warns("while waiting to start the command")
	one.stdin.Close()
	one.ends(0)
}

// The slot of a killed run is free again when its lease expires.
func TestSlotOfAKilledRunComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 1, ttl: 2s}\nleases: {renew: 1s, expire: 2s}\n")
	one := f.start("run", "--agent", "one", "--quiet", "--", f.child, "hold")
	one.says("ready")
	one.signal(syscall.SIGKILL)
	one.ends(-1)
	two := f.start("run", "--agent", "two", "--wait", "5m", "--quiet", "--", f.child, "hold")
	two.says("ready")
	two.stdin.Close()
	two.ends(0)
}

// A lease is kept as long as the command runs.
func TestHeartbeatsKeepTheSlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 1, ttl: 6s}\nleases: {renew: 1s, expire: 6s}\n") // a busy machine may hold it up for long
	one := f.start("run", "--agent", "one", "--quiet", "--", f.child, "hold")
	one.says("ready")
	two := f.start("run", "--agent", "two", "--wait", "8s", "--quiet", "--", f.child, "hold")
	two.ends(exitNotYet) // longer than the slot would last by itself
	one.stdin.Close()
	one.ends(0)
}

// A nested run shares the slot and the lease, and takes its own turn. When it ends, its parent keeps both.
func TestNestedRunSharesTheSlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 1}\nresources: {api: {limits: [{name: hour, size: 3/h}]}}\n")
	inner := `sluice run --quiet --wait 0 -- echo inner && sluice agents --json | grep -c '"name": "one"' && ` +
		`! sluice run --quiet --wait 0 --agent other -- echo other && ` +
		`sluice run --quiet --wait 0 -- sh -c 'echo $SLUICE_AGENT $SLUICE_CLASS $SLUICE_USER' && ! sluice run --wait 0 -- echo fourth`
	p := f.start("run", "--agent", "one", "--class", "p1", "--user", "u", "--quiet", "--", "sh", "-c", inner)
	p.says("inner")
	p.says("1")
	p.says("one p1 u")
	p.ends(0)
	p.warns(`all slots of`) // another agent has a slot of its own
	p.warns(`limit "hour"`) // and each took its turn
	if got := f.agents(); len(got) != 0 {
		t.Errorf("leases are still held by %q", got)
	}
}

// A nested run whose parent has died, or that uses another store, takes its own lease.
func TestNestedRunWithoutItsParent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "slots: {max: 1}\n")
	f.env = append(f.env, "SLUICE_SLOT=one")
	one := f.start("run", "--agent", "one", "--quiet", "--", f.child, "hold")
	one.says("ready")
	if got := strings.Join(f.agents(), " "); got != "one" {
		t.Errorf("leases are held by %q", got)
	}
	one.stdin.Close()
	one.ends(0)
}

func TestNewWorkWaitsForThoseItDependsOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "resources: {api: {limits: [{name: minute, size: 80/min}]}}\nagents: {top: {waits_for: [middle]}}\n")
	pause := f.start("pause", "api", "--for", "10m")
	pause.ends(0)
	low := f.start("run", "--agent", "low", "--wait", "1h", "--", f.child, "hold")
	low.warns("waiting for api") // it is in the queue
	middle := func(args ...string) *process {
		return f.start(append([]string{"run", "--agent", "middle", "--waits-for", "low", "--new-work"}, args...)...)
	}
	p := middle("--wait", "0", "--json", "--", f.child, "hold")
	p.ends(exitNotYet)
	p.warns("error: start no new work: middle waits for low")
	var out struct{ Error errorJSON }
	if err := json.NewDecoder(p.stdout).Decode(&out); err != nil || strings.Join(out.Error.Chain, " ") != "middle low" || out.Error.Code != exitNotYet {
		t.Errorf("it printed %+v, %v", out, err)
	}
	p = middle("--wait", "1h", "--", f.child, "hold")
	p.warns("an agent that it depends on is limited")
	f.start("resume", "api").ends(0)
	low.says("ready")
	p.says("ready")
}

// Without a resource, launches of one store are spread together: with no configuration, and with several resources.
func TestLaunchesAreScattered(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a resource": "resources: {api: {limits: [{name: minute, size: 80/min}]}}\n",
		"none":       "",
		"two":        "resources: {api: {limits: [{name: minute, size: 80/min}]}, other: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			launchesAreScattered(t, text)
		})
	}
}

func launchesAreScattered(t *testing.T, config string) {
	f := newFleet(t, config)
	first := f.start("run", "--agent", "one", "--scatter", "1h", "--", f.child, "hold")
	first.says("ready")
	second := f.start("run", "--agent", "two", "--scatter", "1h", "--wait", "0", "--", f.child, "hold")
	second.warns("starts in 29m5")
	second.signal(syscall.SIGTERM)
	second.ends(128 + int(syscall.SIGTERM))
}

// While the resource is held, a retry does not sleep: it joins the queue at once.
func TestRetryJoinsTheQueueWhileHeld(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "resources: {api: {limits: [{name: minute, size: 80/min}]}}\nretry_windows: {p1: [1h, 2h]}\nretry: {deadline: 3h}\n")
	script := "echo started; read -r line; exit 75"
	p := f.start("run", "--agent", "one", "--class", "p1", "--", "sh", "-c", script)
	p.says("started")
	f.start("pause", "api", "--for", "10m").ends(0)
	if _, err := p.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	p.warns("the resource is held, so it joins the queue now")
	p.warns("waiting for api")
	f.start("resume", "api").ends(0)
	p.says("started")
}

// Two processes that retry the same dead letter run it once.
func TestDeadLetterIsRetriedOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "resources: {api: {limits: [{name: minute, size: 80/min}]}}\n")
	mark := filepath.Join(t.TempDir(), "mark")
	f.start("run", "--attempts", "1", "--", "sh", "-c", "test -e "+mark+" || exit 75; echo again; read -r line; exit 0").ends(exitNotYet)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := f.start("dlq", "retry", "--all", "--quiet")
	first.says("again")
	second := f.start("dlq", "retry", "--all", "--quiet")
	second.ends(exitNotYet)
	second.warns("is being retried")
	f.start("dlq", "drop", "--all").says("dropped nothing")
	if _, err := first.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	first.ends(0)
	f.start("dlq", "list").says("There are no dead letters: no command of sluice run was given up, and no request where dead_letters is on.")
}

// The calls of a run's command counted for agents without a user, whatever --user said.
func TestCallsOfARunCountForItsUser(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "resources: {anthropic: {provider: anthropic, limits: [{name: each, size: 9/h, per: [user]}]}}\n")
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(u.Close)
	f.env = append(f.env, "ANTHROPIC_BASE_URL="+u.URL)
	p := f.start("run", "--agent", "one", "--user", "bob", "--quiet", "--", f.child, "calls")
	p.says("200 400")
	_ = p.stdin.Close()
	p.ends(0)
	status := f.start("status", "--json")
	status.tells(`"scope": "user=bob"`)
	_, _ = io.Copy(io.Discard, status.stdout)
	status.ends(0)
}
