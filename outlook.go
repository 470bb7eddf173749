package sluice

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// How old a view may be that heartbeats are answered from. To read a large fleet takes a while: then it is done less often, yet
// often enough for backpressure to be told within two seconds.
const (
	viewAge    = 500 * time.Millisecond
	viewAgeMax = 1500 * time.Millisecond
)

// outlook is the view of the fleet that all who ask at about the same time share. One of them reads it, in its own
// goroutine; the others wait for that.
type outlook struct {
	mu    sync.Mutex
	last  *view
	load  *viewLoad // under way; nil: none
	begun uint64    // how many were
	took  time.Duration
	rest  time.Time // until when the store is left alone
}

// viewLoad is a view that somebody reads.
type viewLoad struct {
	done chan struct{}
	view *view
	err  error
	gone bool // the one who read it has gone away: another one should
}

// recent returns a view that is old enough to be cheap and young enough to be true.
func (g *Gate) recent(ctx context.Context) (*view, error) {
	o := &g.outlook
	o.mu.Lock()
	since := time.Now().Add(-min(max(viewAge, 10*o.took), viewAgeMax))
	o.mu.Unlock()
	return g.shared(ctx, func(v *view) bool { return !v.began.Before(since) })
}

// fresh returns a view that is begun after this call.
func (g *Gate) fresh(ctx context.Context) (*view, error) {
	o := &g.outlook
	o.mu.Lock()
	before := o.begun
	o.mu.Unlock()
	return g.shared(ctx, func(v *view) bool { return v.number > before })
}

// shared returns a view that will do. However many ask, one reads at a time, and the store has time for others in between.
func (g *Gate) shared(ctx context.Context, will func(*view) bool) (*view, error) {
	o := &g.outlook
	for {
		o.mu.Lock()
		if o.last != nil && will(o.last) {
			defer o.mu.Unlock()
			return o.last, nil
		}
		load, mine := o.load, o.load == nil
		if mine {
			load = &viewLoad{done: make(chan struct{})}
			o.load = load
		}
		rest := time.Until(o.rest)
		o.mu.Unlock()
		if mine {
			g.read(ctx, load, rest)
		}
		select {
		case <-load.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case load.gone && !mine:
		case load.err != nil:
			return nil, load.err
		case will(load.view):
			return load.view, nil
		}
	}
}

// read reads a view for all who wait for it.
func (g *Gate) read(ctx context.Context, load *viewLoad, rest time.Duration) {
	o := &g.outlook
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.load = nil
		if load.view != nil {
			now := time.Now()
			o.last, o.took = load.view, now.Sub(load.view.began)
			o.rest = now.Add(min(2*o.took, viewAge/2))
		}
		close(load.done)
	}()
	if rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			load.err, load.gone = ctx.Err(), true
			return
		}
	}
	o.mu.Lock()
	o.begun++
	number, began := o.begun, time.Now()
	o.mu.Unlock()
	v, err := g.look(ctx, false)
	if err != nil {
		load.err, load.gone = err, ctx.Err() != nil
		return
	}
	v.number, v.began = number, began
	for i := range v.snaps { // it stays for a while: what nobody looks at need not
		s := &v.snaps[i]
		s.Callers, s.Members, s.Limits = nil, nil, nil
	}
	load.view = v
}

// findAgent returns an agent of a list that is sorted by name; nil if it is not there.
func findAgent(list []store.Agent, name string) *store.Agent {
	i, ok := slices.BinarySearchFunc(list, name, func(a store.Agent, name string) int { return strings.Compare(a.Name, name) })
	if !ok {
		return nil
	}
	return &list[i]
}

// isCut reports that a name would stand behind the end of a list that is as long as lists get.
func isCut(list []store.Agent, name string) bool {
	return len(list) >= store.MaxAgents && name > list[len(list)-1].Name
}

// agentIn returns what a resource knows of an agent. Of one whose name is cut off it knows what it does of others of its class:
// they have the same part.
func (v *view) agentIn(resource int, name string, class int) *store.Agent {
	list := v.snaps[resource].Agents
	if a := findAgent(list, name); a != nil || !isCut(list, name) {
		return a
	}
	for i := range list {
		if a := &list[i]; a.Class == class {
			return &store.Agent{Name: name, Class: class, Allocated: a.Allocated}
		}
	}
	return nil
}

// knows reports whether an agent is in the view as it is now.
func (v *view) knows(l *Lease, waits []string) bool {
	if v.gate.plan.lease < 0 {
		return true
	}
	a := findAgent(v.joined, l.agent)
	if a == nil {
		return v.joinedCut && (len(v.joined) == 0 || l.agent > v.joined[len(v.joined)-1].Name)
	}
	if !a.Leased || a.Class != int(l.class) || a.User != l.user || a.Machine != l.machine || !sameNames(a.WaitsFor, waits) {
		return false
	}
	for _, r := range l.resources {
		i := slices.Index(v.names, r.name)
		if a := v.agentIn(i, l.agent, int(l.class)); a == nil || a.Class != int(l.class) {
			return false
		}
	}
	return true
}

// sameNames reports whether two lists have the same names, each once, in any order.
func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	return !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}
