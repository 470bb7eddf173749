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

// othersFor is how long the state of pools that the configuration does not name is cached, or othersPause times as long
// as reading it took if that is longer: a Redis with many keys must not be searched all the time. othersWithin is how
// long reading may take, because the status of the daemon's own resources waits for it.
const (
	othersFor    = 3 * time.Second
	othersPause  = 50
	othersWithin = 2 * time.Second
)

// others caches the state of the store's pools that the configuration does not name. Each read opens and closes them,
// so that the daemon never counts as one of their users.
type others struct {
	mu     sync.Mutex // held during a read
	next   time.Time  // time of the next read
	status inspect.Status
}

// read returns the state of these pools. It returns an empty status if they cannot be read, because they do not belong
// to this daemon.
func (o *others) read(ctx context.Context, open func(ctx context.Context, resource string) (*sluice.Gate, error)) inspect.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	began := time.Now()
	if open == nil || began.Before(o.next) {
		return o.status
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), othersWithin) // the next caller needs the result too
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

// forget makes the next call of read read again, after a pool was changed.
func (o *others) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Time{}
}

// OthersStatus returns the part of Status about pools that the configuration does not name.
func (a *API) OthersStatus(ctx context.Context) inspect.Status { return a.others.read(ctx, a.Others) }

// Status returns the response of GET /v1/status: the status of the gate, followed by the pools that the configuration
// does not name.
func (a *API) Status(ctx context.Context) (s inspect.Status, err error) {
	s, err = a.Gate.Status(ctx)
	if err != nil {
		return s, err
	}
	if a.Past != nil {
		defer func() { a.Past(&s) }()
	}
	for i := range s.Resources {
		if s.Resources[i].Outage != nil { // the store cannot be read
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

// has reports whether the configuration names a resource.
func (a *API) has(resource string) bool {
	_, ok := a.Limits[resource]
	return ok
}

// at calls f with the gate that has the resource: the daemon's, or one that it opens for this call.
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
		return f(a.Gate) // its error names the resources that exist
	}
	return f(gate)
}
