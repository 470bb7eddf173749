package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// Compact makes a copy of the pool in as little room as it needs, at most as much as it has now, and
// returns its bytes. What stands for nothing any more is dropped first, here too.
func (p *Pool) Compact(now store.Time) ([]byte, error) {
	p.sweepAll(now)
	mem := make([]byte, 2*p.space.Size()+flat.Least) // what is not used of it takes no memory
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

// sweepAll drops all that steps would drop bit by bit.
func (p *Pool) sweepAll(now store.Time) {
	p.now = max(p.now, int64(now))
	if p.queue.Len() == 0 {
		p.expireTickets() // while somebody waits, Wake sees to it
	}
	p.sweep, p.sweepDead, p.sweepSess, p.callers.hand = 0, 0, 0, 0
	p.sweepSome(int(max(p.insts.End(), p.leases.End(), p.sessions.End(), p.callers.recs.End())) + 1)
	p.sweep, p.sweepDead, p.sweepSess, p.callers.hand = 0, 0, 0, 0
}
