package outage

import (
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// outage is the state of one outage, from Begin to End.
type outage struct {
	since   store.Time
	granted int64
	numbers numbers

	island   *island                         // nil: the process has no share
	held     map[store.ID]*ticket            // open tickets that were granted here
	heardOf  map[store.ID]bool               // tickets that the store may know from an attempt to return
	due      store.Time                      // when the last ticket granted here expires
	agent    agent                           // of the last grant
	agents   map[uint64]agent                // of the last grant of each session
	loose    map[meterKey][]policy.Lingering // charges that the store may or may not have
	queue    []*localWaiter                  // tickets that wait here, in order
	early    map[store.ID]*early             // tickets that wait in the store and were granted here
	deferred []deferredOp                    // operations on the store's tickets, for the return
	again    []store.Op                      // acquires sent on the way back that may not have arrived
	paused   store.Time                      // until then nothing is granted, after a refusal by the provider
	cause    string                          // of the pause
	halted   bool                            // on the way back: nothing is granted
}

// deferredOp is an operation that the store is told when it is back.
type deferredOp struct {
	op store.Op
	at store.Time
}

const maxDeferred = 4096

// Begin begins an outage. rtt is how long the call took whose reply gave the server's time. Call [Process.Serve]
// afterwards.
func (p *Process) Begin(now store.Time, rtt time.Duration) {
	p.lost = &outage{
		since: now, held: map[store.ID]*ticket{}, agents: map[uint64]agent{}, heardOf: map[store.ID]bool{}, early: map[store.ID]*early{},
	}
	p.lost.island = p.newIsland(now, rtt)
	p.enterAll()
}

// Mode returns what a session does in an outage. FailShare without a share becomes FailClosed.
func (p *Process) Mode(s *Session) store.OnFailure {
	if s.Spec.OnFailure == store.FailShare && (!s.Member || p.lost != nil && p.lost.island == nil) {
		return store.FailClosed
	}
	return s.Spec.OnFailure
}

// Outage describes the outage to a session, without its cause.
func (p *Process) Outage(s *Session) store.Outage {
	o := store.Outage{Since: p.lost.since, Mode: p.Mode(s), Granted: p.lost.granted}
	if is := p.lost.island; o.Mode == store.FailShare {
		o.Start, o.End, o.Unshared = is.start, is.end, is.unshared()
	}
	return o
}

// unshared names the limits of which the process has no share, in the order of the pool.
func (is *island) unshared() (names []string) {
	none := map[int]bool{}
	for k, n := range is.meters {
		none[k.limit] = none[k.limit] || !is.Shares(n)
	}
	for k := range is.blind {
		none[k.limit] = none[k.limit] || !is.limits[k.limit].Plan // a subscription window counts only once it is used
	}
	for i := range is.limits {
		if none[i] {
			names = append(names, is.limits[i].Name)
		}
	}
	return names
}

// Put keeps operations on tickets until the store is back.
func (p *Process) Put(now store.Time, ops ...store.Op) {
	if p.lost != nil {
		p.lost.put(now, ops...)
	}
}

func (o *outage) put(now store.Time, ops ...store.Op) {
	for i := range ops {
		op := ops[i].Clone()
		switch op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
		case store.OpPoll:
			if op.TTL == 0 {
				continue
			}
		default:
			continue
		}
		if len(o.deferred) < maxDeferred { // beyond that, tickets end when they expire
			op.Result = store.Result{}
			o.deferred = append(o.deferred, deferredOp{op, now})
		}
	}
}

// aged returns the operation as the store has to be told it after the delay.
func (s *deferredOp) aged(now store.Time) store.Op {
	op := s.op
	late := now.Sub(s.at)
	if op.RetryAfter > 0 {
		op.RetryAfter = max(op.RetryAfter-late, time.Millisecond)
	}
	if len(op.Observed) > 0 {
		list := make([]store.Observed, len(op.Observed))
		for i, o := range op.Observed {
			list[i] = store.Observed{Limit: o.Limit, Size: o.Size, Remaining: -1, ResetIn: -1} // the rest is out of date
		}
		op.Observed = list
	}
	if op.Kind == store.OpPoll {
		op.TTL = max(op.TTL-late, time.Millisecond)
	}
	return op
}
