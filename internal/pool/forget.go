package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

const (
	holdAfterLoss = 3_000_000  // pause after a loss, in which members report the tickets that they hold
	sameLoss      = 10_000_000 // reports of a loss within this time are about the same loss
	// heedLoss is the longest window that counts as spent after a loss. On longer windows, Sluice relies on the
	// remaining amount that the provider states.
	heedLoss = 600_000_000
)

// lossCause is the cause of the pause that users see.
const lossCause = "the store lost its memory"

// forget handles the loss of the store's memory. Requests that the lost pool had granted may be on their way, or count
// at the provider. So the pool pauses for holdAfterLoss, in which members report the tickets that they hold, with force.
// The rest of every window up to heedLoss counts as spent.
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
	if g.Allow(p.now).Phase != pause.Paused || g.Until < p.now+holdAfterLoss { // otherwise the current pause lasts longer
		p.setCause(g, op, 0)
	}
	g.Pause(p.now, holdAfterLoss)
	for i := int32(1); i < p.insts.End(); i++ {
		if p.insts.At(i).used {
			p.lose(i)
		}
	}
}

// lose fills up a meter if charges to it may have been lost and may still count at the provider. Meters that are new,
// or have grown, need it too.
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

// lossHolds reports whether the pause after a loss lasts, in which members report the tickets that they hold.
func (p *Pool) lossHolds() bool { return p.lostAt != 0 && p.now-p.lostAt < holdAfterLoss }

// lostUntil returns when no lost charge counts any more, or 0 if there was no loss. Until then, limits may be full
// without any request in the history.
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

// heedsLoss reports whether a limit counts as spent after a loss. That is so for shared limits with a guard and a window
// up to heedLoss.
func (p *Pool) heedsLoss(limit int) bool {
	return p.shared&(1<<limit) != 0 && p.defs[limit].Guard != meter.Off && p.span[limit] <= heedLoss
}
