package sluice

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// windows lists the limits of a resource that are windows of a subscription.
type windows struct {
	limits []*store.Limit
	all    []*store.Limit // those that count for every model
	known  atomic.Bool    // responses have stated some: the resource is used by subscription
	read   atomic.Bool    // the store was checked for windows stated to other processes
}

// add records a limit if it is a window.
func (w *windows) add(l *store.Limit) {
	if !l.Plan {
		return
	}
	w.limits = append(w.limits, l)
	if l.Per&PerModel == 0 {
		w.all = append(w.all, l)
	}
}

// is reports whether one of some limits has a name.
func is(limits []*store.Limit, name string) bool {
	return slices.ContainsFunc(limits, func(l *store.Limit) bool { return l.Name == name })
}

// unread reports whether it is not known yet if there is a subscription.
func (w *windows) unread() bool { return len(w.limits) > 0 && !w.read.Load() && !w.known.Load() }

// note records the windows that a response states. It reports whether a window is used up and has a known reset. The
// window itself then holds lower classes, and no pause is needed, which would hold the highest class too.
func (w *windows) note(stated []store.Observed) (gone bool) {
	if len(w.limits) == 0 {
		return false
	}
	for i := range stated {
		if s := &stated[i]; s.Size > 0 && is(w.limits, s.Limit) {
			w.known.Store(true)
			gone = gone || s.Remaining == 0 && s.ResetIn > 0
		}
	}
	return gone
}

// readWindows checks once whether responses to other processes have stated windows. If the store cannot be read,
// responses to this process will tell.
func (r *resource) readWindows(ctx context.Context) {
	if !r.windows.read.CompareAndSwap(false, true) {
		return
	}
	snap, err := r.pool.Snapshot(ctx)
	if err != nil {
		return
	}
	for i := range snap.Limits {
		if l := &snap.Limits[i]; l.Size > 0 && is(r.windows.limits, l.Limit) {
			r.windows.known.Store(true)
		}
	}
}

// leastOfWindow is the charge on a window before the actual cost is known. It makes the request wait if nothing is
// left.
const leastOfWindow = 1

// fillWindows sets what a request takes from windows. The highest class is charged when its usage is known, and never
// waits for windows.
func (r *resource) fillWindows(op *store.Op, req *Request) {
	if op.Class == 0 {
		for _, l := range r.windows.limits {
			if n, _ := store.AmountOf(op.Amounts, l); n != 0 {
				op.Amounts = append(op.Amounts, store.Amount{Unit: l.Unit, Limit: l.Name})
			}
		}
		return
	}
	if !r.windows.known.Load() {
		return
	}
	for _, l := range r.windows.all {
		if n, _ := store.AmountOf(op.Amounts, l); n == 0 && !slices.ContainsFunc(req.Cost, func(a Amount) bool { return a.Unit == l.Unit }) {
			op.Amounts = append(op.Amounts, store.Amount{Unit: l.Unit, Limit: l.Name, N: leastOfWindow})
		}
	}
}

// planGone returns when a window will be used up at the rate since it began. It is 0 if the window lasts until its
// reset, or has only just begun.
func planGone(l *store.LimitState, now store.Time) store.Time {
	passed := l.Window - l.Reset.Sub(now)
	if l.Reset == 0 || l.Used <= 0 || l.Remaining <= 0 || passed < l.Window/100 {
		return 0
	}
	gone := now.Add(time.Duration(float64(passed) * float64(l.Remaining) / float64(l.Used)))
	if gone >= l.Reset {
		return 0
	}
	return gone
}

// windowWords says which window of a subscription is used up, and for how long; empty if none is.
func (r *resource) windowWords(snap *store.Snapshot) string {
	if r.observe {
		return ""
	}
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Size > 0 && l.Remaining <= 0 && l.Reset > snap.Now && is(r.windows.all, l.Limit) {
			return fmt.Sprintf("%s: the window %s is used up for another %v", r.name, l.Limit, l.Reset.Sub(snap.Now).Round(time.Second))
		}
	}
	return ""
}
