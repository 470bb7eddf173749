package outage

import (
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// outage is the time in which the store cannot be reached.
type outage struct {
	since   store.Time
	granted int64
	numbers numbers

	isle    *isle // nil: the process has no share
	held    map[store.ID]*ticket
	heardOf map[store.ID]bool               // tickets that the store may have heard of on an attempt to return
	due     store.Time                      // when the last of the tickets granted here is over
	user    who                             // the last that was granted something
	users   map[uint64]who                  // an agent of each session that was granted something
	loose   map[meterKey][]policy.Lingering // charges that the store may or may not have
	line    []*islander                     // who waits here, in order
	early   map[store.ID]*early             // tickets of the store's queue that were granted here
	sayings []saying                        // what was said of the store's tickets
	again   []store.Op                      // acquires that were sent on the way back, and may not have arrived
	paused  store.Time                      // until then nothing is granted: the provider has said so
	cause   string
	halted  bool // on the way back: nothing is granted
}

// saying is an operation that the store is told when it is back.
type saying struct {
	op store.Op
	at store.Time
}

const maxSayings = 4096

// Begin takes in that the store cannot be reached. rtt is how long the answer took that the time is
// reckoned from. Afterwards [Process.Serve] has to be called.
func (p *Process) Begin(now store.Time, rtt time.Duration) {
	p.lost = &outage{
		since: now, held: map[store.ID]*ticket{}, users: map[uint64]who{}, heardOf: map[store.ID]bool{}, early: map[store.ID]*early{},
	}
	p.lost.isle = p.newIsle(now, rtt)
	p.enterAll()
}

// Mode is what a session does in an outage: a process without a share is closed.
func (p *Process) Mode(s *Session) store.OnFailure {
	if s.Spec.OnFailure == store.FailShare && (!s.Member || p.lost != nil && p.lost.isle == nil) {
		return store.FailClosed
	}
	return s.Spec.OnFailure
}

// Outage describes the outage to a session, but for its cause.
func (p *Process) Outage(s *Session) store.Outage {
	return store.Outage{Since: p.lost.since, Mode: p.Mode(s), Granted: p.lost.granted}
}

// Put keeps operations on tickets for when the store is back.
func (p *Process) Put(now store.Time, ops ...store.Op) {
	if p.lost != nil {
		p.lost.put(now, ops...)
	}
}

func (o *outage) put(now store.Time, ops ...store.Op) {
	for i := range ops {
		op := ops[i]
		switch op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
		case store.OpPoll:
			if op.TTL == 0 {
				continue
			}
		default:
			continue
		}
		if len(o.sayings) < maxSayings { // else tickets end with their time to live
			op.Result = store.Result{}
			o.sayings = append(o.sayings, saying{op, now})
		}
	}
}

// said is what the store is told of something that was said a while ago.
func (s *saying) said(now store.Time) store.Op {
	op := s.op
	late := now.Sub(s.at)
	if op.RetryAfter > 0 {
		op.RetryAfter = max(op.RetryAfter-late, time.Millisecond)
	}
	if len(op.Observed) > 0 {
		list := make([]store.Observed, len(op.Observed))
		for i, o := range op.Observed {
			list[i] = store.Observed{Limit: o.Limit, Size: o.Size, Remaining: -1, ResetIn: -1} // the rest was true then
		}
		op.Observed = list
	}
	if op.Kind == store.OpPoll {
		op.TTL = max(op.TTL-late, time.Millisecond)
	}
	return op
}
