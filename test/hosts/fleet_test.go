//go:build slow && linux

package hosts

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim/mock"
)

const (
	limit    = 60
	window   = 3 * time.Second
	lease    = 16 * time.Second
	gatePort = "7979"
	provider = "10.78.0.9:8080"

	patience  = 90 * time.Second // for anything to happen
	pollEvery = 100 * time.Millisecond
)

const config = `
store: redis+sentinel://%s/` + masterName + `
presets: off
leases: {renew: 2s, expire: 16s}
resources:
  api:
    upstream: http://` + provider + `
    limits: [{name: window, size: 60/3s}]
  search:
    upstream: http://` + provider + `
    limits: [{name: inflight, concurrency: 5}]
`

var redisServer = func() string {
	if name := os.Getenv("SLUICE_REDIS_SERVER"); name != "" {
		return name
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return "valkey-server"
	}
	return "redis-server"
}()

// host is one machine of the fleet.
type host struct {
	*place
	inner    string // its address on the inner network
	dir      string
	redis    *process // on two of the hosts
	sentinel *process
	gates    []*process // processes to upgrade: the daemon, and an agent under sluice run
	running  []*process // all started processes
	client   *http.Client
}

// run starts a program that ends when the host is killed.
func (h *host) run(name, dir string, env []string, program string, args ...string) *process {
	h.net.Helper()
	p := h.start(name, dir, env, program, args...)
	h.running = append(h.running, p)
	return p
}

// fleet is three hosts and a provider.
type fleet struct {
	*testing.T
	hosts    []*host
	provider *host
	log      string // path of the provider's log
	config   string
	phases   []phase
	cascades []cascade
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	n := newNetwork(t)
	dir := t.TempDir()
	f := &fleet{T: t, log: filepath.Join(dir, "provider.log"), config: filepath.Join(dir, "sluice.yaml")}
	newHost := func(name, inner string, addresses map[string]string) *host {
		h := &host{place: n.add(name, addresses), inner: inner, dir: filepath.Join(dir, name)}
		h.client = &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: h.dial, DisableKeepAlives: true}}
		return h
	}
	var sentinels []string
	for i := range 3 {
		inner := fmt.Sprintf("10.77.0.%d", i+1)
		f.hosts = append(f.hosts, newHost(fmt.Sprintf("h%d", i+1), inner, map[string]string{"inner": inner, "outer": fmt.Sprintf("10.78.0.%d", i+1)}))
		sentinels = append(sentinels, inner+":"+sentinelPort)
	}
	address, _, _ := strings.Cut(provider, ":")
	f.provider = newHost("provider", "", map[string]string{"outer": address})
	t.Cleanup(f.end)
	if err := os.WriteFile(f.config, fmt.Appendf(nil, config, strings.Join(sentinels, ",")), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// end stops everything. After a failure it logs the last output of all processes.
func (f *fleet) end() {
	for _, h := range append(f.hosts, f.provider) {
		for _, p := range h.running {
			if said := p.said.String(); f.Failed() && said != "" {
				f.Logf("%s says:\n%s", p.name, said)
			}
			p.kill()
		}
	}
}

// startProvider starts the mock provider, which refuses requests over the limit and logs all of them.
func (f *fleet) startProvider() {
	f.Helper()
	f.provider.run("mock", f.provider.dir, environment(f.provider.dir), sluiceBinary, "mock", "generic", "--listen", provider,
		"--requests", fmt.Sprintf("%d/%v", limit, window), "--algorithm", "rolling", "--latency", "20ms", "--tail", "10ms", "--log", f.log)
	f.until("the provider answers", func() bool { _, err := f.stats(); return err == nil })
}

func (f *fleet) stats() (s mock.Stats, err error) {
	resp, err := f.provider.client.Get("http://" + provider + "/_mock/stats")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close() //nolint:errcheck // all was read
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// startStore starts a master on the first host, a replica on the second, and a Sentinel on each.
func (f *fleet) startStore() {
	f.Helper()
	master, replica := f.hosts[0], f.hosts[1]
	answers := func(h *host) func() bool {
		return func() bool { _, err := h.ask(redisPort, "PING"); return err == nil }
	}
	master.startRedis(nil)
	f.until("the master answers", answers(master))
	replica.startRedis(master)
	f.until("the replica has everything", func() bool {
		text, err := replica.ask(redisPort, "INFO replication")
		return err == nil && strings.Contains(text, "master_link_status:up")
	})
	for _, h := range f.hosts {
		h.startSentinel(master)
	}
	f.until("the Sentinels know each other", func() bool {
		for _, h := range f.hosts {
			if !h.knowsAll() {
				return false
			}
		}
		return true
	})
}

// startGates starts the daemon of a host, and an agent under "sluice run", with this binary.
func (f *fleet) startGates(h *host, binary string) {
	f.Helper()
	env := environment(h.dir, "SLUICE_CONFIG="+f.config)
	daemon := h.run("serve", h.dir, env, binary, "serve", "--listen", "127.0.0.1:"+gatePort, "--drain", "5s")
	name := h.name + "-run"
	run := h.run("run", h.dir, append(env, roleVar+"="+name, baseVar+"=http://"+provider), binary,
		"run", "--intercept", "--quiet", "--agent", name, "--class", "p1", "--", os.Args[0])
	h.gates = []*process{daemon, run}
	f.until("the gate of "+h.name+" is there", func() bool {
		if daemon.over() {
			f.Fatalf("the daemon of %s has ended:\n%s", h.name, daemon.said.String())
		}
		return f.get(h, "/readyz") == http.StatusOK
	})
}

// startAgents starts two agents on a host, which send through its daemon.
func (f *fleet) startAgents(h *host) {
	f.Helper()
	for _, which := range []string{"a", "b"} {
		name := h.name + "-" + which
		h.run("agent "+which, h.dir, environment(h.dir, roleVar+"="+name, baseVar+"=http://127.0.0.1:"+gatePort+"/@"+name+":p1/api"), os.Args[0])
	}
}

// upgrade replaces the gates of a host.
func (f *fleet) upgrade(h *host, binary string) {
	f.Helper()
	f.stopGates(h)
	f.startGates(h, binary)
}

func (f *fleet) stopGates(h *host) {
	f.Helper()
	for _, p := range h.gates {
		if !p.stop() {
			f.Errorf("%s did not end within %v:\n%s", p.name, stopWithin, p.said.String())
		}
	}
}

// upgradeTogether replaces the gates of all hosts by those of a version that keeps its pools in another way, as
// docs/compatibility.md says: the old ones stop, and what the new version names is repaired. said is its refusal.
func (f *fleet) upgradeTogether(binary, said string) {
	f.Helper()
	for _, h := range f.hosts {
		f.stopGates(h)
	}
	for _, name := range []string{"api", "search", "(fleet)"} {
		if out, code := f.command(f.hosts[0], binary, "repair", name, "--yes"); code != 0 {
			f.Fatalf("sluice repair %s exits with %d: %s", name, code, out)
		}
	}
	if !strings.Contains(said, "another version") || !strings.Contains(said, "sluice repair api") {
		f.Errorf("the refusal does not say what to do: %s", said)
	}
	for _, h := range f.hosts {
		f.startGates(h, binary)
	}
}

// cut disconnects a host from some switches, or connects it again.
func (h *host) cut(down bool, switches ...string) {
	h.net.Helper()
	for _, sw := range switches {
		h.link(sw, !down)
	}
}

// die kills a host: it loses its network and all its processes.
func (h *host) die() {
	h.net.Helper()
	h.cut(true, "inner", "outer")
	for _, p := range h.running {
		p.kill()
	}
	h.running, h.gates = nil, nil
}

// call calls the API of a host's daemon and decodes the response if its status is good.
func (f *fleet) call(h *host, out any, method, path, body string) (int, error) {
	req, err := http.NewRequestWithContext(f.Context(), method, "http://127.0.0.1:"+gatePort+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // all was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && out != nil && resp.StatusCode < 300 {
		err = json.Unmarshal(text, out)
	}
	return resp.StatusCode, err
}

func (f *fleet) get(h *host, path string) int {
	status, err := f.call(h, nil, http.MethodGet, path, "")
	if err != nil {
		return 0
	}
	return status
}

// command runs a sluice command on a host and waits for its end.
func (f *fleet) command(h *host, binary string, args ...string) (string, int) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), binary, args...)
	cmd.Env = environment(h.dir, "SLUICE_CONFIG="+f.config)
	var out []byte
	err := h.inside(func() (err error) {
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil && cmd.ProcessState == nil {
		f.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// until waits until is returns true, and fails the test if that takes too long.
func (f *fleet) until(what string, is func() bool) {
	f.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			f.Fatalf("after %v it is still not so: %s", patience, what)
		}
	}
}
