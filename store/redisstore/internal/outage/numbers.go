package outage

import "github.com/sluicehq/sluice/store"

// numbers gives numbers to tickets that are granted without the store, or wait here.
type numbers struct {
	base   uint64 // all numbers are above it; 0: none was given yet
	last   uint64 // how many were given to granted tickets
	queued uint64 // how many were given to waiting tickets
	pass   uint64 // the number that the current attempt to return moves sessions past
	passed uint64 // the number that an earlier attempt may have moved them past
	top    uint64 // no number given before the last attempt is above it; 0: the store has heard of no attempt
}

// span is a range of numbers.
type span struct{ from, to uint64 }

const (
	maxSpans  = 256
	localGap  = 1 << 20 // between numbers that the store may have given and those given here
	queuedGap = 1 << 32 // waiting tickets get numbers above those of all granted ones
	localSpan = 1 << 33
)

// newID returns an id for a ticket that is granted here, or waits here.
func (p *Process) newID(session uint64, waits bool) store.ID {
	p.rebase()
	n := &p.lost.numbers
	if waits {
		n.queued++
		return store.ID{Session: session, N: n.base + queuedGap + n.queued}
	}
	n.last++
	return store.ID{Session: session, N: n.base + n.last}
}

// rebase chooses the base, above all numbers that the store may have given and that sessions may have been moved past.
func (p *Process) rebase() {
	n := &p.lost.numbers
	if n.base != 0 {
		return
	}
	n.last, n.queued = 0, 0
	last := len(p.spans) - 1
	if n.top != 0 { // the store has given out none since
		n.base = n.top + localGap
		p.spans[last].to = n.base + localSpan
		return
	}
	n.base = p.highest + localGap
	if last >= 0 {
		n.base = max(n.base, p.spans[last].to+localGap)
	}
	if p.spans = append(p.spans, span{n.base, n.base + localSpan}); len(p.spans) > maxSpans {
		p.spans = p.spans[1:]
	}
}

// passing chooses the number that sessions are moved past on the way back. The store continues from there, so a ticket
// that begins to wait here while the attempt is under way gets a number far above it.
func (p *Process) passing() uint64 {
	p.rebase()
	n := &p.lost.numbers
	n.pass = n.base + queuedGap + n.queued + 1
	n.queued += 1 + localGap
	last := &p.spans[len(p.spans)-1]
	last.to = max(last.to, n.base+queuedGap+n.queued+localGap)
	return n.pass
}

// isLocal reports whether a ticket got its number here, in this outage or an earlier one.
func (p *Process) isLocal(id store.ID) bool {
	for _, s := range p.spans {
		if id.N > s.from && id.N < s.to {
			return true
		}
	}
	return false
}

// Excuse changes the result of an operation on a ticket that the store does not know, if the ticket was granted here: it
// counts as ended, because the store has never heard of it.
func (p *Process) Excuse(op *store.Op) {
	if id := op.Result.ID; Of(id.Session) != p.number || !p.isLocal(id) {
		return
	}
	switch op.Kind {
	case store.OpAnswer:
		op.Result.State = store.Granted
	case store.OpClose, store.OpCancel, store.OpPoll, store.OpRenew:
		op.Result.State = store.Ended
	}
}
