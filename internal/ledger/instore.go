package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// InStore is a ledger in a shared store: one pool for each budget and period. The account's owner is stored as the
// key, because the reset of a limit per key can be moved, which totals need.
type InStore struct {
	store store.Store
	look  bool
	pots  func(now time.Time) []Pot // all possible pots, to find receipts of other processes

	mu     sync.Mutex
	closed bool
	pools  map[string]*potPool
}

// potPool is the pool of a pot.
type potPool struct {
	store.Pool
	pot   Pot
	ended time.Time // when nothing can be settled in it any more; zero: never

	mu    sync.Mutex
	moved map[string]time.Time // when the reset of a total's accounts was last moved
}

// NewInStore returns a ledger in a store. pots lists every pot whose receipts may be used at a time.
func NewInStore(s store.Store, look bool, pots func(now time.Time) []Pot) *InStore {
	return &InStore{store: s, look: look, pots: pots, pools: map[string]*potPool{}}
}

// The limits of a pool.
const (
	money = "usd"  // the amount spent
	told  = "told" // of size 1: the owner was told
)

// Windows are longer than the period, by at least the life of a ticket, so that late settlements still count. The
// first process that opens the pool sets its reset.
const (
	dayWindow   = 3 * 24 * time.Hour
	monthWindow = 35 * 24 * time.Hour
	totalWindow = store.MaxWindow
	// A total's reset is moved away again and again, so that it never comes.
	totalAhead = 2*totalWindow - 10*24*time.Hour
	moveEvery  = 30 * time.Second // stores keep empty accounts for longer than that
)

func (p *Pot) poolName() string { return "(budget) " + p.Budget + " " + p.Period.Name }

func (p *Pot) spec(look bool) store.Spec {
	l := store.Limit{Name: money, Kind: store.Fixed, Unit: "usd", Size: p.Size, Guard: store.GuardOff, Estimated: true, Window: totalWindow}
	switch p.Period.Length {
	case Day:
		l.Window = dayWindow
	case Month:
		l.Window = monthWindow
	}
	l.Reset = store.Time(p.Period.Start.Add(l.Window).UnixMicro())
	if p.Period.Length == Total {
		l.Reset = store.Time(l.Window.Microseconds()) // any value: the first take moves it
	}
	if p.Each {
		l.Per = store.PerKey
	}
	once := l
	once.Name, once.Unit, once.Size = told, told, 1
	pause := store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}
	return store.Spec{
		Name: p.poolName(), Limits: []store.Limit{l, once}, Classes: []store.Class{{Name: "all", Weight: 1}},
		MaxWaiting: 1, Throttle: pause, Overload: pause, Lease: -1, OneShot: true, ReadOnly: look, OnFailure: store.FailClosed,
		Member: "budgets",
	}
}

// pool opens the pool of a pot.
func (s *InStore) pool(ctx context.Context, pot *Pot, now time.Time) (*potPool, error) {
	name := pot.poolName()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	if p := s.pools[name]; p != nil {
		return p, nil
	}
	for old, p := range s.pools {
		if !p.ended.IsZero() && now.After(p.ended) {
			_ = p.Close() // nothing waits there
			delete(s.pools, old)
		}
	}
	opened, err := s.store.Pool(ctx, pot.spec(s.look))
	if err != nil {
		return nil, fmt.Errorf("budget %q: %w", pot.Budget, err)
	}
	p := &potPool{Pool: opened, pot: *pot, moved: map[string]time.Time{}}
	if pot.Period.Length != Total {
		p.ended = pot.Period.End.Add(store.MaxTTL)
	}
	s.pools[name] = p
	return p, nil
}

// Take implements [Ledger].
func (s *InStore) Take(ctx context.Context, o Order) (Taken, error) {
	t := Taken{Full: -1}
	if err := o.valid(); err != nil {
		return t, err
	}
	var parts []string
	back := func() { // give back what was taken, even if ctx is cancelled
		for _, r := range parts {
			_ = s.end(context.WithoutCancel(ctx), r, o.Now, store.Op{Kind: store.OpCancel})
		}
	}
	for i := range o.Lines {
		l := &o.Lines[i]
		p, err := s.pool(ctx, &l.Pot, o.Now)
		var res store.Result
		if err == nil {
			res, err = p.take(ctx, l, &o, false)
		}
		if err == nil && res.State == store.Refused && l.Force {
			t.Over = append(t.Over, i)
			res, err = p.take(ctx, l, &o, true)
		}
		switch {
		case err != nil:
			back()
			return Taken{Full: -1}, err
		case res.State == store.Granted:
			parts = append(parts, receiptOf(p.pot.poolName(), res.ID))
			continue
		case res.Reason.Code == store.CodeInvalid:
			back()
			return Taken{Full: -1}, fmt.Errorf("budget %q: the store refuses to count it", l.Budget)
		}
		back()
		return Taken{Full: i}, nil
	}
	t.Receipt = strings.Join(parts, "_")
	return t, nil
}

// take asks for money, without waiting.
func (p *potPool) take(ctx context.Context, l *Account, o *Order, force bool) (store.Result, error) {
	op := p.ask(l)
	op.Amounts = []store.Amount{{Limit: money, N: o.Amount}}
	op.TTL, op.Force = min(max(o.TTL, time.Second)+lateBy, store.MaxTTL), force
	ops := []store.Op{op}
	if p.pot.Period.Length == Total && p.mustMove(op.Key, o.Now) {
		ops = append(ops, store.Op{Kind: store.OpObserve, Agent: op.Agent, Key: op.Key, Observed: []store.Observed{
			far(money), far(told),
		}})
	}
	if err := p.Apply(ctx, ops); err != nil {
		p.notMoved(op.Key)
		return store.Result{}, err
	}
	return ops[0].Result, nil
}

// far states that a window resets a long time from now.
func far(limit string) store.Observed {
	return store.Observed{Limit: limit, Size: -1, Remaining: -1, ResetIn: totalAhead, Slop: time.Second}
}

// ask returns an operation on a line's account.
func (p *potPool) ask(l *Account) store.Op {
	op := store.Op{Kind: store.OpAcquire, Agent: "(budget)", TTL: time.Hour}
	if p.pot.Each {
		if op.Key = l.Who; len(op.Key) > maxName {
			op.Key = others
		}
	}
	return op
}

// mustMove reports whether the reset of an account has not been moved for a while.
func (p *potPool) mustMove(who string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.moved[who]; ok && now.Sub(at) < moveEvery {
		return false
	}
	if len(p.moved) >= maxAccounts {
		clear(p.moved) // moving it once more does no harm
	}
	p.moved[who] = now
	return true
}

func (p *potPool) notMoved(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.moved, who)
}

// Settle implements [Ledger].
func (s *InStore) Settle(ctx context.Context, receipt string, actual int64, now time.Time) error {
	op := store.Op{Kind: store.OpClose}
	if actual >= 0 { // a store takes more than eight times a limit for a mistake, and counts no more than that
		op.Amounts = []store.Amount{{Limit: money, N: min(actual, MaxMicros)}}
	}
	return s.endAll(ctx, receipt, now, op)
}

// Cancel implements [Ledger].
func (s *InStore) Cancel(ctx context.Context, receipt string, now time.Time) error {
	return s.endAll(ctx, receipt, now, store.Op{Kind: store.OpCancel})
}

// endAll ends all reservations of a receipt.
func (s *InStore) endAll(ctx context.Context, receipt string, now time.Time, op store.Op) error {
	var errs []error
	for part := range strings.SplitSeq(receipt, "_") {
		if part != "" {
			errs = append(errs, s.end(ctx, part, now, op))
		}
	}
	return errors.Join(errs...)
}

// end ends one reservation.
func (s *InStore) end(ctx context.Context, part string, now time.Time, op store.Op) error {
	hash, id, ok := parseReceipt(part)
	if !ok {
		return fmt.Errorf("%.40q is no receipt of a budget", part)
	}
	p, err := s.find(ctx, hash, now)
	if p == nil || err != nil {
		return err
	}
	op.ID = id
	return p.Apply(ctx, []store.Op{op})
}

// find returns the pool that a receipt names, or nil if its budget is not known here.
func (s *InStore) find(ctx context.Context, hash string, now time.Time) (*potPool, error) {
	s.mu.Lock()
	for name, p := range s.pools {
		if hashOf(name) == hash {
			s.mu.Unlock()
			return p, nil
		}
	}
	s.mu.Unlock()
	for _, pot := range s.pots(now) {
		if hashOf(pot.poolName()) == hash {
			return s.pool(ctx, &pot, now)
		}
	}
	return nil, nil
}

// Tell implements [Ledger]: the limit told grants only one notice.
func (s *InStore) Tell(ctx context.Context, l Account, now time.Time) (bool, error) {
	p, err := s.pool(ctx, &l.Pot, now)
	if err != nil {
		return false, err
	}
	op := p.ask(&l)
	op.Amounts, op.Spent = []store.Amount{{Limit: told, N: 1}}, true
	ops := []store.Op{op}
	err = p.Apply(ctx, ops)
	return err == nil && ops[0].Result.State == store.Granted, err
}

// Read implements [Ledger].
func (s *InStore) Read(ctx context.Context, pots []Pot) ([]Balance, error) {
	var list []Balance
	for _, pot := range pots {
		p, err := s.pool(ctx, &pot, pot.Period.Start)
		if err != nil {
			return list, err
		}
		snap, err := p.Snapshot(ctx)
		if err != nil {
			return list, err
		}
		for _, l := range snap.Limits {
			if l.Limit == money && l.Used > 0 {
				list = append(list, Balance{pot, strings.TrimPrefix(l.Scope, "key="), l.Used})
			}
		}
	}
	sortBalances(list)
	return list, nil
}

// Close implements [Ledger]. It does not close the store.
func (s *InStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, p := range s.pools {
		errs = append(errs, p.Close())
	}
	s.pools = nil
	return errors.Join(errs...)
}

// receiptOf returns the receipt for one pot: HASH-SESSION-N. An order's receipt joins them with underscores.
func receiptOf(pool string, id store.ID) string {
	return fmt.Sprintf("%s-%x-%x", hashOf(pool), id.Session, id.N)
}

func parseReceipt(s string) (hash string, id store.ID, ok bool) {
	parts := strings.Split(s, "-")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return "", id, false
	}
	session, err := strconv.ParseUint(parts[1], 16, 64)
	n, err2 := strconv.ParseUint(parts[2], 16, 64)
	return parts[0], store.ID{Session: session, N: n}, err == nil && err2 == nil && n > 0
}

func hashOf(pool string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(pool)) // it never fails
	return strconv.FormatUint(h.Sum64(), 36)
}
