package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
)

// othersFor is how long what was read of pools that the configuration does not name is shown, or othersPause times as long as reading took:
// a Redis with many keys is not searched all the time. othersWithin is how long reading may take: the daemon's own resources do not
// wait for it longer.
const (
	othersFor    = 3 * time.Second
	othersPause  = 50
	othersWithin = 2 * time.Second
)

// others are the pools of the store that the configuration does not name, as they were a moment ago. They are opened to be read, and
// closed again: so the daemon never counts as one of their users.
type others struct {
	mu     sync.Mutex // held while they are read
	next   time.Time  // when they are read again
	status inspect.Status
}

// read returns how they are. It is empty where they cannot be read: they are not this daemon's.
func (o *others) read(ctx context.Context, open func(ctx context.Context, resource string) (*sluice.Gate, error)) inspect.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	began := time.Now()
	if open == nil || began.Before(o.next) {
		return o.status
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), othersWithin) // the next caller wants it too
	defer cancel()
	o.status = inspect.Status{}
	if gate, err := open(ctx, ""); err == nil {
		if s, err := gate.Status(ctx); err == nil {
			o.status = s
		}
		_ = gate.Close() // nothing was asked for
	}
	o.next = time.Now().Add(max(othersFor, othersPause*time.Since(began)))
	return o.status
}

// forget has them read again: one was changed.
func (o *others) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Time{}
}

// Status is what GET /v1/status tells.
func (a *API) Status(ctx context.Context) (inspect.Status, error) { return a.wholeStatus(ctx) }

// OthersStatus is the part of Status about pools that the configuration does not name.
func (a *API) OthersStatus(ctx context.Context) inspect.Status { return a.others.read(ctx, a.Others) }

// wholeStatus is that of the gate, followed by the pools that others use.
func (a *API) wholeStatus(ctx context.Context) (inspect.Status, error) {
	s, err := a.Gate.Status(ctx)
	if err != nil {
		return s, err
	}
	for i := range s.Resources {
		if s.Resources[i].Outage != nil { // nothing of the store can be read
			return s, nil
		}
	}
	more := a.others.read(ctx, a.Others)
	s.Resources = append(s.Resources, more.Resources...)
	for _, other := range more.Agents {
		if !slices.ContainsFunc(s.Agents, func(own inspect.AgentStatus) bool { return own.Name == other.Name }) {
			s.Agents = append(s.Agents, other)
		}
	}
	slices.SortFunc(s.Agents, func(a, b inspect.AgentStatus) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// has reports that the configuration names a resource.
func (a *API) has(resource string) bool {
	_, ok := a.Limits[resource]
	return ok
}

// at calls f with the gate that has a resource: the daemon's, or one that is open meanwhile.
func (a *API) at(ctx context.Context, resource string, f func(*sluice.Gate) error) (err error) {
	if a.has(resource) || a.Others == nil {
		return f(a.Gate)
	}
	gate, err := a.Others(ctx, resource)
	if err != nil {
		return err
	}
	defer func() { _ = gate.Close() }() // nothing is held
	if _, ok := inside.Of(gate).Others()[resource]; !ok {
		return f(a.Gate) // which says what there is
	}
	return f(gate)
}
