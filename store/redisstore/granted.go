package redisstore

import (
	"time"

	"github.com/sluicehq/sluice/internal/limitmap"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// ledger is what this process has been granted: tickets that are open, to say them again should the
// store lose its memory, and what those that are over have charged, to know what the process may use
// again when it is cut off. It costs a little with every operation, so it is no more exact than it
// has to be.
type granted struct {
	open   map[store.ID]*ticket
	sweep  int // how many open ones make it worth looking for those whose time is over
	single [store.MaxLimits]*charges
	scoped map[meterKey]*charges
	stated map[meterKey]int64 // sizes that answers have stated
}

// ticket is one that was granted, or waits.
type ticket struct {
	id                            store.ID
	agent, user, model, tool, key string
	class                         uint8
	tie                           store.Tie
	retry, emergency, once        bool                   // once: it is spent with its grant
	amounts                       [store.MaxLimits]int64 // by the pool's limits
	ttl                           time.Duration
	granted, answered, due        store.Time
	number                        int      // on the island
	instead                       store.ID // under which the store is told of it after an outage; 0: its own
}

// meterKey names a meter of a limit that many share.
type meterKey struct {
	limit      int
	model, key string
}

// charges are what requests that are over have charged to a meter, by the time of their grants.
type charges [perWindow]struct{ slice, amount, granted, bound int64 }

const (
	perWindow  = 64      // that a window is divided into
	maxOpen    = 1 << 17 // tickets that are remembered
	maxMeters  = 1024    // scoped ones
	sweepFirst = 1024
)

// limit is what the ledger needs to know of a limit.
type limit struct {
	meter.Def
	per     store.Scope
	size    int64
	burst   int64
	reset   int64
	guess   bool
	shared  bool
	lingers bool // what requests that are over have charged is worth remembering
}

func (l *granted) init() {
	*l = granted{open: map[store.ID]*ticket{}, sweep: sweepFirst, scoped: map[meterKey]*charges{}, stated: map[meterKey]int64{}}
}

// compile works out what the ledger needs to know of a pool's limits.
func compile(limits []store.Limit) (all [store.MaxLimits]limit) {
	for i := range limits[:min(len(limits), store.MaxLimits)] {
		l := &limits[i]
		d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
		if err != nil {
			continue // the pool has accepted it: this cannot be
		}
		d.Late = l.Late
		all[i] = limit{Def: d, per: l.Per, size: l.Size, burst: l.Burst, reset: int64(l.Reset), guess: l.SizeIsDefault, shared: l.Per&^store.Shared == 0}
		all[i].lingers = all[i].shared && (d.Kind == meter.Rolling || d.Kind == meter.Fixed) && d.Window <= policy.IslandWithin
	}
	return all
}

// keyOf names the meter of limit i that a ticket counts on.
func (l *limit) keyOf(i int, tk *ticket) meterKey {
	k := meterKey{limit: i}
	if l.per&store.PerModel != 0 {
		k.model = tk.model
	}
	if l.per&store.PerKey != 0 {
		k.key = tk.key
	}
	return k
}

func newTicket(op *store.Op, places limitmap.Map) *ticket {
	tk := &ticket{
		id: op.Result.ID, agent: op.Agent, user: op.User, model: op.Model, tool: op.Tool, key: op.Key,
		class: op.Class, tie: op.Tie, retry: op.Retry, emergency: op.Emergency, amounts: op.Amounts, ttl: op.TTL,
	}
	if places != nil {
		there := store.Op{Kind: op.Kind, Amounts: op.Amounts}
		places.Op(&there)
		tk.amounts = there.Amounts
	}
	return tk
}

// again is the acquire that says a ticket once more.
func (tk *ticket) again() store.Op {
	return store.Op{
		Kind: store.OpAcquire, ID: tk.id, Agent: tk.agent, User: tk.user, Model: tk.model, Tool: tk.tool, Key: tk.key,
		Class: tk.class, Tie: tk.tie, Retry: tk.retry, Emergency: tk.emergency, Amounts: tk.amounts, TTL: tk.ttl,
	}
}

// forced is again for one that is held, with the time that it has left.
func (tk *ticket) forced(now store.Time) store.Op {
	op := tk.again()
	op.Force, op.TTL = true, min(max(tk.due.Sub(now), time.Millisecond), store.MaxTTL)
	return op
}

// holdsLocked notes that a ticket was granted.
func (st *state) holdsLocked(tk *ticket, r *store.Result) {
	tk.granted, tk.due, tk.answered = r.GrantedAt, r.Now.Add(tk.ttl), 0
	tk.number = -1
	l := &st.ledger
	if len(l.open) >= l.sweep {
		for id, old := range l.open {
			if old.due < r.Now {
				delete(l.open, id)
			}
		}
		l.sweep = max(2*len(l.open), sweepFirst)
	}
	if len(l.open) < maxOpen {
		l.open[tk.id] = tk
	}
}

// spentLocked notes a ticket that has ended with its grant.
func (st *state) spentLocked(tk *ticket, r *store.Result) {
	tk.granted, tk.due = r.GrantedAt, r.Now.Add(tk.ttl)
	st.chargeLocked(tk, nil, r.Now, true)
}

func (l *granted) drop(id store.ID) { delete(l.open, id) }

// answeredLocked notes that an answer has begun, and what it says of sizes.
func (st *state) answeredLocked(op *store.Op, places limitmap.Map) {
	if tk := st.ledger.open[op.ID]; tk != nil && tk.answered == 0 && op.Result.State == store.Granted {
		tk.answered = op.Result.Now
	}
	st.learnSizes(op, places)
}

// learnSizes notes what an answer states: a process that is cut off has nothing else to go by where
// nobody has configured a size.
func (st *state) learnSizes(op *store.Op, places limitmap.Map) {
	if len(op.Observed) == 0 {
		return
	}
	tk := st.ledger.open[op.ID]
	if op.Kind == store.OpObserve {
		tk = &ticket{model: op.Model, key: op.Key}
	}
	if tk == nil {
		return
	}
	for _, o := range op.Observed {
		i := places.At(o.Limit)
		if i < 0 || i >= store.MaxLimits || o.Size <= 0 || o.Size > store.MaxAmount || !st.limits[i].shared {
			continue
		}
		k := st.limits[i].keyOf(i, tk)
		if _, known := st.ledger.stated[k]; known || len(st.ledger.stated) < maxMeters {
			st.ledger.stated[k] = o.Size
		}
	}
}

// closedLocked notes that a request is over. The operation has the pool's limits.
func (st *state) closedLocked(op *store.Op) {
	tk := st.ledger.open[op.ID]
	if tk == nil {
		return
	}
	st.ledger.drop(op.ID)
	st.chargeLocked(tk, &op.Amounts, op.Result.Now, op.Spent)
}

// chargeLocked notes what a request that is over has charged.
func (st *state) chargeLocked(tk *ticket, used *[store.MaxLimits]int64, now store.Time, spent bool) {
	settled := used != nil && *used != [store.MaxLimits]int64{} && (tk.answered != 0 || !spent)
	for i := range st.limits[:len(st.spec.Limits)] {
		l := &st.limits[i]
		amount := tk.amounts[i]
		if settled && used[i] >= 0 {
			amount = used[i]
		}
		if amount <= 0 || !l.lingers {
			continue
		}
		if c := st.ledger.chargesOf(l.keyOf(i, tk), l.per == 0); c != nil {
			c.add(max(l.Window/perWindow, 1), amount, int64(tk.granted), l.boundOf(tk, now, spent))
		}
	}
}

// boundOf returns by when a request that is over has arrived.
func (l *limit) boundOf(tk *ticket, now store.Time, spent bool) int64 {
	heard := tk.answered != 0 || !spent
	switch {
	case l.Guard == meter.Off:
		return int64(tk.granted)
	case l.Late && heard:
		return int64(min(now, tk.due))
	case l.Late, l.Guard == meter.Strict && tk.answered == 0:
		return int64(tk.due)
	case tk.answered != 0:
		return int64(min(tk.answered, tk.due))
	case heard:
		return min(int64(now), int64(tk.granted)+l.Most)
	}
	return int64(tk.granted) + l.Most
}

func (l *granted) chargesOf(k meterKey, single bool) *charges {
	if single {
		if l.single[k.limit] == nil {
			l.single[k.limit] = new(charges)
		}
		return l.single[k.limit]
	}
	c := l.scoped[k]
	if c == nil && len(l.scoped) < maxMeters {
		c = new(charges)
		l.scoped[k] = c
	}
	return c
}

// add adds what a request that was granted at a time has charged.
func (c *charges) add(width, amount, granted, bound int64) {
	slice := granted / width
	s := &c[slice%perWindow]
	if s.slice != slice {
		if s.slice > slice {
			return // it lived for more than a window
		}
		s.slice, s.amount, s.granted, s.bound = slice, 0, granted, bound
	}
	s.amount += amount
	s.granted, s.bound = min(s.granted, granted), max(s.bound, bound)
}

// standing returns what may still count at a time.
func (c *charges) standing(d *meter.Def, t int64) (list []policy.Lingering) {
	for i := range c {
		if s := &c[i]; s.amount > 0 && s.bound+2*d.Window > t {
			list = append(list, policy.Lingering{Amount: s.amount, Granted: s.granted, Bound: s.bound})
		}
	}
	return list
}

// remap moves what is noted to where limits are by now.
func (l *granted) remap(st *state, to []int) {
	move := func(tk *ticket) {
		was := tk.amounts
		tk.amounts = [store.MaxLimits]int64{}
		for i, at := range to {
			if at >= 0 {
				tk.amounts[at] = was[i]
			}
		}
	}
	for _, tk := range l.open {
		move(tk)
	}
	for _, w := range st.queue {
		move(w.tk)
	}
	if st.lost != nil {
		st.lost.each(move)
	}
	single, scoped, stated := l.single, l.scoped, l.stated
	l.single, l.scoped, l.stated = [store.MaxLimits]*charges{}, map[meterKey]*charges{}, map[meterKey]int64{}
	for i, at := range to {
		if at >= 0 {
			l.single[at] = single[i]
		}
	}
	for k, c := range scoped {
		if k.limit < len(to) && to[k.limit] >= 0 {
			k.limit = to[k.limit]
			l.scoped[k] = c
		}
	}
	for k, n := range stated {
		if k.limit < len(to) && to[k.limit] >= 0 {
			k.limit = to[k.limit]
			l.stated[k] = n
		}
	}
}
