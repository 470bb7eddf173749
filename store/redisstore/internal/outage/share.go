package outage

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

const (
	touchWithin = 1500 * time.Millisecond // a touch that arrives later than this has no effect
	silentAfter = 3 * time.Second         // when the pool begins to withhold a silent member's share
)

// membership is this process as a member of a pool. All its sessions share it.
type membership struct {
	sessions int        // of this process that make it a member
	share    int64      // the share last told is 1/share of the pool; 0: none
	heard    store.Time // when the pool last answered a touch
	expires  store.Time // when its lease ends, counted from then
	pending  store.Time // until when a touch without an answer may still take effect; 0: all were answered
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
	m.pending = max(m.pending, op.Until)
	return op, true
}

// Touched records the result of Touch.
func (p *Process) Touched(r *store.Result) {
	m := &p.member
	if m.sessions == 0 {
		return
	}
	m.pending = 0
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
