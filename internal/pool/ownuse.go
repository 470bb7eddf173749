package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
)

// ownUse is what the requests of some sessions have charged to windows that members share, for those that are over. The pool
// itself forgets whose charges they were. A process that is cut off uses its own again, see Share. It is no part of the
// state, and no more exact than that needs.
type ownUse struct {
	mine   func(session uint64) bool
	meters []*standings // by meter
	raised bool         // the ticket that ends was settled to more than its estimate
}

// standings are the charges to one meter, in slices by the times of their grants.
type standings struct {
	limit string
	at    [64]standing
}

// standing is a charge of requests that were granted at granted or later and had arrived by bound.
type standing struct{ amount, granted, bound int64 }

// Remember has the pool remember what requests of some sessions charge from now on.
func (p *Pool) Remember(mine func(session uint64) bool) {
	if p.own == nil {
		p.own = &ownUse{mine: mine}
	}
}

// remember notes the charges of a ticket that ends.
func (p *Pool) remember(tk *ticket) {
	if p.own == nil {
		return
	}
	raised := p.own.raised
	p.own.raised = false
	if !p.own.mine(tk.id.Session) {
		return
	}
	for k := range tk.n {
		c := &tk.charges[k]
		kind := p.defs[c.limit].Kind
		if c.Amount == 0 || c.Mode == meter.Held || kind != meter.Rolling && kind != meter.Fixed || p.lingers(int(c.limit)) < 0 {
			continue
		}
		bound := c.Mark
		if raised { // what it used beyond its estimate counts from now on
			bound = max(bound, p.now)
		}
		p.own.of(c.inst, p.spec.Limits[c.limit].Name).add(p.defs[c.limit].Window, standing{c.Amount, tk.granted, bound})
	}
}

// of returns the charges to a meter. A meter that takes the place of another in the slab has nothing to do with it, but then
// nothing of that counts any more, unless the limit was replaced.
func (u *ownUse) of(inst int32, limit string) *standings {
	for int(inst) >= len(u.meters) {
		u.meters = append(u.meters, nil)
	}
	m := u.meters[inst]
	if m == nil || m.limit != limit {
		m = &standings{limit: limit}
		u.meters[inst] = m
	}
	return m
}

func (m *standings) add(window int64, c standing) {
	width := max(window/int64(len(m.at)), 1)
	s := &m.at[c.granted/width%int64(len(m.at))]
	switch was, is := s.granted/width, c.granted/width; {
	case s.amount == 0 || was < is:
		*s = c
	case was == is:
		s.amount += c.amount
		s.granted, s.bound = min(s.granted, c.granted), max(s.bound, c.bound)
	}
}

// each calls f for the charges to a meter.
func (u *ownUse) each(inst int32, limit string, f func(standing)) {
	if u == nil || int(inst) >= len(u.meters) || u.meters[inst] == nil || u.meters[inst].limit != limit {
		return
	}
	for _, s := range u.meters[inst].at {
		if s.amount > 0 {
			f(s)
		}
	}
}

// raises notes that a ticket is settled to more than its estimate.
func (p *Pool) raises() {
	if p.own != nil {
		p.own.raised = true
	}
}
