//go:build unix

package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// Every process of these has a state directory of its own: to each other they are other machines.

func TestSlotsOnRedis(t *testing.T) {
	t.Parallel()
	f := newFleetOn(t, slowly(redisrun.New(t).URL()), "slots: {max: 2, ttl: 2s}\nleases: {renew: 1s, expire: 2s}\nresources: {api: {limits: [{name: minute, size: 80/min}]}}\n")
	hold := func(agent, wait string) *process {
		return f.start("run", "--agent", agent, "--user", "u", "--wait", wait, "--quiet", "--", f.child, "hold")
	}
	one, two := hold("one", "1m"), hold("two", "1m")
	one.says("ready")
	two.says("ready")
	late := hold("late", "0")
	late.ends(exitNotYet)
	late.warns(`all slots of user "u" are taken (2)`)
	three := hold("three", "5m")
	if got := strings.Join(f.agents(), " "); got != "one two" {
		t.Errorf("leases are held by %q", got)
	}
	// One that leaves makes room at once, one that is killed when its lease is over.
	one.stdin.Close()
	one.ends(0)
	three.says("ready")
	two.signal(syscall.SIGKILL)
	two.ends(-1)
	four := hold("four", "5m")
	four.says("ready")
	for _, p := range []*process{three, four} {
		p.stdin.Close()
		p.ends(0)
	}
}

// Runs of one agent on two machines may have the same process id.
func TestInstancesOfOtherMachinesDiffer(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for store, want := range map[string]string{
		"file:/x": strconv.Itoa(os.Getpid()), "mem:": strconv.Itoa(os.Getpid()), "redis://host": strconv.Itoa(os.Getpid()) + "@" + host,
	} {
		if got := (&runner{s: &session{store: store}}).instance(); got != want {
			t.Errorf("%s: %s, want %s", store, got, want)
		}
	}
}

// A command keeps running when Redis goes away, and its exit code is kept.
func TestRunOutlivesRedis(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	f := newFleetOn(t, slowly(server.URL()), "resources: {api: {limits: [{name: minute, size: 80/min}]}}\n")
	p := f.start("run", "--agent", "one", "--", "sh", "-c", "echo ready; read -r line; exit 3")
	p.says("ready")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	p.ends(3)
}
