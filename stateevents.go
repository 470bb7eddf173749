package sluice

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// told is the state of a resource that was last reported.
type told struct {
	mu    sync.Mutex
	state string
	since time.Time

	next string    // a new state that has not lasted long enough
	from time.Time // since when it is next

	advised string            // the setting of the last advice
	advices map[string]advice // that were reported, by setting
}

// advice is when an advice was reported, and the refusals of seven days by then.
type advice struct {
	at      time.Time
	refused int64
}

const (
	// watchEvery is how often states are checked.
	watchEvery = time.Second
	// lookEvery makes WatchStates check idle resources only every so many rounds: other processes may use them.
	lookEvery = 5
	// settled is how long a state other than trouble must last before it is reported: under load such states come and
	// go all the time.
	settled = 5 * time.Second
	// adviseEvery is how long an advice that comes back is not reported again, unless there were more refusals.
	adviseEvery = 24 * time.Hour
)

// tellState emits an event if the state has changed.
func (r *resource) tellState(state, reason string, until *time.Time) {
	if r.events == nil {
		return
	}
	now := time.Now()
	t := &r.told
	t.mu.Lock()
	if t.state == "" {
		t.state, t.since = inspect.StateIdle, now
	}
	if t.state == state {
		t.next = ""
		t.mu.Unlock()
		return
	}
	if !inspect.IsTrouble(state) && !inspect.IsTrouble(t.state) { // trouble is reported at once
		if t.next != state {
			t.next, t.from = state, now
		}
		if now.Sub(t.from) < settled {
			t.mu.Unlock()
			return
		}
	}
	e := inspect.Event{Kind: inspect.EventState, State: state, Was: t.state, Reason: reason, Until: until, ForMS: now.Sub(t.since).Milliseconds()}
	t.state, t.since, t.next = state, now, ""
	t.mu.Unlock()
	r.emit(e)
}

// tellAdvice emits an event if refusals call for another setting than before. The setting can change with every window,
// because it follows what is seen at the moment.
func (r *resource) tellAdvice(s *inspect.ResourceStatus) {
	if r.events == nil {
		return
	}
	setting := ""
	if s.Advice != nil {
		setting = s.Advice.Setting
	}
	now := time.Now()
	t := &r.told
	t.mu.Lock()
	isNew := setting != "" && setting != t.advised
	t.advised = setting
	if before, ok := t.advices[setting]; ok && now.Sub(before.at) < adviseEvery && s.Throttled7d <= before.refused {
		isNew = false
	}
	if isNew {
		if t.advices == nil {
			t.advices = map[string]advice{}
		}
		t.advices[setting] = advice{now, s.Throttled7d}
	}
	t.mu.Unlock()
	if isNew {
		r.emit(inspect.Event{Kind: inspect.EventAdvice, Count: s.Throttled7d, Reason: s.Advice.Text})
	}
}

// WatchStates emits an event for every change of a resource's state, and for every new advice, until ctx ends. Trouble
// that this process meets itself is reported at once in any case; WatchStates finds changes by time and by other
// processes. Changes between queueing, flowing and idle are reported after they have lasted 5 s.
func (g inside) WatchStates(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	calm := map[string]bool{}
	for n := 0; ; n++ {
		budgets := sync.OnceValue(func() []inspect.BudgetStatus { return g.budgetsWithin(ctx, 2*watchEvery) })
		for _, name := range g.names() {
			if calm[name] && n%lookEvery != 0 {
				continue
			}
			state := g.lookAt(ctx, name, budgets)
			calm[name] = state == inspect.StateIdle || state == ""
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookAt reports the state of a resource and returns it; empty if it cannot be read.
func (g *Gate) lookAt(ctx context.Context, name string, budgets func() []inspect.BudgetStatus) string {
	ctx, cancel := context.WithTimeout(ctx, 2*watchEvery)
	defer cancel()
	s, err := g.resourceStatus(ctx, name, budgets)
	if err != nil || !slices.Contains(inspect.States(), s.State) {
		return ""
	}
	g.resources[name].tellState(s.State, s.Reason, s.Until)
	if s.Outage == nil { // otherwise nothing is known of refusals
		g.resources[name].tellAdvice(&s)
	}
	return s.State
}
