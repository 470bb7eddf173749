package api

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/reading"
)

const (
	// manyCallers is the number of callers from which a fleet counts as large: reading its state then costs more than a
	// grant.
	manyCallers = 500
	// The levels in a grant are read again in a large fleet when they are older than levelsLeast, or where reading takes long
	// up to levelsAge. None are older than levelsEnd.
	levelsLeast = 100 * time.Millisecond
	levelsAge   = 500 * time.Millisecond
	levelsEnd   = 5 * time.Second
	// levelsWithin bounds one reading. A grant is complete without levels.
	levelsWithin = 5 * time.Second
)

// levels reads what is left of limits, for the responses to grants: after the grant, so that the caller sees what its
// own grant has left. Grants at the same time share a reading. In a large fleet, where a number is out of date on
// arrival, a few readings per second serve all callers.
type levels struct {
	mu  sync.Mutex
	all map[string]*reading.Shared[*level] // by resource
}

type level struct {
	limits []inspect.LimitStatus
	many   bool
}

// of returns the levels of a resource's limits. The resource must exist.
func (l *levels) of(ctx context.Context, g *sluice.Gate, resource string) ([]inspect.LimitStatus, error) {
	l.mu.Lock()
	if l.all == nil {
		l.all = map[string]*reading.Shared[*level]{}
	}
	s := l.all[resource]
	if s == nil {
		s = &reading.Shared[*level]{}
		l.all[resource] = s
	}
	l.mu.Unlock()
	v, err := s.Get(ctx, func(ctx context.Context) (*level, error) {
		ctx, cancel := context.WithTimeout(ctx, levelsWithin)
		defer cancel()
		limits, callers, err := inside.Of(g).Levels(ctx, resource)
		return &level{limits, callers >= manyCallers}, err
	}, func(last reading.Last[*level]) reading.Use {
		switch {
		case !last.Value.many || last.Age > levelsEnd:
			return reading.Refuse
		case last.Age < min(max(10*last.Took, levelsLeast), levelsAge):
			return reading.Keep
		}
		return reading.Renew
	})
	if err != nil {
		return nil, err
	}
	return v.limits, nil
}
