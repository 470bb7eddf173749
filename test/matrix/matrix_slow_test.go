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

// kinds are all ways of running a client.
var kinds = []kind{inRun, inRunBlind, inServe, inHeld, inCompany, inPrivateCA}

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
	ways := waysWanted()
	j := &journal{keeps: *update && len(ways) == len(kinds), results: make([]result, len(all)), missing: make([]int, len(all))}
	t.Run("all", func(t *testing.T) { // it ends when all are through
		for i := range all {
			p := &all[i]
			client := j.begin(t, i, p)
			if client == nil {
				continue
			}
			j.missing[i] = len(ways)
			for _, k := range ways {
				t.Run(p.name+" "+p.provider+" "+string(k), func(t *testing.T) {
					t.Parallel()
					o := p.play(t, &client.tool, k)
					if len(o.wrong) > 0 {
						t.Errorf("%s", strings.Join(o.wrong, "\n"))
					}
					j.add(t, i, k, &o)
				})
			}
		}
	})
	fmt.Print("\n" + table(j.results))
}

// journal collects what became of set-ups.
type journal struct {
	keeps bool // in files

	mu      sync.Mutex
	results []result
	missing []int // ways that are not through
}

// begin notes a set-up and returns its client, or nil if it cannot be run.
func (j *journal) begin(t *testing.T, i int, p *packed) *product {
	r := &j.results[i]
	*r = result{Name: p.name, Client: p.client, Provider: p.provider, Package: p.from.manager + " " + p.from.name, Date: time.Now().Format(time.DateOnly)}
	r.Untested = p.broken
	var client *product
	if p.broken == "" {
		var err error
		if client, err = p.from.install(); err != nil {
			r.Untested = "it could not be installed"
			t.Logf("%s is not tested: %v", p.name, err)
		}
	}
	if client != nil {
		r.Version = client.version
	} else {
		j.keep(t, i)
	}
	return client
}

// add notes what became of a set-up in one way. What is complete is kept at once, because all of them take long.
func (j *journal) add(t *testing.T, i int, k kind, o *outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &j.results[i]
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
		slices.Sort(r.Failed)
	}
	if j.missing[i]--; j.missing[i] == 0 {
		j.keep(t, i)
	}
}

func (j *journal) keep(t *testing.T, i int) {
	if !j.keeps {
		return
	}
	if err := keep(j.results[i : i+1]); err != nil {
		t.Error(err)
	}
}

// installAll installs all clients first, so that installers take no time from clients: one at a time of each manager, because they share
// caches of their own. Errors come again when a client is to run.
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
