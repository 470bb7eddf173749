package sluice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
)

// A budget that slows down has a pool beside its books, the pacer: one for each account and period. There the budget is a quota that has to last
// until its reset. Requests of lower classes wait in the pacer's queue under the floors of a quota. Requests of the highest class are
// counted there and never wait. The books stay the truth: the pacer decides when a request goes, the books whether it can be paid.
const (
	slowPool = "(slow) " // begins the name of a pacer's pool; lists of pools leave it out

	// slowFrom is the floor of lower classes in percent: with that much left at the beginning of a period, and less in proportion
	// later, what is left is spread until the reset.
	slowFrom = 50
	// slowKept is the part that lower classes never get, in percent. The floors sink to nothing at the reset. Without this the highest class
	// would find nothing in the last minutes.
	slowKept = 1

	maxPacers = 1024 // accounts that a process slows down at a time; names come from outside
)

// pacers are the pacers that a gate has opened.
type pacers struct {
	mu     sync.Mutex
	open   map[string]*pacer // by pool
	queues []slowQueue       // as they were at read
	read   time.Time
}

// pacer is the pool that slows down one account of a budget in one period.
type pacer struct {
	*resource
	ends time.Time // of the period, on the store's clock
	// checked is when the pool was last compared with the books, on our own clock, guarded by pacers.mu.
	checked time.Time
}

// errNewPeriod: a budget began anew while a request waited for it.
var errNewPeriod = errors.New("the budget began anew")

// slows reports that some budget slows down.
func (b *budgets) slows() bool {
	return b != nil && slices.ContainsFunc(b.list, func(x Budget) bool { return x.Over == OverSlow })
}

// slowName names the pacer of an account. Whose it is stands there as a hash: names are long, and other people's.
func slowName(pot *ledger.Pot, of string) string {
	name := slowPool + pot.Budget + " " + pot.Period.Name
	if pot.Each {
		name += " " + of
	}
	return name
}

func hashWho(who string) string {
	sum := sha256.Sum256([]byte(who))
	return hex.EncodeToString(sum[:8])
}

// pacer opens the pacer of an account. It returns nil if too many are open.
func (b *budgets) pacer(ctx context.Context, pot *ledger.Pot, of string) (*pacer, error) {
	name := slowName(pot, of)
	s := &b.slow
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.open[name]; p != nil {
		return p, nil
	}
	if b.isShut() {
		return nil, &Error{Err: ErrClosed}
	}
	maps.DeleteFunc(s.open, func(_ string, p *pacer) bool {
		old := p.pool.Now().Std().After(p.ends.Add(store.MaxTTL))
		if old {
			_ = p.close() // nothing waits there, and nothing is settled any more
		}
		return old
	})
	if len(s.open) >= maxPacers {
		return nil, nil
	}
	g := b.gate
	size := max(pot.Size-pot.Size/100*slowKept, 1)
	spec, err := g.plan.spec(name, Resource{
		Light: Light{Green: slowFrom}, Breaker: Breaker{Off: true},
		Limits: []Limit{{Name: pot.Budget, Kind: Fixed, Unit: USD, Size: size, Window: pot.Period.End.Sub(pot.Period.Start), Reset: pot.Period.End}},
	})
	if err != nil {
		return nil, err
	}
	spec.Limits[0].Guard = store.GuardOff // we count, so nothing arrives late
	p := &pacer{resource: &resource{name: name, plan: g.plan, limits: spec.Limits, ttl: store.MaxTTL}, ends: pot.Period.End}
	if err := g.connect(ctx, p.resource, spec); err != nil {
		return nil, p.storeError(err)
	}
	p.events, p.budgets, p.price, p.plain = nil, nil, nil, true
	if s.open == nil {
		s.open = map[string]*pacer{}
	}
	s.open[name] = p
	return p, nil
}

func (b *budgets) isShut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shut
}

// isHighest reports a request of the highest class, which is never slowed.
func (p *plan) isHighest(req *Request) bool {
	if req.Class != "" {
		return req.Class == p.classes[0].Name
	}
	return p.agent(req.Agent).class == 0
}

// slowDownUnlessObserved is slowDown, except in the mode observe, which holds no request.
func (b *budgets) slowDownUnlessObserved(ctx context.Context, r *resource, x *bill, req *Request, estimate int64, wait time.Duration) ([]Ticket, error) {
	if r.observe {
		return nil, nil
	}
	return b.slowDown(ctx, r, x, req, estimate, wait)
}

// slowed notes on a ticket how long budgets slowed it down.
func (t *Ticket) slowed(passes []Ticket) {
	var longest time.Duration
	for i := range passes {
		t.waited += passes[i].waited
		if passes[i].waited > longest {
			longest = passes[i].waited
			if t.note == nil {
				t.note = &note{}
			}
			t.note.slowedBy = passes[i].resource.limits[0].Name
		}
	}
}

// slowOrder lists the lines of a bill whose budgets slow down: the accounts of fewest first. What a request has got of one it
// holds while it waits for the next, and that is to be in the way of as few others as possible.
func (x *bill) slowOrder() (list []int) {
	for i, budget := range x.budgets {
		if budget.Over == OverSlow {
			list = append(list, i)
		}
	}
	narrow := map[string]int{BudgetAgent: 0, BudgetUser: 1, BudgetFleet: 2}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(narrow[x.budgets[i].Per], narrow[x.budgets[j].Per]) })
	return list
}

// slowDown waits until a request may go as far as the budgets are concerned that slow down. It returns what it has taken
// of them, which must be settled or given back, and how long it waited.
func (b *budgets) slowDown(ctx context.Context, r *resource, x *bill, req *Request, estimate int64, wait time.Duration) (passes []Ticket, err error) {
	until := time.Now().Add(wait)
	for _, i := range x.slowOrder() {
		left := wait
		if wait > 0 {
			left = max(time.Until(until), 1)
		}
		pass, err := b.slowOne(ctx, r, x, i, req, estimate, left)
		if err != nil {
			giveBackAll(passes)
			return nil, err
		}
		if pass.resource != nil {
			passes = append(passes, pass)
		}
	}
	if len(passes) == 0 {
		return nil, nil
	}
	now, err := b.now(ctx)
	if err != nil {
		now = x.now
	}
	for i := range x.lines {
		if end := x.lines[i].Period.End; !end.IsZero() && !now.Before(end) {
			giveBackAll(passes)
			return nil, errNewPeriod
		}
	}
	return passes, nil
}

// slowOne is slowDown for one line.
func (b *budgets) slowOne(ctx context.Context, r *resource, x *bill, i int, req *Request, estimate int64, wait time.Duration) (pass Ticket, err error) {
	l := &x.lines[i]
	p, err := b.pacer(ctx, &l.Pot, hashWho(l.Who))
	if err == nil && p == nil {
		return pass, nil
	}
	if err == nil {
		b.catchUp(ctx, p, l)
		// The model says which resource it is for: a list of those who wait shows it there.
		ask := Request{
			Resource: p.name, Agent: req.Agent, Class: req.Class, User: req.User, Model: r.name, Detached: req.Detached, Retry: req.Retry, TTL: store.MaxTTL,
			Cost: []Amount{{USD, min(max(estimate, 1), ledger.MaxMicros)}},
		}
		if r.plan.isHighest(req) {
			err = p.count(ctx, &ask, &pass)
		} else {
			err = p.await(ctx, &ask, wait, &pass)
		}
	}
	switch {
	case err == nil:
		return pass, nil
	case errors.Is(err, ErrStore) && b.goesOn && ctx.Err() == nil:
		return Ticket{}, nil // it is entered later, and slows others then
	case errors.Is(err, ErrCapacity):
		return Ticket{}, b.refusal(r, x, i, req, b.usedNow(ctx, x, i), estimate)
	}
	return Ticket{}, b.slowed(ctx, r, x, i, req, err)
}

// count takes without waiting, whatever is left.
func (p *pacer) count(ctx context.Context, ask *Request, pass *Ticket) error {
	ops := [1]store.Op{{Kind: store.OpAcquire, Force: true}}
	if err := p.fill(&ops[0], ask); err != nil {
		return err
	}
	if err := p.apply(ctx, ops[:]); err != nil {
		return p.failed(ctx, ask, err)
	}
	if ops[0].Result.State != store.Granted {
		return p.refused(ask, 0, &ops[0].Result)
	}
	pass.set(p.resource, &ops[0].Result)
	pass.hold(ask)
	return nil
}

// slowed turns the pacer's refusal into one of the resource.
func (b *budgets) slowed(ctx context.Context, r *resource, x *bill, i int, req *Request, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Resource, e.Agent = r.name, req.Agent
	switch {
	case errors.Is(e, ErrCancelled):
		e.Message = fmt.Sprintf("%s: %v while slowed by budget %q", r.name, e.cause, x.budgets[i].Name)
	case errors.Is(e, ErrNotNow), errors.Is(e, ErrDeadline), errors.Is(e, ErrFull):
		used := b.usedNow(ctx, x, i)
		e.Limit, e.Reason, e.used, e.size = x.budgets[i].Name, store.CodeSlowed.String(), used, x.budgets[i].Micros
		e.Message = fmt.Sprintf("%s: slowed by budget %q%s: %s of %s usd spent, and the rest has to last", r.name, e.Limit, whose(x.budgets[i], x.lines[i].Who), usdText(used), usdText(e.size))
		if at := b.resetsAt(&x.lines[i]); at != nil {
			e.Message += " until " + at.Format(time.RFC3339)
		}
		if !e.RetryAt.IsZero() {
			e.Message += ", next about " + e.RetryAt.Format(time.RFC3339)
		}
		e.Hint = "allow more time, raise the budget, or ask as " + r.plan.classes[0].Name + ", which is never slowed"
	}
	return e
}

// giveBackAll gives back what was taken of pacers.
func giveBackAll(passes []Ticket) {
	for i := range passes {
		passes[i].giveBack()
	}
}

// settlePasses says in the pacers what a request did cost. If this fails, its estimate stands there.
func settlePasses(passes []Ticket, e *lateEntry) {
	for _, pass := range passes {
		switch {
		case e.cancel || e.actual == 0: // to the store, nothing means that nothing is known
			_ = pass.cancel()
		case e.actual < 0:
			_ = pass.end(false, nil)
		default:
			_ = pass.end(false, []Amount{{USD, e.actual}})
		}
	}
}

// How often a pacer is compared with the books, and what part of the budget it may be behind, in percent. It is behind if its
// pool was lost, or if requests were entered that it has not seen.
const (
	checkEvery = 30 * time.Second
	behindBy   = 1
)

// catchUp tells a pacer what the books say, if it knows of much less.
func (b *budgets) catchUp(ctx context.Context, p *pacer, l *ledger.Account) {
	b.slow.mu.Lock()
	due := p.checked.IsZero() || time.Since(p.checked) >= checkEvery
	if due {
		p.checked = time.Now()
	}
	b.slow.mu.Unlock()
	if !due || p.plan.look {
		return
	}
	snap, err := p.read(ctx)
	if err != nil {
		return
	}
	balances, err := b.books.Read(ctx, []ledger.Pot{l.Pot})
	if err != nil {
		return
	}
	var used int64
	for _, balance := range balances {
		if balance.Who == l.Who || !l.Each {
			used = balance.Used
		}
	}
	var known int64
	for _, limit := range snap.Limits {
		known = limit.Used
	}
	if used <= known+l.Size/100*behindBy {
		return
	}
	size := p.limits[0].Size
	op := store.Op{Kind: store.OpObserve, Agent: "(budget)", Observed: []store.Observed{{Limit: 0, Size: size, Remaining: max(size-used, 0), ResetIn: -1}}}
	_ = p.order(ctx, &op) // it is tried again
}

// slowQueue is the queue of a pacer.
type slowQueue struct {
	budget  *Budget
	who     string
	snap    store.Snapshot
	slowing bool
}

// queuesFor is how long a look at the queues serves, and maxQueues how many accounts it reads.
const (
	queuesFor = 200 * time.Millisecond
	maxQueues = 64
)

// slowQueues reads what waits because of budgets. What cannot be read is left out.
func (b *budgets) slowQueues(ctx context.Context) []slowQueue {
	if !b.slows() {
		return nil
	}
	s := &b.slow
	s.mu.Lock()
	if !s.read.IsZero() && time.Since(s.read) < queuesFor {
		defer s.mu.Unlock()
		return s.queues
	}
	s.mu.Unlock()
	now, err := b.now(ctx)
	if err != nil {
		return nil
	}
	var list []slowQueue
	for i := range b.list {
		budget := &b.list[i]
		if budget.Over != OverSlow {
			continue
		}
		pot := budget.pot(now)
		balances, err := b.books.Read(ctx, []ledger.Pot{pot})
		if err != nil {
			continue
		}
		for _, balance := range balances {
			if len(list) >= maxQueues {
				break
			}
			p, err := b.pacer(ctx, &pot, hashWho(balance.Who))
			if p == nil || err != nil {
				continue
			}
			if snap, err := p.read(ctx); err == nil {
				slowing := len(snap.Queue) > 0 || slices.ContainsFunc(snap.Limits, func(l store.LimitState) bool { return l.Light != store.Green || l.Remaining <= 0 })
				list = append(list, slowQueue{budget, balance.Who, snap, slowing})
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues, s.read = list, time.Now()
	return list
}

// slowing says whether an account is slowed, and how many wait, by class.
func (b *budgets) slowing(queues []slowQueue, budget *Budget, who string) (bool, map[string]int) {
	waiting := map[string]int{}
	for i := range queues {
		q := &queues[i]
		if q.budget != budget || q.who != who {
			continue
		}
		for class, n := range q.snap.Waiting {
			if n > 0 {
				waiting[b.gate.plan.className(class)] = n
			}
		}
		return q.slowing, waiting
	}
	return false, waiting
}

// addSlowed adds to what waits for a resource what budgets slow down.
func (r *resource) addSlowed(ctx context.Context, snap *store.Snapshot) {
	for _, q := range r.budgets.slowQueues(ctx) {
		for _, w := range q.snap.Queue {
			if w.Model != r.name {
				continue
			}
			ahead := q.snap.Now.Sub(snap.Now)
			w.Model, w.Position = "", len(snap.Queue)+1
			w.Reason = store.Reason{Code: store.CodeSlowed, Limit: -1, At: w.Reason.At}
			w.HeldBy = append([]string{q.budget.Name}, w.HeldBy...)
			if w.Since = w.Since.Add(-ahead); w.Expected != 0 {
				w.Expected = w.Expected.Add(-ahead)
			}
			for len(snap.Waiting) <= w.Class {
				snap.Waiting = append(snap.Waiting, 0)
			}
			snap.Waiting[w.Class]++
			snap.Queue = append(snap.Queue, w)
		}
	}
}

// A ticket's id carries what was taken of pacers after its receipt: RECEIPT,HASH.WHO.SESSION.N
const passSep = ","

func joinPasses(receipt string, passes []Ticket) string {
	for _, pass := range passes {
		base, of := pass.resource.name, ""
		if i := strings.LastIndexByte(base, ' '); i >= 0 && isWho(base[i+1:]) {
			base, of = base[:i], base[i+1:]
		}
		receipt += fmt.Sprintf("%s%s.%s.%x.%x", passSep, hashName(base), of, pass.id.Session, pass.id.N)
	}
	return receipt
}

func isWho(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 16
}

func hashName(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// cutPasses undoes joinPasses. What it does not know is left out: the estimate stands there.
func (b *budgets) cutPasses(text string) (receipt string, passes []Ticket) {
	receipt, rest, _ := strings.Cut(text, passSep)
	if rest == "" {
		return receipt, nil
	}
	ctx := context.Background()
	now, err := b.now(ctx)
	if err != nil {
		return receipt, nil
	}
	for part := range strings.SplitSeq(rest, passSep) {
		fields := strings.Split(part, ".")
		if len(fields) != 4 {
			continue
		}
		session, err := strconv.ParseUint(fields[2], 16, 64)
		n, err2 := strconv.ParseUint(fields[3], 16, 64)
		if err != nil || err2 != nil || n == 0 || fields[1] != "" && !isWho(fields[1]) {
			continue
		}
		for _, pot := range b.pots(now) {
			if hashName(slowPool+pot.Budget+" "+pot.Period.Name) != fields[0] || pot.Each == (fields[1] == "") {
				continue
			}
			if p, err := b.pacer(ctx, &pot, fields[1]); p != nil && err == nil {
				passes = append(passes, Ticket{resource: p.resource, id: store.ID{Session: session, N: n}})
			}
		}
	}
	return receipt, passes
}

func (s *pacers) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.open {
		errs = append(errs, p.close())
	}
	s.open = nil
	return errors.Join(errs...)
}
