//go:build slow && (linux || darwin)

package compat_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/pool"
)

// changed builds the command with some changes.
func changed(t *testing.T, edits ...built.Edit) string {
	t.Helper()
	binary, err := built.Changed(t.TempDir(), edits...)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// newerRules make of this version one with another number of rules, in which half of the requests go to the front of their
// agent's queue.
func newerRules() []built.Edit {
	return []built.Edit{
		{File: "internal/pool/hash.go", Old: fmt.Sprintf("const Rules = %d\n", pool.Rules), New: fmt.Sprintf("const Rules = %d\n", pool.Rules+1)},
		{
			File: "internal/pool/acquire.go", Old: "p.queue.Push(p.position(tk), t, &costs, front)",
			New: fmt.Sprintf("p.queue.Push(p.position(tk), t, &costs, front || p.rules >= %d && tk.id.N%%2 == 0)", pool.Rules+1),
		},
	}
}

// A fleet is upgraded to a version with other rules, one process after the other, under load. No request is refused. The rules
// rise when all know them, and then this version is refused.
func TestAFleetIsUpgradedToOtherRules(t *testing.T) {
	next := changed(t, newerRules()...)
	r := beginWith(t, 100)
	store := stores[1].open(r)
	fleet := []*daemon{r.mustServe(this, store), r.mustServe(this, store), r.mustServe(this, store)}
	load := r.load(fleet...)
	load.more(300)
	for i, old := range fleet {
		d := r.mustServe(next, store)
		load.use(i, d)
		load.more(100)
		if i == 0 {
			d.shows("sluice_pool_rules", pool.Rules)
			d.shows("sluice_pool_rules_known", pool.Rules+1)
			out, err := r.command(next, store, "doctor").CombinedOutput()
			if err != nil || !strings.Contains(string(out), fmt.Sprintf("decides by rules %d, although this release knows %d", pool.Rules, pool.Rules+1)) {
				t.Errorf("doctor does not name those that hold the rules back: %v %s", err, out)
			}
		}
		old.stop()
		fleet[i] = d
		load.more(100)
	}
	for _, d := range fleet {
		d.shows("sluice_pool_rules", pool.Rules+1)
	}
	load.more(300)
	load.stop()
	for _, d := range fleet {
		d.shows("sluice_replica_divergence_total", 0)
		d.shows("sluice_log_poisoned_total", 0)
	}
	out, err := r.command(this, store, "acquire", "api", "--wait", "0").CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 69 || !strings.Contains(string(out), "hint: this release is too old") {
		t.Errorf("after the rules have risen: %v %s", err, out)
	}
	r.judge(nil)
}

// Any changed decision fails the test of the golden hash, and so do rules without a hash. The failure says what to do.
func TestNoDecisionChangesUnnoticed(t *testing.T) {
	const changedDecisions = "raise pool.Rules"
	for name, c := range map[string]struct {
		says  string
		edits []built.Edit
	}{
		"nothing": {},
		"the order of the queue": {changedDecisions, []built.Edit{{
			File: "internal/pool/acquire.go", Old: "p.queue.Push(p.position(tk), t, &costs, front)", New: "p.queue.Push(p.position(tk), t, &costs, true)",
		}}},
		"a request that is too large": {changedDecisions, []built.Edit{{
			File: "internal/pool/acquire.go", Old: "if in.Cap > 0 && amount > in.Cap && !force {", New: "if in.Cap > 0 && amount >= in.Cap && !force {",
		}}},
		"whether a pause holds": {changedDecisions, []built.Edit{{
			File: "internal/pool/judge.go", Old: "if v.firstGate != 0 {", New: "if false {",
		}}},
		"what the queue holds": {changedDecisions, []built.Edit{{
			File: "internal/pool/acquire.go", Old: "p.queue.Len() >= p.spec.MaxWaiting", New: "p.queue.Len() > p.spec.MaxWaiting",
		}}},
		"a number without a hash": {fmt.Sprintf("rules %d have no hash: add", pool.Rules+1), newerRules()},
	} {
		t.Run(name, func(t *testing.T) {
			overlay, err := built.Overlay(t.TempDir(), c.edits...)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("go", "test", overlay, "-tags=grpcnotrace", "-count=1", "-run", "TestGoldenDecisions", "../../internal/pool").CombinedOutput()
			if (err != nil) != (c.says != "") || !strings.Contains(string(out), c.says) {
				t.Errorf("%v %s", err, out)
			}
		})
	}
}
