package sluice

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// maxHolders bounds the machines remembered per agent.
const maxHolders = 4

// holder is a machine that got an agent's lease through this gate.
type holder struct {
	machine string
	granted time.Time // last grant
	seen    time.Time // last heartbeat, even if it was refused
}

// holders remembers the machines of each agent. A machine that held a lease and finds it elsewhere is told so, and does
// not take it back. Otherwise two machines would take it from each other forever.
type holders struct {
	mu    sync.Mutex
	of    map[string][]holder // by agent; the last one has the lease
	sweep int                 // number of agents from which on expired ones are removed
}

// movedTo returns the machine that has taken the lease over from the machine that sends this heartbeat; empty if none
// has.
func (g *Gate) movedTo(ctx context.Context, l *Lease) (string, error) {
	if g.settings.lease < 0 {
		return "", nil
	}
	by, granted := g.holders.movedTo(l.agent, l.machine, g.settings.lease)
	if by != "" || granted.IsZero() { // zero: it did not hold the lease, and may take it over
		return by, nil
	}
	v, err := g.recent(ctx)
	if err != nil {
		return "", err
	}
	return elsewhere(v.joined, v.began, l, granted), nil
}

// elsewhere returns the machine that holds the lease according to a list, if the list is newer than our last grant.
func elsewhere(joined []store.Agent, began time.Time, l *Lease, granted time.Time) string {
	if a := findAgent(joined, l.agent); a != nil && a.Leased && a.Machine != l.machine && began.After(granted) {
		return a.Machine
	}
	return ""
}

// movedTo returns the machine that this gate gave the lease to after asker had it. If there is none and granted is not
// zero, asker still has the lease, as far as this gate knows.
func (h *holders) movedTo(agent, asker string, lease time.Duration) (by string, granted time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, list := time.Now(), h.of[agent]
	for i := range list {
		o := &list[i]
		if o.machine != asker || now.Sub(o.seen) >= lease {
			continue
		}
		if last := &list[len(list)-1]; i < len(list)-1 && now.Sub(last.seen) < lease {
			o.seen = now
			return last.machine, o.granted
		}
		o.seen = now
		return "", o.granted
	}
	return "", time.Time{}
}

// grant records that a machine has the lease, and returns the machine that had it before. first is set if the agent was
// unknown.
func (h *holders) grant(agent, machine string, lease time.Duration) (before string, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.of == nil {
		h.of, h.sweep = map[string][]holder{}, 1024
	}
	list := h.of[agent]
	if n := len(list); n > 0 && list[n-1].machine == machine {
		list[n-1].granted, list[n-1].seen = now, now
		return "", false
	} else if n > 0 && now.Sub(list[n-1].seen) < lease {
		before = list[n-1].machine
	}
	list = slices.DeleteFunc(list, func(o holder) bool { return o.machine == machine || now.Sub(o.seen) >= lease })
	if len(list) >= maxHolders {
		list = slices.Delete(list, 0, 1)
	}
	h.of[agent] = append(list, holder{machine, now, now})
	if len(h.of) > h.sweep {
		for name, list := range h.of {
			if now.Sub(list[len(list)-1].seen) >= lease {
				delete(h.of, name)
			}
		}
		h.sweep = max(1024, 2*len(h.of))
	}
	return before, len(list) == 0
}

// leave forgets a machine that an agent has left; an empty name means all machines. When the machine with the lease
// leaves, an earlier one may take the lease again.
func (h *holders) leave(agent, machine string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.of[agent]
	n := len(list)
	if n == 0 {
		return
	}
	if machine == "" || list[n-1].machine == machine {
		delete(h.of, agent)
		return
	}
	h.of[agent] = slices.DeleteFunc(list, func(o holder) bool { return o.machine == machine })
}

// tellTakenOver emits an event that an agent has moved.
func (l *Lease) tellTakenOver(from string) {
	if from == "" || l.gate.events == nil {
		return
	}
	l.gate.events(inspect.Event{
		Time: time.Now().UTC(), Kind: inspect.EventTakenOver, Agent: l.agent, User: l.user, Class: l.gate.settings.className(int(l.class)),
		Machine: l.machine, FromMachine: from,
	})
}

// granted records that a lease was granted, and returns the machine that it was taken from, if any.
func (g *Gate) granted(l *Lease) (from string) {
	from, first := g.holders.grant(l.agent, l.machine, g.settings.lease)
	if from != "" || !first {
		return from
	}
	v, age, ok := g.shared.Last() // it may have been taken over from another gate
	if !ok || age > viewAgeMax {
		return ""
	}
	if a := findAgent(v.joined, l.agent); a != nil && a.Leased && a.Machine != l.machine {
		return a.Machine
	}
	return ""
}

// lookedAtEach limits how often an agent checks the fleet before it renews its lease. In a large fleet agents check
// less often: all checks together must not cost more than the heartbeats.
const lookedAtEach = 500

// hasMoved is movedTo for a lease that this process renews.
func (g *Gate) hasMoved(ctx context.Context, l *Lease) string {
	by, granted := g.holders.movedTo(l.agent, l.machine, g.settings.lease)
	if by != "" || granted.IsZero() || g.settings.lease < 0 {
		return by
	}
	l.mu.Lock()
	skip := l.skip > 0
	if skip {
		l.skip--
	}
	l.mu.Unlock()
	if skip {
		return ""
	}
	joined, began, err := g.fleet.look(ctx, g.settings.renew/4)
	if err != nil {
		return "" // the heartbeat will show
	}
	l.mu.Lock()
	l.skip = len(joined) / lookedAtEach
	l.mu.Unlock()
	return elsewhere(joined, began, l, granted)
}

// look returns the agents with a lease. It reads them again if the last list is older than age.
func (f *fleet) look(ctx context.Context, age time.Duration) ([]store.Agent, time.Time, error) {
	f.looking.Lock()
	defer f.looking.Unlock()
	if time.Since(f.lookedAt) < age {
		return f.joined, f.lookedAt, nil
	}
	f.mu.Lock()
	pool := f.pool
	f.mu.Unlock()
	if pool == nil {
		return nil, time.Time{}, nil
	}
	began := time.Now()
	snap, err := pool.Snapshot(ctx)
	if err != nil {
		return nil, began, err
	}
	f.joined, f.lookedAt = snap.Agents, began
	return snap.Agents, began, nil
}
