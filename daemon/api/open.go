package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// spare is the part of each limit that open tickets of callers below the highest class leave free: one eighth, at least
// 1. Otherwise tickets that are never closed would hold all callers until the tickets expire.
const spare = 8

// maxOpen bounds the open tickets where no limit does, because its size is unknown.
const maxOpen = 10_000

// open holds the open tickets of callers below the highest class, by resource.
type open struct {
	mu      sync.Mutex
	all     map[string]map[string]opened // by resource and id
	changed chan struct{}                // closed when a ticket ends
	swept   time.Time
}

type opened struct {
	cost  []sluice.Amount
	model string
	until time.Time
}

// add records a ticket, unless it leaves too little of a limit. It reports whether it did.
func (o *open) add(resource, id string, t opened, limits []sluice.Limit, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.fits(resource, t, limits, now) {
		return false
	}
	if o.all == nil {
		o.all = map[string]map[string]opened{}
	}
	if o.all[resource] == nil {
		o.all[resource] = map[string]opened{}
	}
	o.all[resource][id] = t
	return true
}

// fits reports whether one more ticket leaves enough of each limit. A limit of unknown size always has room.
func (o *open) fits(resource string, t opened, limits []sluice.Limit, now time.Time) bool {
	o.sweep(now)
	if len(o.all[resource]) >= maxOpen {
		return false
	}
	for i := range limits {
		l := &limits[i]
		size := l.Size
		if size <= 1 || l.SizeIsDefault {
			continue
		}
		n := amount(l, t.cost)
		for _, other := range o.all[resource] {
			if !other.until.Before(now) && (len(l.Per) == 0 || other.model == t.model) {
				n += amount(l, other.cost)
			}
		}
		if n > size-max(size/spare, 1) && n > amount(l, t.cost) { // the first ticket always fits
			return false
		}
	}
	return true
}

// sweep drops expired tickets. Once a second is enough, because fits ignores them.
func (o *open) sweep(now time.Time) {
	if now.Sub(o.swept) < time.Second {
		return
	}
	o.swept = now
	for _, all := range o.all {
		maps.DeleteFunc(all, func(_ string, t opened) bool { return t.until.Before(now) })
	}
}

// amount returns how much of a cost the limit counts.
func amount(l *sluice.Limit, cost []sluice.Amount) int64 {
	unit := cmp.Or(l.Unit, "requests")
	for _, a := range cost {
		if a.Unit == unit {
			return a.N
		}
	}
	if unit == "requests" {
		return 1
	}
	return 0
}

// end removes a ticket and wakes the callers that wait for room.
func (o *open) end(resource, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.all[resource][id]; ok {
		delete(o.all[resource], id)
		if o.changed != nil {
			close(o.changed)
			o.changed = nil
		}
	}
}

// reserved returns the cost that a ticket reserved.
func (o *open) reserved(resource, id string) []sluice.Amount {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[resource][id].cost
}

// room waits until one more ticket fits. It returns false if none does within wait.
func (o *open) room(ctx context.Context, resource string, t opened, limits []sluice.Limit, wait time.Duration) bool {
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		o.mu.Lock()
		if o.fits(resource, t, limits, time.Now()) {
			o.mu.Unlock()
			return true
		}
		if o.changed == nil {
			o.changed = make(chan struct{})
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-late.C:
			return false
		case <-changed:
		}
	}
}

// tooMany returns the error for a caller whose class has too many open tickets.
func tooMany() *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Detail: "open tickets of lower classes leave one eighth of each limit to the highest class", Why: "concurrency",
		Hint: "close tickets when their requests are over",
	}
}
