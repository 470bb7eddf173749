package outage

import (
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// granted records what this process has been granted. Open tickets are stated again if the store loses data. Charges of
// closed tickets tell how much of its share the process may use in an outage. Every operation pays for these records,
// so they are no more exact than necessary.
type granted struct {
	open   map[store.ID]*ticket
	sweep  int // hold looks for expired tickets when this many are open
	single [store.MaxLimits]*charges
	scoped map[meterKey]*charges
	stated map[meterKey]int64 // sizes that responses have stated
}

// charges are what closed requests have charged to a meter, in slices by the time of their grants.
type charges [perWindow]struct{ slice, amount, granted, bound int64 }

const (
	perWindow  = 64      // slices
	maxOpen    = 1 << 17 // open tickets
	maxMeters  = 1024    // meters of scoped limits
	sweepFirst = 1024
)

func newGranted() granted {
	return granted{open: map[store.ID]*ticket{}, sweep: sweepFirst, scoped: map[meterKey]*charges{}, stated: map[meterKey]int64{}}
}

// hold records that a ticket was granted.
func (l *granted) hold(tk *ticket, r *store.Result) {
	tk.granted, tk.due, tk.answered, tk.number = r.GrantedAt, r.Now.Add(tk.ttl), 0, -1
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

// answered records that a response has begun, and the sizes that it states.
func (p *Process) answered(op *store.Op) {
	tk := p.granted.open[op.ID]
	if tk == nil {
		return
	}
	if tk.answered == 0 && op.Result.State == store.Granted {
		tk.answered = op.Result.Now
	}
	p.learnSizes(op, tk)
}

// learnSizes records the sizes that a response states. In an outage they are all that is known of limits without a
// configured size.
func (p *Process) learnSizes(op *store.Op, tk *ticket) {
	stated := p.granted.stated
	for _, o := range op.Observed {
		i := slices.IndexFunc(p.spec.Limits, func(l store.Limit) bool { return l.Name == o.Limit })
		if i < 0 || o.Size <= 0 || o.Size > store.MaxAmount || !p.limits[i].shared {
			continue
		}
		k := p.limits[i].keyOf(i, tk)
		if _, known := stated[k]; known || len(stated) < maxMeters {
			stated[k] = o.Size
		}
	}
}

// closed records that a request is over.
func (p *Process) closed(op *store.Op) {
	if tk := p.granted.open[op.ID]; tk != nil {
		delete(p.granted.open, op.ID)
		p.charge(tk, op.Amounts, op.Result.Now, op.Spent)
	}
}

// charge records what a closed request has charged.
func (p *Process) charge(tk *ticket, used []store.Amount, now store.Time, spent bool) {
	settled := tk.answered != 0 || !spent
	for i := range p.limits[:len(p.spec.Limits)] {
		l := &p.limits[i]
		amount := tk.amounts[i]
		if n, known := store.AmountOf(used, &p.spec.Limits[i]); settled && known && n >= 0 {
			amount = n
		}
		if amount <= 0 || !l.lingers {
			continue
		}
		if c := p.granted.chargesOf(l.keyOf(i, tk), l.per == 0); c != nil {
			c.add(max(l.Window/perWindow, 1), amount, int64(tk.granted), l.boundOf(tk, now, spent))
		}
	}
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

// add adds the charge of a request that was granted at a time.
func (c *charges) add(width, amount, granted, bound int64) {
	slice := granted / width
	s := &c[slice%perWindow]
	if s.slice != slice {
		if s.slice > slice {
			return // its window is over
		}
		s.slice, s.amount, s.granted, s.bound = slice, 0, granted, bound
	}
	s.amount += amount
	s.granted, s.bound = min(s.granted, granted), max(s.bound, bound)
}

// standing returns the charges that may still count at time t.
func (c *charges) standing(d *meter.Def, t int64) (list []policy.Lingering) {
	for i := range c {
		if s := &c[i]; s.amount > 0 && s.bound+2*d.Window > t {
			list = append(list, policy.Lingering{Amount: s.amount, Granted: s.granted, Bound: s.bound})
		}
	}
	return list
}

// remap moves records by limit i to limit to[i], or drops them if that is negative.
func (l *granted) remap(to []int) {
	single := l.single
	l.single = [store.MaxLimits]*charges{}
	for i, at := range to {
		if at >= 0 {
			l.single[at] = single[i]
		}
	}
	l.scoped, l.stated = moved(l.scoped, to), moved(l.stated, to)
}

func moved[T any](was map[meterKey]T, to []int) map[meterKey]T {
	now := map[meterKey]T{}
	for k, v := range was {
		if k.limit < len(to) && to[k.limit] >= 0 {
			k.limit = to[k.limit]
			now[k] = v
		}
	}
	return now
}
