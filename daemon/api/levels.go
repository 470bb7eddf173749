package api

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

const (
	// manyCallers is the number of callers from which a fleet counts as large: reading its state then costs more than a
	// grant.
	manyCallers = 500
	// levelsAge is how old the levels in a grant may be in a large fleet.
	levelsAge = 500 * time.Millisecond
)

// levels caches what is left of limits, for the responses to grants. Normally it reads them for each grant, so that the
// caller sees what its own grant has left. In a large fleet, where a number is out of date on arrival, it reads them a
// few times a second for all callers.
type levels struct {
	mu  sync.Mutex
	all map[string]*level
}

type level struct {
	limits  []inspect.LimitStatus
	many    bool
	begun   time.Time
	took    time.Duration
	reading bool
}

// of returns the levels of a resource's limits.
func (l *levels) of(ctx context.Context, g *sluice.Gate, resource string) ([]inspect.LimitStatus, error) {
	l.mu.Lock()
	last := l.all[resource]
	if last != nil && last.many && (last.reading || time.Since(last.begun) < min(10*last.took, levelsAge)) {
		limits := last.limits
		l.mu.Unlock()
		return limits, nil
	}
	if last != nil {
		last.reading = true
	}
	l.mu.Unlock()
	begun := time.Now()
	s, err := g.Resource(ctx, resource)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if last != nil {
			last.reading = false
		}
		return nil, err
	}
	if l.all == nil {
		l.all = map[string]*level{}
	}
	// The map holds at most one entry per resource: an unknown name was an error above.
	l.all[resource] = &level{limits: s.Limits, many: len(s.Callers) >= manyCallers, begun: begun, took: time.Since(begun)}
	return s.Limits, nil
}
