//go:build slow && linux

package matrix_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what was seen into results.yaml, the table of clients and docs/clients-table.md")

// wanted reports whether CLIENTS asks for a set-up: by its client, its name, its package, or any of them with a provider, as in
// opencode/anthropic.
func wanted(p *packed) bool {
	list := os.Getenv("CLIENTS")
	if list == "" {
		return true
	}
	for name := range strings.SplitSeq(list, ",") {
		name, of, some := strings.Cut(strings.TrimSpace(name), ":")
		if (!some || of == p.provider) && slices.ContainsFunc([]string{p.client, p.name, p.from.name}, func(own string) bool { return strings.EqualFold(own, name) }) {
			return true
		}
	}
	return false
}

// waysWanted are the ways that WAYS asks for, or all.
func waysWanted() []kind {
	list := os.Getenv("WAYS")
	if list == "" {
		return kinds
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !slices.Contains(strings.Split(list, ","), string(k)) })
}

// TestClients runs every client that can be installed in every way, and prints what became of it.
func TestClients(t *testing.T) {
	var all []packed
	for _, p := range slices.Concat(agentsOf(), librariesOf()) {
		if wanted(&p) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no client is called %s", os.Getenv("CLIENTS"))
	}
	installAll(all)
	results := make([]result, len(all))
	ways := waysWanted()
	t.Run("all", func(t *testing.T) { // it ends when all are through
		for i := range all {
			p := &all[i]
			t.Run(p.name+" "+p.provider, func(t *testing.T) {
				t.Parallel()
				results[i] = p.try(t, ways)
			})
		}
	})
	fmt.Print("\n" + table(results))
	if *update && len(ways) == len(kinds) {
		if err := keep(results); err != nil {
			t.Fatal(err)
		}
	}
}

// installAll installs all clients first, so that installers take no time from clients: one at a time of each manager, because they share
// caches of their own. try tells what could not be installed.
func installAll(all []packed) {
	var managers sync.WaitGroup
	defer managers.Wait()
	for _, manager := range []string{fromNPM, fromPyPI, fromGo, fromAPT, fromCargo, fromMaven} {
		managers.Go(func() {
			for i := range all {
				if p := &all[i]; p.from.manager == manager {
					_, _ = p.from.install()
				}
			}
		})
	}
}

// try runs an installed client in every way.
func (p *packed) try(t *testing.T, ways []kind) result {
	r := result{Name: p.name, Client: p.client, Provider: p.provider, Package: p.from.manager + " " + p.from.name, Date: time.Now().Format(time.DateOnly)}
	tool, err := p.from.install()
	if err != nil {
		r.Untested = "it could not be installed"
		t.Logf("%s is not tested: %v", p.name, err)
		return r
	}
	r.Version = tool.version
	var mu sync.Mutex
	t.Run("in", func(t *testing.T) {
		for _, k := range ways {
			t.Run(string(k), func(t *testing.T) {
				t.Parallel()
				o := p.play(t, tool, k)
				mu.Lock()
				defer mu.Unlock()
				r.add(k, &o)
				if len(o.wrong) > 0 {
					t.Errorf("%s", strings.Join(o.wrong, "\n"))
				}
			})
		}
	})
	slices.Sort(r.Failed)
	return r
}

// add notes what became of the client in one way.
func (r *result) add(k kind, o *outcome) {
	r.Calls += o.calls
	if k == inRunBlind {
		r.RefusedUnknown += o.refused
	} else {
		r.Refused += o.refused
	}
	if o.tokens != "" {
		r.Disagree++
	}
	if len(o.wrong) > 0 {
		r.Failed = append(r.Failed, string(k))
	}
}
