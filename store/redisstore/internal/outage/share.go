package outage

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

const (
	touchWithin = 1500 * time.Millisecond // a touch that arrives later than this does nothing
	silentAfter = 3 * time.Second         // when the pool begins to withhold a silent member's share
)

// membership is this process among the members of a pool. All its sessions share it.
type membership struct {
	users   int        // sessions
	share   int64      // what it was told last: one part in so many; 0: none
	heard   store.Time // when the pool was last known to have heard of it
	expires store.Time // the end of its lease, by that
	pending store.Time // until when a touch counts that was not answered; 0: all were
}

// Share is what the process was told last that it has of the pool: one part in so many; 0: none.
func (p *Process) Share() int64 { return p.member.share }

// Touch returns the operation that says that the process is there, and whether it is a member at all.
func (p *Process) Touch(now store.Time) (op store.Op, member bool) {
	m := &p.member
	if m.users == 0 {
		return op, false
	}
	op = store.Op{Kind: store.OpTouch, ID: p.memberID(), Share: m.share, Until: now.Add(touchWithin)}
	m.pending = max(m.pending, op.Until)
	return op, true
}

// Touched takes in the answer to Touch.
func (p *Process) Touched(r *store.Result) {
	m := &p.member
	if m.users == 0 {
		return
	}
	m.pending = 0
	if r.State != store.Granted {
		if r.Reason.Code == store.CodeFull {
			m.share = 0
		}
		return // it came too late: the next one will not
	}
	lease := p.spec.Lease
	if lease <= 0 {
		lease = store.DefaultLease
	}
	m.share, m.heard, m.expires = r.Share, r.Now, r.Now.Add(lease)
}
