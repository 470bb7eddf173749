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

// A budget that slows down has a pool next to its ledger, the pacer: one for each account and period. In that pool the
// budget is a quota that has to last until its reset. Requests of lower classes wait in the pacer's queue under the
// floors of the quota. Requests of the highest class are counted there and never wait. The ledger remains
// authoritative: the pacer decides when a request goes, the ledger whether it can be paid.
const (
	slowPool = "(slow) " // prefix of a pacer's pool; lists of pools leave it out

	// slowFrom is the floor of lower classes in percent of the budget, at the beginning of a period. It shrinks with
	// the time left. Below the floor, the rest is spread until the reset.
	slowFrom = 50
	// slowKept is the part that lower classes never get, in percent. The floors sink to zero at the reset: without this
	// part the highest class would find nothing left in the last minutes.
	slowKept = 1

	maxPacers = 1024 // accounts that a process can slow down at a time; clients choose the names
)

// pacers holds the open pacers of a gate.
type pacers struct {
	mu     sync.Mutex
	open   map[string]*pacer // by name of the pool
	queues []slowQueue       // as of read
	read   time.Time
}

// pacer is the pool that slows down one account of a budget in one period.
type pacer struct {
	*resource
	ends time.Time // end of the period, on the store's clock
	// checked is when the pool was last compared with the ledger, by our own clock. Guarded by pacers.mu.
	checked time.Time
}

// errNewPeriod means that a budget started a new period while a request waited for it.
var errNewPeriod = errors.New("the budget started a new period")

// slows reports whether any budget slows down.
func (b *budgets) slows() bool {
	return b != nil && slices.ContainsFunc(b.list, func(x Budget) bool { return x.Over == OverSlow })
}

// slowName returns the name of an account's pool. The owner appears in it as a hash, because names can be long and
// private.
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
			_ = p.close() // nothing waits there or will be settled any more
		}
		return old
	})
	if len(s.open) >= maxPacers {
		return nil, nil
	}
	g := b.gate
	size := max(pot.Size-pot.Size/100*slowKept, 1)
	spec, err := g.settings.spec(name, Resource{
		Light: Light{Green: slowFrom}, Breaker: Breaker{Off: true},
		Limits: []Limit{{Name: pot.Budget, Kind: Fixed, Unit: USD, Size: size, Window: pot.Period.End.Sub(pot.Period.Start), Reset: pot.Period.End}},
	})
	if err != nil {
		return nil, err
	}
	spec.Limits[0].Guard = store.GuardOff // we count ourselves, so nothing arrives late
	p := &pacer{resource: &resource{name: name, settings: g.settings, limits: spec.Limits, ttl: store.MaxTTL}, ends: pot.Period.End}
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

// isHighest reports whether a request is of the highest class, which is never slowed.
func (p *settings) isHighest(req *Request) bool {
	if req.Class != "" {
		return req.Class == p.classes[0].Name
	}
	return p.agent(req.Agent).class == 0
}

// slowed records on a ticket how long budgets slowed it down.
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

// slowOrder returns the lines of a bill whose budgets slow down, those shared by the fewest first. A request holds what
// it took from one budget while it waits for the next: this order blocks as few other requests as possible.
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

// slowDown waits until all budgets that slow down let a request go. It returns what it has taken from them, which must
// be settled or given back.
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
		ask := p.asks(r, req, charge(estimate))
		if r.settings.isHighest(req) {
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

// asks returns the pacer's part of a request. Its model is the name of the resource, so that it can be listed in the
// resource's queue.
func (p *pacer) asks(r *resource, req *Request, micros int64) Request {
	return Request{
		Resource: p.name, Agent: req.Agent, Class: req.Class, User: req.User, Model: r.name, Detached: req.Detached, Retry: req.Retry, TTL: store.MaxTTL,
		Cost: []Amount{{USD, micros}},
	}
}

// count takes the amount without waiting, even if nothing is left.
func (p *pacer) count(ctx context.Context, ask *Request, pass *Ticket) error {
	ops := [1]store.Op{{Kind: store.OpAcquire, Force: true}}
	if err := p.fill(&ops[0], ask); err != nil {
		return err
	}
	if err := p.apply(ctx, ops[:]); err != nil {
		return p.failed(ctx, ask, err)
	}
	if ops[0].Result.State != store.Granted {
		return p.refused(ctx, ask, 0, &ops[0])
	}
	pass.set(p.resource, &ops[0].Result)
	pass.hold(ask)
	return nil
}

// slowed converts the pacer's error into one of the resource.
func (b *budgets) slowed(ctx context.Context, r *resource, x *bill, i int, req *Request, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Resource, e.Agent, e.HeldBy, e.HeldUntil = r.name, req.Agent, nil, time.Time{}
	switch {
	case errors.Is(e, ErrCancelled):
		e.Message = fmt.Sprintf("%s: %v while slowed by budget %q", r.name, e.cause, x.budgets[i].Name)
	case errors.Is(e, ErrNotNow), errors.Is(e, ErrDeadline), errors.Is(e, ErrFull):
		used := b.usedNow(ctx, x, i)
		e.Limit, e.Reason, e.used, e.size = x.budgets[i].Name, store.CodeSlowed.String(), used, x.budgets[i].Micros
		e.why = fmt.Sprintf("slowed by budget %q", e.Limit)
		e.Message = fmt.Sprintf("%s: slowed by budget %q%s: %s of %s usd spent, and the rest has to last", r.name, e.Limit, whose(x.budgets[i], x.lines[i].Who), usdText(used), usdText(e.size))
		if at := b.resetsAt(&x.lines[i]); at != nil {
			e.Message += " until " + at.Format(time.RFC3339)
		}
		if !e.RetryAt.IsZero() {
			e.Message += ", next about " + e.RetryAt.Format(time.RFC3339)
		}
		e.Hint = "allow more time, raise the budget, or ask as " + r.settings.classes[0].Name + ", which is never slowed"
	}
	return e
}

// giveBackAll gives back what was taken from pacers.
func giveBackAll(passes []Ticket) {
	for i := range passes {
		passes[i].giveBack()
	}
}

// settlePasses enters the actual cost of a request in the pacers. If that fails, the estimate stands.
func settlePasses(passes []Ticket, e *lateEntry) {
	for _, pass := range passes {
		switch {
		case e.cancel || e.actual == 0: // to the store, an amount of 0 means unknown
			_ = pass.cancel()
		case e.actual < 0:
			_ = pass.end(false, nil)
		default:
			_ = pass.end(false, []Amount{{USD, e.actual}})
		}
	}
}

// How often a pacer is compared with the ledger, and how far it may be behind, in percent of the budget. It is behind
// if its pool was lost, or if the ledger has entries that the pacer never saw.
const (
	checkEvery = 30 * time.Second
	behindBy   = 1
)

// catchUp updates a pacer from the ledger if it is too far behind.
func (b *budgets) catchUp(ctx context.Context, p *pacer, l *ledger.Account) {
	b.slow.mu.Lock()
	due := p.checked.IsZero() || time.Since(p.checked) >= checkEvery
	if due {
		p.checked = time.Now()
	}
	b.slow.mu.Unlock()
	if !due || p.settings.readOnly {
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
	op := store.Op{Kind: store.OpObserve, Agent: "(budget)", Observed: []store.Observed{{Limit: p.limits[0].Name, Size: size, Remaining: max(size-used, 0), ResetIn: -1}}}
	_ = p.order(ctx, &op) // tried again later
}

// slowQueue is the queue of a pacer.
type slowQueue struct {
	budget  *Budget
	who     string
	snap    store.Snapshot
	slowing bool
}

// queuesFor is how long the queues read are valid. maxQueues bounds the accounts that are read.
const (
	queuesFor = 200 * time.Millisecond
	maxQueues = 64
)

// slowQueues reads the queues of all pacers. It leaves out those it cannot read.
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

// slowing reports whether an account is slowed, and how many requests wait for it, by class.
func (b *budgets) slowing(queues []slowQueue, budget *Budget, who string) (bool, map[string]int) {
	waiting := map[string]int{}
	for i := range queues {
		q := &queues[i]
		if q.budget != budget || q.who != who {
			continue
		}
		for class, n := range q.snap.Waiting {
			if n > 0 {
				waiting[b.gate.settings.className(class)] = n
			}
		}
		return q.slowing, waiting
	}
	return false, waiting
}

// addSlowed adds the requests that budgets slow down to the queue of their resource.
func (r *resource) addSlowed(ctx context.Context, snap *store.Snapshot) {
	for _, q := range r.budgets.slowQueues(ctx) {
		for _, w := range q.snap.Queue {
			if w.Model != r.name {
				continue
			}
			ahead := q.snap.Now.Sub(snap.Now)
			w.Model, w.Position = "", len(snap.Queue)+1
			w.Reason = store.Reason{Code: store.CodeSlowed, At: w.Reason.At}
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

// A ticket's id carries the tickets of pacers after its receipt: RECEIPT,HASH.WHO.SESSION.N
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
	_, _ = h.Write([]byte(name)) // never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// cutPasses is the inverse of joinPasses. It leaves out tickets of unknown pacers: their estimate stands.
func (b *budgets) cutPasses(rest string) (passes []Ticket) {
	if rest == "" || !b.slows() {
		return nil
	}
	ctx := context.Background()
	now, err := b.now(ctx)
	if err != nil {
		return nil
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
	return passes
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
