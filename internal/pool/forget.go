package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

const (
	holdAfterLoss = 3_000_000  // members say meanwhile what they hold
	sameLoss      = 10_000_000 // so long after one of them has said it, others mean the same
	// heedLoss is the longest window that counts as spent. On longer ones what the provider says
	// remains has to do.
	heedLoss = 600_000_000
)

// lossCause is what people are told.
const lossCause = "the store lost its memory"

// forget takes in that a pool stood here before of which nothing is known. Whatever it had granted may
// be on its way or count at the provider. So everyone is held for a moment, in which members
// say by force what they hold, and on windows that are not too long what is left counts as spent.
func (p *Pool) forget(op *store.Op) {
	op.Result.State = store.Ended
	if p.lostAt != 0 && p.now-p.lostAt < sameLoss {
		return
	}
	p.lostAt = p.now
	if op.Cause == "" {
		op.Cause = lossCause
	}
	g := p.gates.At(p.pauseOf(0, 0, 0))
	if g.Allow(p.now).Phase != pause.Paused || g.Until < p.now+holdAfterLoss { // else another reason holds for longer
		p.setCause(g, op)
	}
	g.Pause(p.now, holdAfterLoss)
	for i := int32(1); i < p.insts.End(); i++ {
		if p.insts.At(i).used {
			p.lose(i)
		}
	}
}

// lose fills a meter up if what was charged to it may have been forgotten, and may still count. It is
// also called for one that is new, or whose size was not known.
func (p *Pool) lose(i int32) {
	if p.lostAt == 0 {
		return
	}
	limit := p.insts.At(i).limit
	if !p.heedsLoss(int(limit)) {
		return
	}
	in, d, r := p.touch(i)
	in.Lose(d, r, p.now, p.lostAt)
}

// lossHolds reports that members are still saying what they hold.
func (p *Pool) lossHolds() bool { return p.lostAt != 0 && p.now-p.lostAt < holdAfterLoss }

// lostUntil returns when nothing counts any more that was forgotten; 0 if nothing was. Until then limits may be full with
// what nobody here has sent.
func (p *Pool) lostUntil() (until int64) {
	if p.lostAt == 0 {
		return 0
	}
	until = p.lostAt + holdAfterLoss
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if !in.used || p.isRetired(int(in.limit)) || !p.heedsLoss(int(in.limit)) || in.Cap == 0 {
			continue
		}
		if d := p.defOf(in); d.Kind != meter.Concurrency {
			until = max(until, p.lostAt+d.Most+p.span[in.limit])
		}
	}
	return until
}

// heedsLoss reports a limit of the provider's on which what was forgotten counts as spent.
func (p *Pool) heedsLoss(limit int) bool {
	return p.shared&(1<<limit) != 0 && p.defs[limit].Guard != meter.Off && p.span[limit] <= heedLoss
}
