package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// JoinRequest describes an agent that joins a gate.
type JoinRequest struct {
	Agent string
	// Class and User default to those of the configuration.
	Class string
	User  string
	// Instance distinguishes several running instances of the same agent, if each is to have its own slot. Empty means
	// that they share one.
	Instance string
	// Machine is where the agent runs. Empty means the name of this host.
	Machine string
	// WaitsFor lists agents whose work this agent depends on, in addition to the configured ones.
	WaitsFor []string
	// Resources lists the resources that the agent is going to use: there the share of its class is kept for it. Empty
	// means all.
	Resources []string
}

// Lease is an agent's membership in the fleet. While it lasts, the agent's class counts as live, and the agent holds
// one of its user's slots. Heartbeats renew it until Leave. If the process dies, it expires.
type Lease struct {
	gate      *Gate
	agent     string
	slot      string // the name under which it holds a slot: the agent's, or one for this instance
	user      string
	machine   string
	class     uint8
	waitsFor  []string // from the configuration
	resources []*resource
	stay      context.Context // ends when the agent leaves
	stop      context.CancelFunc
	done      chan struct{}

	telling sync.Mutex // held during calls to the store
	ended   bool       // guarded by telling: send no more heartbeats

	mu    sync.Mutex
	waits []string  // declared
	err   error     // of the latest heartbeat
	lost  time.Time // since when heartbeats fail; zero: they succeed
	fails int       // failures in a row
	skip  int       // renewals to go before the next check whether the agent has moved
}

// Join takes a lease for an agent, and a slot of its user if slots are bounded. If all slots are taken, the error is
// [ErrSlots], and its RetryAt is when a slot expires if no agent leaves before. A goroutine renews the lease until
// Leave.
func (g *Gate) Join(ctx context.Context, m JoinRequest) (*Lease, error) {
	l, err := g.newLease(m)
	if err != nil {
		return nil, err
	}
	if g.settings.lease < 0 {
		if g.fleet.isClosed() {
			return nil, &Error{Err: ErrClosed}
		}
		return l, nil
	}
	if err := l.beat(ctx); err != nil {
		if l.observed() && errors.Is(err, ErrStore) {
			return l, nil // it continues without a lease
		}
		if errors.Is(err, ErrStore) {
			_ = l.leave() // it may be half done; if this fails too, it expires
		}
		return nil, err
	}
	if !g.fleet.enter(l) {
		_ = l.leave()
		return nil, &Error{Err: ErrClosed}
	}
	go l.renew(g.settings.renew)
	return l, nil
}

func (g *Gate) newLease(m JoinRequest) (*Lease, error) {
	bad := func(format string, args ...any) (*Lease, error) {
		e := invalid(format, args...)
		e.Agent = m.Agent
		return nil, e
	}
	known := g.settings.agent(m.Agent)
	l := &Lease{
		gate: g, agent: m.Agent, user: m.User, machine: m.Machine, class: known.class, waitsFor: without(known.waitsFor, m.Agent),
		waits: slices.Clone(m.WaitsFor), done: make(chan struct{}), slot: m.Agent,
	}
	if m.Instance != "" && g.settings.slots.Max > 0 { // only then does it take a slot
		l.slot = fleetMark + m.Agent + "#" + m.Instance
	}
	l.stay, l.stop = context.WithCancel(context.Background())
	if l.user == "" {
		l.user = known.user
	}
	if l.machine == "" {
		l.machine, _ = os.Hostname() // stays empty if the host has no name
	}
	if m.Class != "" {
		class, ok := g.settings.classIndex(m.Class)
		if !ok {
			e := invalid("unknown class %.80q", m.Class)
			e.Agent, e.Hint = m.Agent, g.settings.classesHint()
			return nil, e
		}
		l.class = class
	}
	if m.Agent == "" {
		return bad("the request names no agent")
	}
	if strings.HasPrefix(m.Agent, fleetMark) {
		return bad("the name of agent %.80q begins with a control character", m.Agent)
	}
	if max(len(l.slot), len(l.user), len(l.machine)) > store.MaxName {
		return bad("the names of agent, user and machine can be %d bytes long", store.MaxName)
	}
	if err := l.checkWaits(l.waits); err != nil {
		return nil, err
	}
	names := m.Resources
	if len(names) == 0 {
		names = g.names()
	}
	for _, name := range names {
		r, err := g.resource(name)
		if err != nil {
			return nil, err
		}
		l.resources = append(l.resources, r)
	}
	if l.observed() {
		l.slot = l.agent
	}
	return l, nil
}

func (l *Lease) checkWaits(agents []string) error {
	for _, a := range agents {
		if a == "" || len(a) > store.MaxName || a == l.agent {
			e := invalid("an agent cannot wait for %.80q: it takes another agent's name", a)
			e.Agent, e.Hint = l.agent, fmt.Sprintf("name the agents whose results this one needs, with 1 to %d bytes each", store.MaxName)
			return e
		}
	}
	if n := len(union(l.waitsFor, agents)); n > store.MaxWaits {
		e := invalid("an agent can wait for up to %d others, not for %d", store.MaxWaits, n)
		e.Agent = l.agent
		return e
	}
	return nil
}

// Agent returns the name of the agent that holds the lease.
func (l *Lease) Agent() string { return l.agent }

// Request returns a request of this agent, with its class and user, for the caller to complete and send through the
// gate.
func (l *Lease) Request(resource string) Request {
	return Request{Resource: resource, Agent: l.agent, Class: l.gate.settings.className(int(l.class)), User: l.user}
}

// WaitFor declares the agents whose work this agent depends on from now on. It replaces earlier declarations.
func (l *Lease) WaitFor(ctx context.Context, agents ...string) error {
	if err := l.checkWaits(agents); err != nil {
		return err
	}
	l.mu.Lock()
	l.waits = slices.Clone(agents)
	l.mu.Unlock()
	return l.keep(ctx)
}

// Err returns why the latest heartbeat failed, or nil. After a failure the next heartbeat tries again: it takes an
// expired lease anew, if there is a slot. A lease that another machine has taken over ([ErrTakenOver]) stays there
// until that machine leaves or dies.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Leave gives the lease and the slot back. If the agent has joined several times through this gate, only the last Leave
// does. It may be called twice.
func (l *Lease) Leave() error {
	was, last := l.gate.fleet.remove(l)
	if !was {
		return nil
	}
	l.stop()
	<-l.done
	if !last {
		l.telling.Lock()
		defer l.telling.Unlock()
		l.ended = true
		if l.slot == l.agent {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
		defer cancel()
		return l.tellSlot(ctx, store.OpLeave)
	}
	return l.leave()
}

// renew sends heartbeats until the agent leaves.
func (l *Lease) renew(every time.Duration) {
	defer close(l.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.stay.Done():
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(l.stay, every)
			l.tellLost(l.keep(ctx))
			cancel()
		}
	}
}

// tellLost emits an event when a heartbeat fails, and when heartbeats succeed again. Err reports the same.
func (l *Lease) tellLost(err error) {
	if l.gate.events == nil || l.stay.Err() != nil {
		return
	}
	now := time.Now()
	e := inspect.Event{Time: now.UTC(), Kind: inspect.EventLeaseLost, Agent: l.agent, User: l.user, Class: l.gate.settings.className(int(l.class))}
	l.mu.Lock()
	switch {
	case err != nil:
		if l.fails++; l.fails == 1 {
			l.lost = now
		}
		e.Error, e.Consecutive = err.Error(), l.fails
	case l.fails > 0:
		e.Kind, e.ForMS = inspect.EventLeaseBack, now.Sub(l.lost).Milliseconds()
		l.fails, l.lost = 0, time.Time{}
	default:
		e.Kind = ""
	}
	l.mu.Unlock()
	if e.Kind != "" {
		l.gate.events(e)
	}
}

// beat sends one heartbeat: first to the fleet's pool, which has the slots, then to the resources. If the fleet's pool
// refuses it, the resources do not get it.
func (l *Lease) beat(ctx context.Context) error {
	if l.gate.settings.lease < 0 {
		return nil
	}
	l.telling.Lock()
	defer l.telling.Unlock()
	if l.ended {
		return &Error{Err: ErrEnded, Agent: l.agent, Message: fmt.Sprintf("agent %q: its lease has ended", l.agent), Hint: "join again"}
	}
	err := l.tell(ctx, store.OpHeartbeat)
	if err == nil {
		l.tellTakenOver(l.gate.granted(l))
	}
	l.fail(err)
	return err
}

func (l *Lease) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// keep is beat for an agent that already has the lease. If another machine has taken the lease over, keep does not take
// it back.
func (l *Lease) keep(ctx context.Context) error {
	by := l.gate.hasMoved(ctx, l)
	if by == "" {
		return l.beat(ctx)
	}
	err := &Error{Err: ErrTakenOver, Agent: l.agent, Message: fmt.Sprintf("agent %q: %s", l.agent, movedReason(by)), Hint: "running work may continue; to take the lease back, leave and join again"}
	l.fail(err)
	return err
}

// leaveWithin bounds how long a store that does not answer can delay leaving.
const leaveWithin = 5 * time.Second

func (l *Lease) leave() error {
	l.telling.Lock()
	defer l.telling.Unlock()
	l.ended = true
	l.gate.holders.leave(l.agent, l.machine)
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	return l.tell(ctx, store.OpLeave)
}

func (l *Lease) tell(ctx context.Context, kind store.OpKind) error {
	pool, err := l.gate.fleetPool(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	op := store.Op{
		Kind: kind, Agent: l.agent, User: l.user, Machine: l.machine, Class: l.class, WaitsFor: union(l.waitsFor, l.waits),
		TTL: l.gate.settings.lease, Slots: l.gate.settings.slots,
	}
	l.mu.Unlock()
	if l.observed() { // without holding requests, slots would serve no purpose
		op.Slots = store.Slots{}
	}
	if l.slot != l.agent {
		if err := l.tellSlot(ctx, kind); err != nil {
			return err
		}
		op.Slots = store.Slots{}
	}
	ops := []store.Op{op}
	op.Slots = store.Slots{} // slots are in the fleet's pool only
	if err := pool.Apply(ctx, ops); err != nil {
		return l.gate.storeError(err)
	}
	if res := &ops[0].Result; res.State == store.Refused {
		return l.refused(res)
	}
	errs := make([]error, len(l.resources))
	each(len(errs), func(i int) {
		r, ops := l.resources[i], []store.Op{op}
		if err := r.send(ctx, ops); err != nil {
			errs[i] = r.storeError(err)
		} else if res := &ops[0].Result; res.State == store.Refused {
			errs[i] = l.refused(res)
		}
	})
	return cmp.Or(errs...)
}

// tellSlot takes, keeps or leaves the slot of one instance.
func (l *Lease) tellSlot(ctx context.Context, kind store.OpKind) error {
	pool, err := l.gate.fleetPool(ctx)
	if err != nil {
		return err
	}
	ops := []store.Op{{
		Kind: kind, Agent: l.slot, User: l.user, Machine: l.machine, Class: l.class, TTL: l.gate.settings.lease, Slots: l.gate.settings.slots,
		WaitsFor: []string{l.agent}, // the agent of the instance
	}}
	if err := pool.Apply(ctx, ops); err != nil {
		return l.gate.storeError(err)
	}
	if res := &ops[0].Result; res.State == store.Refused {
		return l.refused(res)
	}
	return nil
}

func (l *Lease) refused(res *store.Result) error {
	e := &Error{Err: ErrInvalid, Agent: l.agent, Reason: res.Reason.Code.String(), RetryAt: clockAt(res.Now).time(res.Reason.At)}
	if res.Reason.Code != store.CodeSlots {
		e.Message = fmt.Sprintf("agent %q: the store refused its lease (%s)", l.agent, e.Reason)
		if res.Reason.Code == store.CodeFull {
			e.Hint = fmt.Sprintf("a pool holds up to %d leases", store.MaxLeases)
		}
		return e
	}
	e.Err = ErrSlots
	whose := fmt.Sprintf("user %q", l.user)
	e.Hint = "wait for one of its agents to leave, or raise slots"
	if l.user == "" {
		whose = "agents without a user"
		e.Hint = "name the agent's user, wait for another agent to leave, or raise slots"
	}
	e.Message = fmt.Sprintf("agent %q: all slots of %s are taken (%d); the next is free when an agent leaves, or at %s if one has died", l.agent, whose, l.gate.settings.slots.Max,
		e.RetryAt.Format(time.RFC3339))
	return e
}

// Heartbeat takes or renews a lease once. It is for callers with a timer of their own, such as agents that talk to a
// daemon. The lease lasts for [Leases.Expire]. The error is ErrSlots if all slots of the user are taken.
func (g *Gate) Heartbeat(ctx context.Context, m JoinRequest) error {
	l, err := g.newLease(m)
	if err != nil {
		return err
	}
	l.stop() // no background heartbeats
	return l.beat(ctx)
}

// Leave ends a lease that Heartbeat has taken. If Machine is empty, it ends the lease on whatever machine the agent is.
func (g *Gate) Leave(m JoinRequest) error {
	l, err := g.newLease(m)
	if err != nil {
		return err
	}
	l.stop()
	l.machine = m.Machine
	return l.leave()
}

// Leased returns the class, user and machine of an agent's lease, as of a moment ago. It reports false if the agent
// holds no lease.
func (g inside) Leased(ctx context.Context, agent string) (m JoinRequest, ok bool, err error) {
	v, err := g.recent(ctx)
	if err != nil {
		return JoinRequest{}, false, err
	}
	a := findAgent(v.joined, agent)
	if a == nil || !a.Leased {
		return JoinRequest{}, false, nil
	}
	return JoinRequest{Agent: agent, Class: g.settings.className(a.Class), User: a.User, Machine: a.Machine}, true, nil
}

// Class returns the default class of an agent: the configured one, otherwise the lowest.
func (g *Gate) Class(agent string) string {
	return g.settings.className(int(g.settings.agent(agent).class))
}
