package api

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

const (
	// manyCallers is from how many on a fleet is a large one: what it takes to read its state is more than what it takes to grant.
	manyCallers = 500
	// levelsAge is how old the levels of a large fleet's limits may be that a grant tells.
	levelsAge = 500 * time.Millisecond
)

// levels are what is left of limits, as grants tell. They are read for each, which shows the caller what its own grant has left. In a
// large fleet, where a number is out of date when it arrives, they are read a few times in a second for all.
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
	// There are as many as resources: a name that is none was an error.
	l.all[resource] = &level{limits: s.Limits, many: len(s.Callers) >= manyCallers, begun: begun, took: time.Since(begun)}
	return s.Limits, nil
}
