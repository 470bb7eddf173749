package sluice

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/again"
	"github.com/sluicehq/sluice/store"
)

// note is what a ticket remembers for events.
type note struct {
	req  Request
	held store.Reason // why it waited, if it did and the store said so
	// slowedBy is the budget that slowed it down, if any.
	slowedBy string
}

// noteWhy records why a request waits, and asks the store if it has not said so. It reports whether the request was
// granted meanwhile.
func (r *resource) noteWhy(ctx context.Context, res *store.Result, t *Ticket) (granted bool) {
	why := res.Reason
	if why.Code == store.CodeNone {
		ops := []store.Op{{Kind: store.OpPoll, ID: res.ID}}
		if err := r.send(ctx, ops); err == nil {
			why = ops[0].Result.Reason
			if granted = ops[0].Result.State == store.Granted; granted {
				t.set(r, &ops[0].Result)
			}
		}
	}
	t.note = &note{held: why}
	return granted
}

// emit sends an event of a resource.
func (r *resource) emit(e inspect.Event) {
	e.Resource = r.name
	if r.observe && e.Mode == "" {
		e.Mode = inspect.ModeObserve
	}
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	r.events(e)
}

// about returns an event about a request.
func (r *resource) about(kind string, req *Request) inspect.Event {
	e := inspect.Event{
		Kind: kind, Agent: req.Agent, User: req.User, Class: req.Class, Model: req.Model, Tool: req.Tool, Retry: req.Retry,
	}
	if req.Priced != req.Model {
		e.Requested = req.Priced
	}
	who := r.settings.agent(req.Agent)
	if e.Class == "" && req.Agent != "" {
		e.Class = r.settings.className(int(who.class))
	}
	if e.User == "" {
		e.User = who.user
	}
	return e
}

// admitted emits the event for the outcome of an acquire. In mode observe it grants a refused request. It is called
// only if there is an events function or in mode observe.
func (r *resource) admitted(ctx context.Context, req *Request, t *Ticket, err error) error {
	var refusal *Error
	if err != nil && !r.observe && again.After(ctx, err) {
		return err
	}
	if errors.Is(err, ErrCancelled) && !r.observe && errors.As(err, &refusal) {
		r.tellAbandoned(req, t, refusal)
	}
	if err != nil && (!errors.As(err, &refusal) || !refusal.refuses()) && !r.passes(ctx, err) {
		return err
	}
	if err == nil {
		if r.events != nil {
			r.tellSend(ctx, req, t)
		}
		return nil
	}
	if !r.observe {
		r.tellRefusal(ctx, inspect.EventRefused, req, refusal, "")
		return err
	}
	r.letThrough(ctx, req, t)
	if r.events != nil {
		r.tellRefusal(ctx, inspect.EventWouldWait, req, refusal, t.name())
		r.tellSend(ctx, req, t)
	}
	return nil
}

// waitedSince notes on an error how long the request has waited, if it is about the time.
func waitedSince(began time.Time, err error) error {
	var e *Error
	if errors.As(err, &e) && (errors.Is(err, ErrDeadline) || errors.Is(err, ErrCancelled)) {
		e.waited = time.Since(began)
	}
	return err
}

// tellAbandoned emits the event for a caller that gave up waiting.
func (r *resource) tellAbandoned(req *Request, t *Ticket, why *Error) {
	if r.events == nil || why.waited < time.Millisecond {
		return
	}
	e := r.about(inspect.EventAbandoned, req)
	e.WaitedMS = why.waited.Milliseconds()
	if t.note != nil && t.note.held.Code != store.CodeNone {
		e.Reason, e.Limit = t.note.held.Code.String(), t.note.held.Limit
	}
	r.emit(e)
}

// letThrough forces a grant: the ticket counts, but holds no request. If the store cannot be reached either, the ticket
// exists only in this process.
func (r *resource) letThrough(ctx context.Context, req *Request, t *Ticket) {
	ops := [1]store.Op{{Kind: store.OpAcquire, Force: true}}
	if r.fill(&ops[0], req) == nil && r.apply(ctx, ops[:]) == nil && ops[0].Result.State == store.Granted {
		t.set(r, &ops[0].Result)
		t.hold(req)
		t.note = &note{req: *req}
		return
	}
	*t = Ticket{resource: r, id: passedID(), granted: r.pool.Now(), observed: r.observe, note: &note{req: *req}}
}

// refuses reports whether a valid request was not let through.
func (e *Error) refuses() bool {
	for _, kind := range []error{ErrNotNow, ErrDeadline, ErrCapacity, ErrFull, ErrBudget} {
		if errors.Is(e.Err, kind) {
			return true
		}
	}
	return false
}

// passes reports whether mode observe ignores the error, because the store does not answer.
func (r *resource) passes(ctx context.Context, err error) bool {
	return r.observe && errors.Is(err, ErrStore) && ctx.Err() == nil
}

func (r *resource) tellSend(ctx context.Context, req *Request, t *Ticket) {
	e := r.about(inspect.EventSend, req)
	e.Ticket, e.WaitedMS, e.Units = t.name(), t.waited.Milliseconds(), r.units(req)
	e.Observed, e.Unpriced = t.id.Session == passed, req.Unpriced
	if t.note == nil {
		t.note = &note{}
	}
	t.note.req = *req
	if held := t.note.held; held.Code != store.CodeNone {
		e.Reason, e.Limit = held.Code.String(), held.Limit
		if r.settings.passing { // its caller sends when this process has ended
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, levelWithin)
			defer cancel()
		}
		e.Used, e.Size = r.level(ctx, held.Limit)
	}
	if t.note.slowedBy != "" {
		e.Reason, e.Limit, e.Used, e.Size = store.CodeSlowed.String(), t.note.slowedBy, 0, 0
	}
	r.emit(e)
}

func (r *resource) tellRefusal(ctx context.Context, kind string, req *Request, why *Error, ticket string) {
	e := r.about(kind, req)
	e.Ticket, e.Reason, e.Behind, e.Limit, e.Units, e.WaitedMS = ticket, why.Reason, why.behind, why.Limit, r.units(req), why.waited.Milliseconds()
	if !why.RetryAt.IsZero() {
		e.RetryAt = &why.RetryAt
	}
	if errors.Is(why, ErrBudget) {
		e.Used, e.Size = why.used, why.size
	} else if why.Limit != "" {
		e.Used, e.Size = r.level(ctx, why.Limit)
	}
	if errors.Is(why, ErrStore) {
		e.Reason = "store"
	}
	r.emit(e)
}

// units returns the charges of a request, by unit. It includes the units of limits that the request takes nothing from:
// readers of the log then know that the store itself counts the later usage.
func (r *resource) units(req *Request) map[string]int64 {
	var op store.Op
	if r.fill(&op, req) != nil {
		return nil
	}
	units := map[string]int64{}
	for i := range r.limits {
		l := &r.limits[i]
		if n, _ := store.AmountOf(op.Amounts, l); n > 0 || l.Kind != store.Concurrency && !l.Plan && units[l.Unit] == 0 {
			units[l.Unit] = n
		}
	}
	if usd, ok := usdOf(req.Cost); ok {
		units[USD] = usd // reports include it whether or not a limit counts it
	}
	return units
}

// tellAnswer emits the events for a response and for the pause that it caused, if any. now is when the store recorded
// it.
func (r *resource) tellAnswer(ctx context.Context, req *Request, ticket string, a Answer, now store.Time, observed bool) {
	if a.Verdict == store.VerdictUnreachable {
		return // not a response, and already reported
	}
	e := r.about(inspect.EventAnswer, req)
	e.Ticket, e.Status, e.Verdict, e.Units = ticket, a.Status, a.Verdict.String(), amounts(a.Usage)
	e.Observed = observed
	if a.rejects() {
		e.Reason = r.rejection(req, &a)
	}
	r.emit(e)
	switch a.Verdict {
	case store.VerdictThrottled, store.VerdictExhausted:
		e.Kind, e.Units, e.Reason = inspect.EventThrottled, nil, a.Cause
		e.Limit, e.Used, e.Size = usedUp(a.Limits)
		r.emit(e)
	case store.VerdictOverloaded:
	default:
		return
	}
	if r.observe {
		return // causes no pause
	}
	e.Limit, e.Used, e.Size = usedUp(a.Limits)
	r.tellPauses(ctx, now, e)
}

// usedUp returns the limit that a response states as used up.
func usedUp(stated []ObservedLimit) (limit string, used, size int64) {
	for _, s := range stated {
		if s.Remaining == 0 {
			return s.Limit, max(s.Size, 0), max(s.Size, 0)
		}
	}
	return "", 0, 0
}

// tellUsage emits an event with the actual usage of a request, if the caller knows it.
func (t Ticket) tellUsage(usage []Amount) {
	if t.resource.events == nil || len(usage) == 0 {
		return
	}
	e := t.resource.about(inspect.EventUsage, t.request())
	e.Ticket, e.Units = t.name(), amounts(usage)
	t.resource.emit(e)
}

func amounts(list []Amount) map[string]int64 {
	if len(list) == 0 {
		return nil
	}
	m := map[string]int64{}
	for _, a := range list {
		m[a.Unit] = a.N
	}
	return m
}

// tellPauses emits events for the pauses that began at a moment. e describes their cause.
func (r *resource) tellPauses(ctx context.Context, began store.Time, e inspect.Event) {
	_ = r.flush(ctx)
	snap, err := r.pool.Snapshot(ctx)
	if err != nil {
		return // the operation has succeeded and must not fail because of its event
	}
	c := clockAt(snap.Now)
	for _, g := range snap.Gates {
		if g.Since != began || g.Phase != "paused" {
			continue
		}
		e.Kind, e.Units, e.Time = inspect.EventPause, nil, time.Time{}
		e.Scope, e.Consecutive, e.Reason = g.Scope, g.Consecutive, g.Cause
		e.ForMS, e.Until = g.Until.Sub(g.Since).Milliseconds(), c.moment(g.Until)
		told := e
		if told.Agent == "" && g.Agent != "" { // this process only has the id of the ticket
			who := r.about(e.Kind, &Request{Agent: g.Agent})
			told.Agent, told.User, told.Class = who.Agent, cmp.Or(told.User, who.User), cmp.Or(told.Class, who.Class)
		}
		if told.Limit == "" {
			told.Limit, told.Used, told.Size = r.fullestNow(&snap, g.Scope)
		}
		r.emit(told)
	}
}

// fullestNow returns the limit in a scope with the largest used part, as the pool counts it. Limits of unknown size come
// last.
func (r *resource) fullestNow(snap *store.Snapshot, scope string) (limit string, used, size int64) {
	most := -1.0
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if def := r.limit(l.Limit); def == nil || l.Kind == Concurrency || ours(def) || l.Scope != "" && l.Scope != scope {
			continue
		}
		part := 0.0
		if l.Size > 0 {
			part = float64(l.Used) / float64(l.Size)
		}
		if part > most {
			most, limit, used, size = part, l.Limit, l.Used, l.Size
		}
	}
	return limit, used, size
}

// levels caches how much of the limits is used, for events. There can be many events, and an approximate level is
// enough for them.
type levels struct {
	mu   sync.Mutex
	at   time.Time
	list []store.LimitState
}

// levelsFor is how long the cached levels are valid.
const levelsFor = time.Second

// levelWithin is how long a program that makes one request waits for the levels when it has been granted.
const levelWithin = 20 * time.Millisecond

// level returns how much of a limit was used a moment ago, and its size.
func (r *resource) level(ctx context.Context, limit string) (used, size int64) {
	l := &r.levels
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) >= levelsFor {
		snap, err := r.read(ctx)
		if err != nil {
			return 0, 0
		}
		l.at, l.list = time.Now(), snap.Limits
	}
	for i := range l.list {
		if s := &l.list[i]; s.Limit == limit && s.Scope == "" {
			return s.Used, s.Size
		}
	}
	return 0, 0
}
