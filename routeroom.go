package sluice

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// room says whether a request for a model can go now, and otherwise when.
type room struct {
	open    bool
	wait    time.Duration
	unknown bool // the wait is unknown
	why     string
}

// later records a reason to wait.
func (m *room) later(wait time.Duration, known bool, why string) {
	wait = max(wait, time.Millisecond)
	if m.open || known && !m.unknown && wait > m.wait || !known {
		m.why = why
	}
	m.open = false
	m.unknown = m.unknown || !known
	m.wait = max(m.wait, wait)
}

// rooms caches a snapshot of a resource, because every request may ask for a route.
type rooms struct {
	mu    sync.Mutex
	at    time.Time
	snap  store.Snapshot
	since time.Time        // when usual was computed
	usual map[string]usual // by model
}

// usual is the recent average cost of requests for a model, by unit.
type usual map[string]int64

const (
	roomsFor = 200 * time.Millisecond
	usualFor = 10 * time.Second
	usualOf  = 10 * time.Minute // the period that the average covers
)

// roomFor returns whether a request for a model can go now.
func (r *resource) roomFor(ctx context.Context, model string, need []Amount) (room, error) {
	m := &r.rooms
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() || time.Since(m.at) > roomsFor {
		snap, cutOff, err := r.snapshot(ctx, true)
		if err != nil {
			return room{}, err
		}
		if cutOff {
			return room{unknown: true, why: "the store cannot be reached"}, nil
		}
		m.at, m.snap = time.Now(), snap
	}
	if m.since.IsZero() || time.Since(m.since) > usualFor {
		m.since, m.usual = time.Now(), r.usualCosts(ctx, m.snap.Now)
	}
	return r.judgeRoom(&m.snap, model, need, m.usual[model]), nil
}

// usualCosts computes the average cost of requests, by model and unit. It is empty if the store keeps no history.
func (r *resource) usualCosts(ctx context.Context, now store.Time) map[string]usual {
	out := map[string]usual{}
	recorder := store.Can(r.pool).Recorder
	if recorder == nil {
		return out
	}
	h, err := recorder.History(ctx, now.Add(-usualOf))
	if err != nil {
		return out
	}
	sent := map[string]int64{}
	for i := range h.Periods {
		p := &h.Periods[i]
		if out[p.Model] == nil {
			out[p.Model] = usual{}
		}
		sent[p.Model] += p.Sent
		for k, unit := range h.Units {
			if k < len(p.Amounts) {
				out[p.Model][unit] += p.Amounts[k]
			}
		}
	}
	for model, units := range out {
		for unit, sum := range units {
			units[unit] = (sum + sent[model] - 1) / max(sent[model], 1)
		}
	}
	return out
}

// judgeRoom is roomFor with a given snapshot.
func (r *resource) judgeRoom(snap *store.Snapshot, model string, need []Amount, usual usual) room {
	m := room{open: true}
	for i := range snap.Gates {
		r.judgeGate(&m, snap, &snap.Gates[i], model)
	}
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Limit >= len(r.limits) || l.Size == 0 || !r.scopeHas(l, model) {
			continue
		}
		def := &r.limits[l.Limit]
		cost := max(costOf(def.Unit, need, usual), 1)
		if lack := cost - l.Remaining; lack > 0 {
			wait, known := comesBack(def, l, lack, snap.Now)
			m.later(wait, known, fmt.Sprintf("limit %q", def.Name))
		}
	}
	for i := range snap.Queue { // waiting requests go first
		if w := &snap.Queue[i]; w.Model == model || r.sharesLimit(w) {
			m.later(w.Expected.Sub(snap.Now), w.Expected != 0, "others wait")
		}
	}
	return m
}

// judgeGate applies a pause, a probe or a ramp.
func (r *resource) judgeGate(m *room, snap *store.Snapshot, g *store.PauseState, model string) {
	if g.Scope != "" && g.Scope != "model="+model {
		return
	}
	switch g.Phase {
	case "paused":
		m.later(g.Until.Sub(snap.Now), true, "paused")
	case "probing":
		m.later(0, false, "one request tries first")
	}
}

// scopeHas reports whether a meter counts every request for a model, of any agent.
func (r *resource) scopeHas(l *store.LimitState, model string) bool {
	switch r.limits[l.Limit].Per {
	case 0:
		return true
	case store.PerModel:
		return strings.TrimPrefix(l.Scope, "model=") == model
	}
	return false
}

// sharesLimit reports whether a waiting request lacks room on a limit that all models share.
func (r *resource) sharesLimit(w *store.Waiter) bool {
	i := int(w.Reason.Limit)
	return i >= 0 && i < len(r.limits) && r.limits[i].Per == 0 && w.Reason.Code != store.CodeOrder
}

func costOf(unit string, need []Amount, usual usual) int64 {
	for _, a := range need {
		if a.Unit == unit {
			return a.N
		}
	}
	if unit == Requests {
		return 1
	}
	return usual[unit]
}

// comesBack estimates how long it takes until a limit has lack more room, if no other request takes it.
func comesBack(def *store.Limit, l *store.LimitState, lack int64, now store.Time) (time.Duration, bool) {
	switch {
	case l.Reset != 0:
		return l.Reset.Sub(now), true
	case def.Kind == Concurrency || def.Size <= 0 && l.Size <= 0:
		return 0, false // when a request finishes
	}
	size := max(l.Size, 1)
	if l.Kind == Bucket && def.Size > 0 {
		size = def.Size
	}
	return time.Duration(min(float64(lack)/float64(size), 1) * float64(l.Window)), true
}
