package outage

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

const (
	touchWithin = 1500 * time.Millisecond // a touch that arrives later than this has no effect
	silentAfter = 3 * time.Second         // when the pool begins to withhold a silent member's share
)

// membership is this process as a member of a pool. All its sessions share it.
type membership struct {
	sessions int          // of this process that make it a member
	share    int64        // the share last told is 1/share of the pool; 0: none
	heard    store.Time   // when the pool last answered a touch
	expires  store.Time   // when its lease ends, counted from then
	pending  []store.Time // until when touches without an answer may still take effect
}

// Share returns n if the process was last told a share of 1/n of the pool, and 0 if it has none.
func (p *Process) Share() int64 { return p.member.share }

// Touch returns the heartbeat of the process, and whether the process is a member at all.
func (p *Process) Touch(now store.Time) (op store.Op, member bool) {
	m := &p.member
	if m.sessions == 0 {
		return op, false
	}
	op = store.Op{Kind: store.OpTouch, ID: p.memberID(), Share: m.share, Until: now.Add(touchWithin)}
	m.pending = append(slices.DeleteFunc(m.pending, func(until store.Time) bool { return until <= now }), op.Until)
	return op, true
}

// Touched records the result of Touch. Results may arrive in another order than the touches were sent.
func (p *Process) Touched(op *store.Op) {
	m, r := &p.member, &op.Result
	if m.sessions == 0 {
		return
	}
	if i := slices.Index(m.pending, op.Until); i >= 0 {
		m.pending = slices.Delete(m.pending, i, i+1)
	}
	if r.Now < m.heard {
		return // the result of a later touch is known
	}
	if r.State != store.Granted {
		if r.Reason.Code == store.CodeFull {
			m.share = 0
		}
		return // it arrived too late; the next one follows soon
	}
	lease := p.spec.Lease
	if lease <= 0 {
		lease = store.DefaultLease
	}
	m.share, m.heard, m.expires = r.Share, r.Now, r.Now.Add(lease)
}
