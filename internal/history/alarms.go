package history

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// Bounds of events: a burst of so many of a kind, then one a minute. Dropped events are counted.
const (
	burstEvents = 60
	maxKinds    = 64
	keptEvents  = 4096 // in memory without files, and waiting to be written
)

// alarms decides which events are kept, so that a flood of one kind leaves room for others.
type alarms struct {
	kinds   map[string]*allowance
	pending []inspect.Event // to be written
	kept    []inspect.Event // without files, oldest first
}

type allowance struct {
	left float64
	at   time.Time
	lost int64
}

// admit reports whether an event is to be kept.
func (a *alarms) admit(e *inspect.Event, now time.Time) bool {
	kind := short(e.Kind)
	if e.State != "" { // a resource that keeps changing state must not hide that it fails
		kind += " " + short(e.State)
	}
	if a.kinds == nil {
		a.kinds = map[string]*allowance{}
	}
	k := a.kinds[kind]
	if k == nil {
		if len(a.kinds) >= maxKinds {
			return false
		}
		k = &allowance{left: burstEvents, at: now}
		a.kinds[kind] = k
	}
	if passed := now.Sub(k.at).Minutes(); passed > 0 {
		k.left, k.at = min(burstEvents, k.left+passed), now
	}
	if k.left < 1 {
		k.lost++
		return false
	}
	k.left--
	return true
}

// lost returns how many events of each kind were dropped since the last call.
func (a *alarms) lost(now time.Time) (list []inspect.Event) {
	for kind, k := range a.kinds {
		if k.lost > 0 {
			list = append(list, inspect.Event{Time: now.UTC(), Kind: inspect.EventDropped, Reason: kind, Count: k.lost})
			k.lost = 0
		}
	}
	slices.SortFunc(list, func(x, y inspect.Event) int { return compareText(x.Reason, y.Reason) })
	return list
}

// keep keeps an event in memory.
func (a *alarms) keep(list *[]inspect.Event, e inspect.Event) {
	*list = append(*list, e)
	if len(*list) > keptEvents {
		*list = slices.Delete(*list, 0, len(*list)-keptEvents)
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
