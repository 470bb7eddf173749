//go:build slow && linux

package hosts

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim/mock"
)

// previous returns the path of the previous release's binary.
func previous(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(filepath.Join("..", "..", "scripts", "previous"))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/previous: %v\n%s", err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// Three hosts share one limit. One is cut off and comes back, one dies and comes back, Redis fails over, and all are
// upgraded: one after the other if both versions keep their pools alike, else together. The provider never sees more than the limit, and the others get what a host cannot use.
func TestThreeHosts(t *testing.T) {
	before := previous(t)
	f := newFleet(t)
	f.startProvider()
	f.startStore()
	h1, h2, h3 := f.hosts[0], f.hosts[1], f.hosts[2]
	for _, h := range f.hosts {
		f.startGates(h, before)
		f.startAgents(h)
	}
	defer func() { t.Log(f.table()) }()

	f.phase("previous release", 0, f.even(h1, h2, h3))
	if out, code := f.command(h1, sluiceBinary, "acquire", "api", "--wait", "30s"); code == 0 {
		for i, h := range f.hosts {
			f.upgrade(h, sluiceBinary)
			f.phase(h.name+" upgraded", 0, f.even(h1, h2, h3))
			if i == 0 {
				f.cascade("two versions")
			}
		}
	} else {
		f.upgradeTogether(sluiceBinary, out)
		f.phase("all upgraded", 0, f.even(h1, h2, h3))
	}
	f.phase("this version", 2*window, f.even(h1, h2, h3))
	f.cascade("this version")

	h3.cut(true, "inner")
	cut := f.phase("h3 cut off", 0, func(p phase, log []mock.Entry) bool {
		// Within 3 s it has sent all requests that were granted before the cut.
		by, _ := shares(between(log, p.from.Add(3*time.Second), p.to))
		return by[h3.name] > 0 || time.Since(p.from) > lease
	})
	if cut.to.Sub(cut.from) > lease {
		t.Errorf("h3 sent nothing for as long as its lease, and has a share")
	}
	f.phase("h3 on its share", 0, func(phase, []mock.Entry) bool { return time.Since(cut.from) > lease })
	f.phase("h3's lease over", 0, f.even(h1, h2))
	h3.cut(false, "inner")
	f.phase("h3 healed", 0, f.even(h1, h2, h3))

	h3.die()
	f.phase("h3 dead", lease, func(phase, []mock.Entry) bool { return true })
	f.phase("h3 given up", 0, f.even(h1, h2))
	h3.cut(false, "inner", "outer")
	h3.startSentinel(h1)
	f.startGates(h3, sluiceBinary)
	f.startAgents(h3)
	f.phase("h3 is back", 0, f.even(h1, h2, h3))

	f.until("the Sentinels know each other", func() bool { return h1.knowsAll() && h2.knowsAll() && h3.knowsAll() })
	h1.redis.kill()
	f.phase("Redis master dead", 0, func(phase, []mock.Entry) bool { return h1.master() == h2.inner && h3.master() == h2.inner })
	f.phase("replica is master", 0, f.even(h1, h2, h3))
	f.cascade("new master")
	f.judge()
}

// judge checks the provider's whole log and its statistics.
func (f *fleet) judge() {
	f.Helper()
	stats, err := f.stats()
	if err != nil {
		f.Fatal(err)
	}
	var log []mock.Entry
	f.until("the log has everything", func() bool { log = f.entries(); return int64(len(log)) >= stats.Arrived })
	most, refused := worst(log, window, time.Time{}, time.Now().Add(time.Hour))
	if most > limit || refused > 0 || stats.WorstWindow > limit || stats.Throttled > 0 {
		f.Errorf("the provider has seen %d requests in %v, allowed are %d, and refused %d; it says %d and %d", most, window, limit, refused, stats.WorstWindow, stats.Throttled)
	}
}
