package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// Acquire waits until the request may be sent and returns its ticket. If ctx has a deadline that cannot be met, Acquire
// fails at once with [ErrDeadline] and charges nothing. If ctx ends while it waits, the error is [ErrCancelled] and
// also matches the error of ctx.
//
// Every ticket must be closed. Most callers want [Gate.Do], which closes the ticket and retries.
func (g *Gate) Acquire(ctx context.Context, req Request) (t Ticket, err error) {
	r, err := g.resource(req.Resource)
	if err == nil {
		if r.plain && r.budgets == nil {
			err = r.await(ctx, &req, forever, &t)
		} else {
			err = r.acquire(ctx, &req, forever, &t)
		}
	}
	return t, err
}

// Try is Acquire without waiting: it fails with [ErrNotNow] if the request would have to wait. It does not overtake
// waiting requests.
func (g *Gate) Try(ctx context.Context, req Request) (t Ticket, err error) {
	r, err := g.resource(req.Resource)
	if err == nil {
		err = r.acquire(ctx, &req, 0, &t)
	}
	return t, err
}

// forever is a wait without bound.
const forever = time.Duration(-1)

// request holds a store operation. It is pooled, so that asking allocates nothing.
type request struct{ ops [1]store.Op }

// Acquires have a pool of their own: most of their fields are always the same and need not be set again.
var (
	requests = sync.Pool{New: func() any { return new(request) }}
	asks     = sync.Pool{New: func() any { return &request{[1]store.Op{{Kind: store.OpAcquire}}} }}
)

// resource is one shared quota of a gate.
type resource struct {
	name     string
	in       string // name of its pool
	other    bool   // not named in the configuration
	past     bool   // what mode observe counted, of a resource that is in mode gate now
	preset   bool   // built in, and not named in the configuration
	keyed    bool   // tells API keys apart
	settings *settings
	limits   []store.Limit
	pool     store.Pool
	quick    store.Quick // pool, if it implements this
	crowd    store.Crowd // pool, if it implements this
	late     late
	ttl      time.Duration
	use      int64         // percentage of the provider's limits to use; 0: all
	slack    time.Duration // smallest arrival slack of a guarded limit; 0: no limit is guarded
	counts   []string      // units that the limits count
	work     bool          // some limit counts work

	windows windows

	light        store.Light
	breakerOpens bool         // stops lower classes instead of slowing them
	observe      bool         // mode observe: no request is held
	away         atomic.Int64 // mode observe: no calls to the store before this [uptime]; 0: it is asked
	plain        bool         // not in mode observe and without an events function
	events       func(inspect.Event)
	levels       levels
	averages     averages
	written      written
	budgets      *budgets // nil: no budgets
	price        func(model string, usage []Amount) (int64, bool)
	paid         bool
	free         bool
	charged      atomic.Bool // a request has stated or cost money, and a budget pays
	failures     failures
	told         told

	watched bool // the store notices by itself when this process ends
	beats   beats
	session atomic.Uint64 // our session, known once a request has waited
	waiters waiters
	ring    ring

	openHolds openHolds
}

func (g *Gate) newResource(ctx context.Context, name string, cfg Resource) (*resource, error) {
	wrap := func(err error) error {
		return &Error{Err: ErrInvalid, Resource: name, Message: fmt.Sprintf("resource %q: %v", name, err), cause: err}
	}
	if name == fleetPool {
		return nil, wrap(errors.New("this name is reserved"))
	}
	spec, err := g.settings.spec(name, cfg)
	if err != nil {
		return nil, wrap(err)
	}
	if cfg.TTL < 0 || cfg.TTL > store.MaxTTL {
		return nil, wrap(fmt.Errorf("a time to live of %v is out of range: at most %v", cfg.TTL, store.MaxTTL))
	}
	r := &resource{name: name, settings: g.settings, limits: spec.Limits, ttl: cfg.TTL, use: int64(cfg.Use), slack: leastSlack(spec.Limits)}
	r.breakerOpens, r.observe, r.paid, r.free, r.preset = cfg.Breaker.Open, cfg.Observe, cfg.Paid, cfg.Free, cfg.Preset
	r.keyed = cfg.SplitKeys || tellsKeys(spec.Limits)
	if r.ttl == 0 {
		r.ttl = defaultTTL
	}
	if r.observe {
		spec.Name += observedPool
	}
	if err := g.connect(ctx, r, spec); errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) {
		return nil, r.storeError(err)
	} else if err != nil {
		return nil, wrap(err)
	}
	return r, nil
}

// connect opens the pool of the resource.
func (g *Gate) connect(ctx context.Context, r *resource, spec store.Spec) (err error) {
	r.in, r.light, r.events, r.budgets, r.price = spec.Name, spec.Light, g.events, g.budgets, g.price
	r.plain = !r.observe && r.events == nil
	for i := range spec.Limits[:min(len(spec.Limits), store.MaxLimits)] {
		l := &spec.Limits[i]
		r.work = r.work || l.Unit == Work
		r.windows.add(l)
		if !slices.Contains(r.counts, l.Unit) {
			r.counts = append(r.counts, l.Unit)
		}
	}
	r.late.units = r.counts
	if r.pool, err = g.store.Pool(ctx, spec); err != nil {
		return err
	}
	can := store.Can(r.pool)
	if !r.observe { // mode observe needs a deadline for every call
		r.quick, r.crowd, r.late.calm = can.Quick, can.Crowd, can.Calm
	}
	if r.late.calm != nil {
		r.late.calm.OnCrowd(r.hurry)
	}
	r.late.on = r.quick == nil && !g.settings.passing // of no use with a quick store, or to a process that asks only once
	if can.Watcher != nil {
		r.watched = can.Watcher.Watches()
	}
	r.tellOutages()
	if r.events != nil {
		tellNotices(r.pool, r.emit)
	}
	r.waiters.waiting = map[uint64]*waiter{}
	r.pool.Watch(r.waiters.decided)
	return nil
}

func (r *resource) close() error {
	r.waiters.close()
	unsaid := r.endLate()
	if gone := r.beats.close(); len(gone) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), beatWithin)
		_ = r.pool.Apply(ctx, gone) // if this fails, the silence of the sessions says the same
		cancel()
	}
	return errors.Join(unsaid, r.pool.Close())
}

// acquire asks for a ticket and waits for it, at most for wait and as long as ctx allows. It sets t only if there is no
// error.
func (r *resource) acquire(ctx context.Context, req *Request, wait time.Duration, t *Ticket) error {
	if r.observe {
		return r.acquireObserved(ctx, req, t)
	}
	if r.budgets != nil {
		if paid, err := r.acquirePaid(ctx, req, wait, t); paid {
			return err
		}
	}
	if r.plain {
		return r.await(ctx, req, wait, t)
	}
	req = r.priceTag(req)
	began := time.Now()
	err := r.await(ctx, req, wait, t)
	return r.admitted(ctx, req, t, waitedSince(began, err))
}

// await acquires without emitting events.
func (r *resource) await(ctx context.Context, req *Request, wait time.Duration, t *Ticket) error {
	if len(req.Keys) > 0 {
		return r.awaitAny(ctx, req, wait, t)
	}
	return r.awaitOne(ctx, req, wait, t)
}

// awaitOne is await for a request that uses one key, or none.
func (r *resource) awaitOne(ctx context.Context, req *Request, wait time.Duration, t *Ticket) error {
	until, bounded := ctx.Deadline()
	if wait > 0 {
		if end := time.Now().Add(wait); !bounded || end.Before(until) {
			until, bounded = end, true
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return r.cancelled(req, err)
		}
		if bounded && wait < 0 && !time.Now().Before(until) { // the context of a context with a deadline and no timer does not end
			return r.cancelled(req, context.DeadlineExceeded)
		}
		left := wait
		if bounded && wait != 0 {
			left = min(max(time.Until(until), 1), store.MaxWindow)
		}
		if err := r.ask(ctx, req, left, t); err == nil || !errors.Is(err, errAgain) {
			return err
		}
		if wait > 0 && !time.Now().Before(until) {
			return r.overdue(req)
		}
	}
}

// errAgain means that the store gave up the request, because its grant was not collected in time or its wait was over.
var errAgain = errors.New("ask again")

func (r *resource) ask(ctx context.Context, req *Request, wait time.Duration, t *Ticket) error {
	if r.windows.unread() {
		r.readWindows(ctx)
	}
	x := asks.Get().(*request)
	op := &x.ops[0]
	op.ID, op.Wait, op.Result = store.ID{}, wait, store.Result{}
	err := r.fill(op, req)
	if err != nil {
		return err
	}
	if wait == 0 {
		r.late.wait(ctx) // tickets that this caller has closed must not block it
	}
	bells := r.waiters.bells.Load()
	if err = r.apply(ctx, x.ops[:]); err != nil {
		err = r.failed(ctx, req, err)
	}
	res := &op.Result
	switch {
	case err != nil:
	case res.State == store.Granted:
		t.set(r, res)
		t.hold(req)
	case res.State == store.Waiting:
		r.session.Store(res.ID.Session)
		r.alive(res.ID.Session)
		if r.events != nil && r.noteWhy(ctx, res, t) {
			t.hold(req)
			break
		}
		err = r.wait(ctx, req, res.ID, bells, t)
	default:
		err = r.refused(ctx, req, wait, op)
	}
	asks.Put(x)
	return err
}

// wait waits for the decision about a queued request. bells is the number of notices before the request was queued: if
// it is unchanged when we start to listen, no notice was missed.
func (r *resource) wait(ctx context.Context, req *Request, id store.ID, bells uint64, t *Ticket) error {
	for {
		if w, missed := r.waiters.enter(id.N, bells); !missed {
			select {
			case <-w.bell:
				r.waiters.spare.Put(w)
			case <-ctx.Done():
				r.waiters.leave(id.N, w)
				r.giveBack(ctx, id)
				return r.cancelled(req, ctx.Err())
			}
		}
		if r.waiters.closed.Load() {
			return &Error{Err: ErrClosed, Resource: r.name}
		}
		bells = r.waiters.bells.Load()
		res, err := r.collect(ctx, id)
		switch {
		case err != nil:
			r.giveBack(ctx, id) // it may have been collected without us knowing
			return r.failed(ctx, req, err)
		case res.State == store.Granted:
			t.set(r, &res)
			t.hold(req)
			return nil
		case res.State != store.Waiting:
			return errAgain
		}
		// The notice was for another request: keep listening.
	}
}

// giveBackWithin bounds how long a caller waits after its deadline.
const giveBackWithin = 100 * time.Millisecond

// giveBack cancels a ticket that no caller will use. If that fails, it is tried again later. A caller that goes away by
// itself may wait for that; others must not.
func (r *resource) giveBack(ctx context.Context, id store.ID) {
	end := context.WithoutCancel(ctx)
	if !errors.Is(ctx.Err(), context.Canceled) {
		var cancel context.CancelFunc
		end, cancel = context.WithTimeout(end, giveBackWithin)
		defer cancel()
	}
	if err := r.send(end, []store.Op{{Kind: store.OpCancel, ID: id}}); err != nil {
		r.again(report{id: id, closed: true, unsent: true}, err)
	}
}

// collect asks for the decision about a waiting ticket.
func (r *resource) collect(ctx context.Context, id store.ID) (store.Result, error) {
	if r.quick != nil {
		return r.quick.CollectTicket(id)
	}
	ops := []store.Op{{Kind: store.OpPoll, ID: id}}
	err := r.send(ctx, ops)
	return ops[0].Result, err
}

// tooMuch says what a request costs of a limit that is too small for it. It leaves out numbers that it does not know:
// the size may be one that the provider or another member states.
func (r *resource) tooMuch(req *Request, limit string) string {
	what := fmt.Sprintf("more than limit %q can ever hold", limit)
	l := r.limit(limit)
	if l == nil {
		return what
	}
	var op store.Op
	if r.fillCost(&op, req) != nil {
		return what
	}
	n, _ := store.AmountOf(op.Amounts, l)
	if size := sizeOf(l); n > size && size > 0 {
		return fmt.Sprintf("%d %s, %s (%d)", n, l.Unit, what, size)
	}
	return what
}

// refused returns the error for a refused op.
func (r *resource) refused(ctx context.Context, req *Request, wait time.Duration, op *store.Op) error {
	res := &op.Result
	e := &Error{Resource: r.name, Agent: req.Agent, Reason: res.Reason.Code.String(), Limit: res.Reason.Limit, RetryAt: clockAt(res.Now).time(res.Reason.At)}
	if res.Reason.Behind != store.CodeNone {
		e.behind = res.Reason.Behind.String()
	}
	hint := r.addHolders(ctx, e, op)
	e.why = e.words(res.Reason.Code)
	switch {
	case res.Reason.Code == store.CodeCapacity:
		e.Err, e.why = ErrCapacity, "the request costs "+r.tooMuch(req, res.Reason.Limit)
		e.Message = r.name + ": " + e.why
		e.Hint = "ask for less, or raise the limit"
	case res.Reason.Code == store.CodeFull:
		e.Err = ErrFull
		e.Message = r.name + ": too many requests are waiting"
		e.Hint = "try later, or raise max_waiting"
	case res.Reason.Code == store.CodeInvalid:
		e.Err, e.Message = ErrInvalid, r.name+": the store refused the request as invalid"
		e.Hint = "check its names, class, amounts and time to live"
	case wait == 0:
		e.Err = ErrNotNow
		e.Message = fmt.Sprintf("%s: not now (%s)", r.name, e.because(res.Reason.Code))
	default:
		e.Err = ErrDeadline
		e.Message = fmt.Sprintf("%s: would not be granted within %v (%s)", r.name, inWords(wait), e.because(res.Reason.Behind))
		e.Hint = "allow more time, or try again then"
	}
	e.Hint = cmp.Or(hint, e.Hint)
	return e
}

// inWords rounds a wait to two digits: a deadline of 30 s is down to 29.999 s by the time it is shown.
func inWords(wait time.Duration) time.Duration {
	step := time.Microsecond
	for step*100 <= wait {
		step *= 10
	}
	return wait.Round(step)
}

// because returns the reason in words, and until when it lasts.
func (e *Error) because(code store.Code) string {
	s := e.words(code)
	if !e.RetryAt.IsZero() {
		s += ", until about " + e.RetryAt.Format(time.RFC3339)
	}
	return s
}

// words returns the reason in words.
func (e *Error) words(code store.Code) string {
	s := code.String()
	switch {
	case code >= store.CodeLight && code <= store.CodeBreaker: // there is room, but this class may not use it
		s += fmt.Sprintf(" on limit %q", e.Limit)
	case (code == store.CodeLimit || code == store.CodeOrder) && e.Limit != "":
		s = fmt.Sprintf("limit %q", e.Limit)
		if held := heldWords(e.HeldBy, e.open, e.HeldUntil); held != "" {
			s += ", " + held
		}
	case code == store.CodeOrder:
		s = "others are ahead"
	case code == store.CodeProbe:
		s = "one request tries first"
	case code == store.CodeRamp:
		s = "ramping up"
	case code == store.CodeStore:
		s = "the store cannot be reached, and this process's share has no room"
	}
	return s
}

func (r *resource) cancelled(req *Request, cause error) error {
	e := &Error{Err: ErrCancelled, Resource: r.name, Agent: req.Agent, cause: cause}
	e.Message = fmt.Sprintf("%s: %v while waiting", r.name, cause)
	return e
}

// failed converts an error of the store for a waiting caller, whose own context may have ended.
func (r *resource) failed(ctx context.Context, req *Request, err error) error {
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return r.cancelled(req, ended)
	}
	return r.storeError(err)
}

// overdue returns the error for a wait that is over, although the store expected it to be enough.
func (r *resource) overdue(req *Request) error {
	return &Error{
		Err: ErrDeadline, Resource: r.name, Agent: req.Agent, Reason: store.CodeDeadline.String(),
		Message: r.name + ": still waiting when the time for it was over",
	}
}

func (r *resource) storeError(err error) error {
	if errors.Is(err, store.ErrClosed) {
		return &Error{Err: ErrClosed, Resource: r.name, cause: err}
	}
	return &Error{Err: ErrStore, Resource: r.name, Message: fmt.Sprintf("%s: %v", r.name, err), cause: err}
}
