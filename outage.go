package sluice

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// tellOutages emits an event when the store is lost and when it is back.
func (r *resource) tellOutages() {
	alarm := store.Can(r.pool).Alarm
	if alarm == nil || r.events == nil {
		return
	}
	alarm.OnOutage(func(o store.Outage, over bool) {
		e := inspect.Event{Kind: inspect.EventStoreLost, Mode: o.Mode.String(), Error: o.Why, Count: o.Granted}
		if over {
			e.Kind = inspect.EventStoreBack
			if now := r.pool.Now(); now > o.Since {
				e.ForMS = now.Sub(o.Since).Milliseconds()
			}
		}
		r.emit(e)
	})
}

// tellNotices emits an event when something went wrong with the log of a pool.
func tellNotices(p store.Pool, emit func(inspect.Event)) {
	copied := store.Can(p).Copied
	if copied == nil {
		return
	}
	copied.OnNotice(func(n store.Notice) {
		e := inspect.Event{Kind: inspect.EventLogFault, Reason: n.Kind.String(), Position: n.At, Error: n.Why}
		if n.Process != 0 {
			e.Writer = processName(n.Process)
		}
		emit(e)
	})
}

// processName returns the name of a process as the ids of its tickets show it, without the number of its session.
func processName(id uint64) string {
	for id != 0 && id&0xf == 0 {
		id >>= 4
	}
	return strconv.FormatUint(id, 16)
}

// logStatus describes the log of the pool; nil if its store has none.
func (r *resource) logStatus() *inspect.LogStatus {
	copied := store.Can(r.pool).Copied
	if copied == nil {
		return nil
	}
	c := copied.Copy()
	s := &inspect.LogStatus{
		Process: processName(c.Process), Processes: c.Processes, Rules: c.Rules, RulesKnown: c.Known, HoldBack: []string{},
		Diverged: c.Diverged, Poisoned: c.Poisoned, Lost: c.Lost, Behind: c.Behind, Snapshots: c.Snapshots, Bytes: c.LogBytes, SnapshotBytes: c.SnapshotBytes,
	}
	for _, id := range c.Holding {
		s.HoldBack = append(s.HoldBack, processName(id))
	}
	return s
}

// outage returns the current outage; nil if there is none.
func (r *resource) outage() *inspect.OutageStatus {
	alarm := store.Can(r.pool).Alarm
	if alarm == nil {
		return nil
	}
	o, lasts := alarm.Outage()
	if !lasts {
		return nil
	}
	return &inspect.OutageStatus{Since: r.clock().moment(o.Since), Why: o.Why, Mode: o.Mode.String(), Granted: o.Granted, Meanwhile: r.meanwhile(&o)}
}

// fewUnshared is how many limits without a share are named.
const fewUnshared = 3

// meanwhile says in words what this process does with requests now.
func (r *resource) meanwhile(o *store.Outage) string {
	switch o.Mode {
	case store.FailClosed:
		return "holds all requests"
	case store.FailOpen:
		return "lets all requests go"
	}
	now, does := r.pool.Now(), "goes on within its share"
	switch {
	case o.End != 0 && now >= o.End:
		return "holds all requests: its lease ended at " + r.clock().time(o.End).UTC().Format("15:04:05 UTC")
	case o.End != 0 && o.Start >= o.End:
		return "holds all requests: its lease ends before others leave it its share"
	case now < o.Start:
		does = fmt.Sprintf("holds requests for another %d s, then %s", (o.Start.Sub(now)+time.Second-1)/time.Second, does)
	}
	switch n := len(o.Unshared); {
	case n == 1:
		does += "; it has no share of the limit " + o.Unshared[0] + " and holds requests that need it"
	case n > 1:
		names := strings.Join(o.Unshared[:min(n, fewUnshared)], ", ")
		if n > fewUnshared {
			names += " and others"
		}
		does += "; it has no share of the limits " + names + " and holds requests that need them"
	}
	return does
}

// read reads the state of the pool for a view. It includes everything that this process has reported. The limits are in
// the order of the configuration.
func (r *resource) read(ctx context.Context) (snap store.Snapshot, err error) {
	_ = r.flush(ctx) // a store that can be read but not written is still read
	snap, err = r.pool.Snapshot(ctx)
	slices.SortStableFunc(snap.Limits, func(a, b store.LimitState) int { return r.limitIndex(a.Limit) - r.limitIndex(b.Limit) })
	if err == nil && r.budgets.slows() {
		r.addSlowed(ctx, &snap)
	}
	return snap, err
}

// snapshot reads the state of the pool. A process that continues on its own while the store cannot be reached does not
// know the state: if anyway is set, it gets an empty snapshot and cutOff. One-shot processes get the error, because
// they do not continue.
func (r *resource) snapshot(ctx context.Context, anyway bool) (snap store.Snapshot, cutOff bool, err error) {
	anyway = anyway && !r.settings.passing
	if anyway && r.outage() != nil {
		return store.Snapshot{Now: r.pool.Now()}, true, nil
	}
	if snap, err = r.read(ctx); err == nil {
		return snap, false, nil
	}
	if anyway && r.outage() != nil { // it may have been noticed only now
		return store.Snapshot{Now: r.pool.Now()}, true, nil
	}
	return snap, false, r.storeError(err)
}
