package sluice

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// maxHolders is how many machines are remembered that one agent has been on.
const maxHolders = 4

// holder is a machine that an agent's lease was given to by this gate.
type holder struct {
	machine string
	granted time.Time // last
	seen    time.Time // last, also if it was in vain
}

// holders remembers them: who held a lease and finds it elsewhere is told so, and does not take it back. Without that two machines
// would take it from each other for ever.
type holders struct {
	mu    sync.Mutex
	of    map[string][]holder // by agent; the last has the lease
	sweep int                 // how many there may be before those that are gone are looked for
}

// movedTo returns the machine that has taken an agent's lease over from the one that sends this heartbeat; empty: none has.
func (g *Gate) movedTo(ctx context.Context, l *Lease) (string, error) {
	if g.plan.lease < 0 {
		return "", nil
	}
	by, granted := g.holders.movedTo(l.agent, l.machine, g.plan.lease)
	if by != "" || granted.IsZero() { // or it has not held it, and may take it from whoever does
		return by, nil
	}
	v, err := g.recent(ctx)
	if err != nil {
		return "", err
	}
	return elsewhere(v.joined, v.began, l, granted), nil
}

// elsewhere returns the machine that has a lease in a list, if the list is younger than what l knows of it.
func elsewhere(joined []store.Agent, began time.Time, l *Lease, granted time.Time) string {
	if a := findAgent(joined, l.agent); a != nil && a.Leased && a.Machine != l.machine && began.After(granted) {
		return a.Machine
	}
	return ""
}

// movedTo returns the machine that this gate has given the lease to since it was asker's. If there is none it is asker's still,
// as far as this gate knows, if granted is not zero.
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

// grant notes that a machine has the lease, and returns the one that had it before. First tells that nothing was known of the agent.
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

// leave forgets a machine that an agent has left; the empty name is all of them. When the one that has the lease goes, whoever had it
// before may take it again.
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

// tellTakenOver makes it known that an agent has moved.
func (l *Lease) tellTakenOver(from string) {
	if from == "" || l.gate.events == nil {
		return
	}
	l.gate.events(inspect.Event{
		Time: time.Now().UTC(), Kind: inspect.EventTakenOver, Agent: l.agent, User: l.user, Class: l.gate.plan.className(int(l.class)),
		Machine: l.machine, FromMachine: from,
	})
}

// granted notes that a lease was given, and returns the machine that it was taken from, if any.
func (g *Gate) granted(l *Lease) (from string) {
	from, first := g.holders.grant(l.agent, l.machine, g.plan.lease)
	if from != "" || !first {
		return from
	}
	g.outlook.mu.Lock() // through another gate, perhaps
	v := g.outlook.last
	g.outlook.mu.Unlock()
	if v == nil || time.Since(v.began) > viewAgeMax {
		return ""
	}
	if a := findAgent(v.joined, l.agent); a != nil && a.Leased && a.Machine != l.machine {
		return a.Machine
	}
	return ""
}

// A holder looks at the fleet before it renews its lease. In a large one that is done less often: everybody's looks together must
// not be more work than the heartbeats are.
const lookedAtEach = 500

// hasMoved is movedTo for a lease that this process keeps alive.
func (g *Gate) hasMoved(ctx context.Context, l *Lease) string {
	by, granted := g.holders.movedTo(l.agent, l.machine, g.plan.lease)
	if by != "" || granted.IsZero() || g.plan.lease < 0 {
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
	joined, began, err := g.fleet.look(ctx, g.plan.renew/4)
	if err != nil {
		return "" // the heartbeat will tell
	}
	l.mu.Lock()
	l.skip = len(joined) / lookedAtEach
	l.mu.Unlock()
	return elsewhere(joined, began, l, granted)
}

// look reads who has a lease, if what is known is older than that.
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
