package sluice

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// fleetMark is the prefix of entries in the fleet's pool that are not agents: dependencies, and slots of instances. No
// agent's name has it. These entries sort last, so that a list that is cut off loses them first.
const fleetMark = "\x7f"

// Bounds on the dependencies that a gate remembers.
const (
	maxLinks   = 1 << 14 // in all
	maxParents = store.MaxWaits
	// linkAgain is when to check again whether an unknown parent has appeared.
	linkAgain = 2 * time.Second
)

// dependency is a dependency that this gate was told of.
type dependency struct {
	parent string
	told   time.Time // when the store was told, or the parent was found to be unknown
	known  bool
}

// dependencies caches what this gate was told, by child, so that not every request needs a call to the store.
type dependencies struct {
	mu sync.Mutex
	of map[string][]dependency
	n  int
}

// WorksFor records that the agent child works on behalf of the agent parent: parent waits for child, as if it had
// declared so itself, for the length of a lease. It is for callers that see who calls, such as a proxy that reads
// headers. Call it as often as the child asks. WorksFor ignores a parent that is neither configured nor live, and an
// agent that would wait for itself.
func (g *Gate) WorksFor(ctx context.Context, child, parent string) error {
	if g.settings.lease < 0 || g.settings.noCascade || child == "" || parent == "" || child == parent || max(len(child), len(parent)) > store.MaxName {
		return nil
	}
	if !g.depends.due(child, parent, g.settings.lease) {
		return nil
	}
	known, err := g.isKnown(ctx, parent)
	if err != nil {
		return err
	}
	if !known {
		g.depends.note(child, parent, false, g.settings.lease)
		return nil
	}
	if !g.depends.note(child, parent, true, g.settings.lease) {
		return nil
	}
	pool, err := g.fleetPool(ctx)
	if err == nil {
		sum := sha256.Sum256([]byte(parent + "\x00" + child))
		ops := []store.Op{{
			Kind: store.OpHeartbeat, Agent: fleetMark + hex.EncodeToString(sum[:16]), Class: uint8(len(g.settings.classes) - 1), TTL: g.settings.lease,
			WaitsFor: []string{parent, child},
		}}
		if err = pool.Apply(ctx, ops); err != nil {
			err = g.storeError(err)
		}
	}
	if err != nil {
		g.depends.forget(child, parent)
	}
	return err
}

// WorksForEvery returns how often to call WorksFor for work that lasts.
func (g inside) WorksForEvery() time.Duration { return max(g.settings.lease/2, time.Second) }

// isKnown reports whether an agent is configured or live.
func (g *Gate) isKnown(ctx context.Context, agent string) (bool, error) {
	if _, ok := g.settings.agents[agent]; ok {
		return true, nil
	}
	v, err := g.recent(ctx)
	if err != nil {
		return false, err
	}
	if findAgent(v.joined, agent) != nil {
		return true, nil
	}
	return slices.ContainsFunc(v.snaps, func(s store.Snapshot) bool { return findAgent(s.Agents, agent) != nil }), nil
}

// due reports whether to check a dependency, or to tell the store about it again.
func (l *dependencies) due(child, parent string, lease time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.of[child] {
		if k.parent == parent {
			every := linkAgain
			if k.known {
				every = lease / 4
			}
			return time.Since(k.told) >= every
		}
	}
	return true
}

// note remembers a dependency. It reports false if there is no room.
func (l *dependencies) note(child, parent string, known bool, lease time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	gone := func(k dependency) bool {
		age := now.Sub(k.told)
		return k.parent == parent || age >= lease || !k.known && age >= linkAgain
	}
	if l.n >= maxLinks {
		for name, list := range l.of {
			l.set(name, slices.DeleteFunc(list, gone))
		}
	}
	list := slices.DeleteFunc(l.of[child], gone)
	room := len(list) < maxParents && l.n < maxLinks
	if room {
		list = append(list, dependency{parent, now, known})
	}
	l.set(child, list)
	return room
}

func (l *dependencies) forget(child, parent string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(child, slices.DeleteFunc(l.of[child], func(k dependency) bool { return k.parent == parent }))
}

// set replaces a child's dependencies.
func (l *dependencies) set(child string, list []dependency) {
	if l.of == nil {
		l.of = map[string][]dependency{}
	}
	l.n += len(list) - len(l.of[child])
	if l.of[child] = list; len(list) == 0 {
		delete(l.of, child)
	}
}

// splitFleet splits the entries of the fleet's pool into agents and other entries.
func splitFleet(all []store.Agent) (agents, kept []store.Agent) {
	from, _ := slices.BinarySearchFunc(all, fleetMark, func(a store.Agent, mark string) int { return strings.Compare(a.Name, mark) })
	to := from
	for to < len(all) && strings.HasPrefix(all[to].Name, fleetMark) {
		to++
	}
	if from == to {
		return all, nil
	}
	return slices.Concat(all[:from], all[to:]), all[from:to]
}

// addBesides adds dependencies from WorksFor to the graph, and collects the slots of instances.
func (v *view) addBesides(kept []store.Agent) {
	for _, k := range kept {
		if len(k.WaitsFor) == 1 {
			v.slots = append(v.slots, k)
		}
		if len(k.WaitsFor) != 2 {
			continue
		}
		parent, child := k.WaitsFor[0], k.WaitsFor[1]
		v.addConfigured(parent)
		v.graph.Waits[parent] = union(v.graph.Waits[parent], []string{child})
	}
}
