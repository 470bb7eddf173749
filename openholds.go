package sluice

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// Refusals may come by the thousand. They share a reading of the open tickets that hold limits for openHoldsFor, and wait
// for it no longer than openHoldsWithin.
const (
	openHoldsFor    = 200 * time.Millisecond
	openHoldsWithin = 500 * time.Millisecond
)

// openHolds is the latest reading of the open tickets that hold limits.
type openHolds struct {
	reads  sync.Mutex
	latest atomic.Pointer[openHoldsRead]
}

type openHoldsRead struct {
	at     time.Time
	clock  clock
	limits []store.LimitState
}

// readOpenHolds returns a reading. It is nil if there is none yet, or the state cannot be read.
func (r *resource) readOpenHolds(ctx context.Context) *openHoldsRead {
	last := r.openHolds.latest.Load()
	if last != nil && time.Since(last.at) < openHoldsFor || !r.openHolds.reads.TryLock() {
		return last
	}
	defer r.openHolds.reads.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openHoldsWithin)
	defer cancel()
	snap, err := r.read(ctx)
	if err != nil {
		return nil
	}
	now := &openHoldsRead{time.Now(), clockAt(snap.Now), snap.Limits}
	r.openHolds.latest.Store(now)
	return now
}

// addHolders adds the agents whose open tickets hold the limit that has refused op, if only these tickets make room. It
// returns what to do about them; empty: no open tickets are the cause.
func (r *resource) addHolders(ctx context.Context, e *Error, op *store.Op) (hint string) {
	why, limit := &op.Result.Reason, r.limit(op.Result.Reason.Limit)
	lacks := why.Code == store.CodeLimit || why.Code == store.CodeDeadline && why.Behind == store.CodeLimit
	if !lacks || !e.RetryAt.IsZero() || limit == nil || limit.Kind == Concurrency {
		return ""
	}
	if read := r.readOpenHolds(ctx); read != nil {
		scope := scopeText(limit.Per, op)
		for j := range read.limits {
			if l := &read.limits[j]; l.Limit == limit.Name && l.Scope == scope && l.Hold.Tickets > 0 {
				e.HeldBy, e.HeldUntil, e.open = l.Hold.By, read.clock.time(l.Hold.Until), l.Hold.Tickets
			}
		}
	}
	return policy.CloseTickets(e.HeldBy)
}

// scopeText returns the scope of the meter that an op is charged to, as snapshots have it.
func scopeText(per store.Scope, op *store.Op) string {
	var parts []string
	for _, x := range [...]struct {
		of           store.Scope
		label, value string
	}{
		{store.PerAgent, "agent=", op.Agent}, {store.PerUser, "user=", op.User}, {store.PerModel, "model=", op.Model},
		{store.PerTool, "tool=", op.Tool}, {store.PerKey, "key=", op.Key},
	} {
		if per&x.of != 0 && x.value != "" {
			parts = append(parts, x.label+x.value)
		}
	}
	return strings.Join(parts, ",")
}

// heldWords says which unanswered tickets hold a limit, and until when at the latest.
func heldWords(by []string, tickets int, until time.Time) string {
	if len(by) == 0 || tickets == 0 {
		return ""
	}
	s := fmt.Sprintf("held by %d unanswered tickets of ", tickets)
	if tickets == 1 {
		s = "held by an unanswered ticket of "
	}
	return s + policy.AgentsText(by) + ", until " + until.Format(time.RFC3339) + " at the latest"
}
