package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// Compact returns the bytes of a copy of the pool that is as small as possible. First it drops unused records, from this
// pool too.
func (p *Pool) Compact(now store.Time) ([]byte, error) {
	p.sweepAll(now)
	mem := make([]byte, 2*p.space.Size()+flat.Least) // untouched pages take no memory
	space, err := flat.Mapped(mem, func(size int64) error {
		if size > int64(len(mem)) {
			return flat.ErrFull
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d := open(space)
	if err := space.Seal(); err != nil {
		return nil, err
	}
	if err := p.space.CopyTo(space); err != nil {
		return nil, err
	}
	w := &d.written
	w.at, w.size = space.Keep(0, 0, p.space.Kept(w.at, w.size))
	return mem[:space.Size()], nil
}

// sweepAll drops all unused records at once. Steps drop only a few each.
func (p *Pool) sweepAll(now store.Time) {
	p.now = max(p.now, int64(now))
	if p.queue.Len() == 0 {
		p.expireTickets() // while requests wait, the steps at Wake expire tickets
	}
	p.sweep, p.sweepDead, p.sweepSess, p.callers.hand = 0, 0, 0, 0
	p.sweepSome(int(max(p.insts.End(), p.leases.End(), p.sessions.End(), p.callers.recs.End())) + 1)
	p.sweep, p.sweepDead, p.sweepSess, p.callers.hand = 0, 0, 0, 0
}
