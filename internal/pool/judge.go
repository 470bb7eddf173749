package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// judge is the only place that decides whether a request may go. Whoever asks gets the same verdict: a new request, a
// renewed ticket, the queue, and the reasons and expected times of requests that wait. judge reads a view of the pool and
// changes nothing. Callers act on its verdict: they grant, queue or park the request, or explain why it waits.

// view is the pool at one moment, for judge. It hands out meters, stocks, breakers and pauses as they are at that moment:
// it first lets happen what time alone brings to them. In a step that is the pool itself, and for readers a copy.
type view struct {
	*Pool
	pass  uint32 // the pass over the queue whose claims count; 0: the request is judged without a queue
	whole bool   // explain everything that holds the request back, instead of deciding by the first thing
}

// verdict is what judge decides about a request. It is valid until the next one.
type verdict struct {
	goes    bool
	holdsUp holdsUp
	code    store.Code    // why it does not go
	limit   int8          // the limit that it lacks or that a policy keeps, as far as code is about one; else -1
	again   int64         // when to judge again if only time passes; meter.Never: when something else has happened
	on      int32         // for ownScope: the meter of the limit
	lacks   uint16        // set of limits without room
	pause   pause.Verdict // of all pauses together
	kept    []kept        // what policies keep from it
}

// judging is where judge puts its latest verdict. No decision depends on it.
type judging struct {
	verdict   verdict
	found     [store.MaxLimits]kept // the verdict's list
	stockCopy stock                 // what an explanation looked at last
}

// holdsUp says which requests behind a refused one have to wait with it.
type holdsUp uint8

const (
	nobody   holdsUp = iota // it can never go, and leaves the queue
	ownScope                // those that need the same limit of their own
	itsClass                // those of its class
	itsLane                 // those that need the same shared limits
)

// kept is what a policy keeps from a request on one of its limits.
type kept struct {
	charge  uint8
	code    store.Code // 0: an earlier request of this pass is held back, and holds up this one
	until   int64      // when the policy lets it go if only time passes
	soon    int64      // when requests behind it may go, if that is earlier; else 0
	presses bool       // the breaker's glide holds it back
}

// lookAgain is the longest time between two verdicts on a request that a policy holds back. Several classes and meters
// decide when it may go, so no exact time can be computed.
const lookAgain = 10_000_000

// judge decides whether a request may go. What holds it back is looked for in the order of whom it holds up: a pause, a
// limit that is too small, limits of its own, policies, shared limits.
func (v view) judge(tk *ticket) *verdict {
	out := &v.verdict
	*out = verdict{limit: -1, pause: pause.Verdict{OK: true}}
	if v.firstGate != 0 {
		if out.pause = v.pausesAllow(tk.who.model, tk.who.key); !out.pause.OK && !v.whole {
			out.holdsUp, out.code, out.again = itsClass, holdCode(out.pause.Phase), out.pause.Next
			return out
		}
	}
	own := int8(-1) // index of the first charge that lacks room of its own, or waits for an earlier request's
	parked := false
	policed := uint16(0) // set of limits that policies may keep from it
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := v.touchCharge(c)
		bit := uint16(1) << c.limit
		if in.Cap > 0 && c.Amount > in.Cap && !v.whole {
			out.holdsUp, out.code, out.limit, out.again = nobody, store.CodeCapacity, int8(c.limit), meter.Never
			return out
		}
		if v.policed&bit != 0 && (v.heldUp(in)&(1<<tk.class) != 0 || !v.isFree(tk, c, in, d, r)) {
			policed |= bit
		}
		switch room := in.room(d, r, c.Amount); {
		case v.shared&bit != 0:
			if room-v.claimed(in) < c.Amount {
				out.lacks |= bit
			}
		case own < 0 && v.pass != 0 && v.queue.ParkedBefore(tk.waiter, c.inst):
			own, parked = int8(k), true
		case room < c.Amount:
			out.lacks |= bit
			if own < 0 {
				own = int8(k)
			}
		}
	}
	if own >= 0 && !v.whole {
		v.lacksOwn(&tk.charges[own], parked, out)
		return out
	}
	if policed != 0 && !tk.emergent {
		if v.keeps(tk, policed, out); len(out.kept) > 0 && !v.whole {
			return out
		}
	}
	if out.lacks != 0 && !v.whole {
		v.lacksShared(tk, out)
		return out
	}
	out.goes = out.pause.OK && out.lacks == 0 && len(out.kept) == 0
	return out
}

// lacksOwn says that a request lacks room on a limit of its own, or comes after one that does.
func (v view) lacksOwn(c *charge, parked bool, out *verdict) {
	out.holdsUp, out.code, out.limit, out.on = ownScope, store.CodeLimit, int8(c.limit), c.inst
	if parked { // until the earlier request goes
		out.lacks, out.again = 0, meter.Never
		return
	}
	in, d, r := v.meterOf(c)
	out.lacks, out.again = 1<<c.limit, in.readyAt(d, r, v.now, c.Amount)
}

// keeps adds what policies keep from a request on some limits. Requests of its class behind it are held up too, so that a
// large request does not starve behind small ones.
func (v view) keeps(tk *ticket, limits uint16, out *verdict) {
	n, at := 0, int64(0)
	for k := range tk.n {
		c := &tk.charges[k]
		if limits&(1<<c.limit) == 0 {
			continue
		}
		in, d, r := v.meterOf(c)
		found := &v.found[n]
		if v.heldUp(in)&(1<<tk.class) != 0 {
			*found = kept{until: meter.Never}
		} else {
			if *found = v.keptFrom(tk, c, in, d, r); found.code == 0 {
				continue
			}
			out.code, out.limit = found.code, int8(c.limit)
		}
		found.charge = k
		n++
		at = max(at, found.until)
	}
	if n > 0 {
		out.holdsUp, out.kept, out.again = itsClass, v.found[:n], min(at, v.now+lookAgain)
	}
}

// lacksShared says that a request lacks room on shared limits, beside what earlier requests have claimed.
func (v view) lacksShared(tk *ticket, out *verdict) {
	out.holdsUp, out.code = itsLane, store.CodeLimit
	for k := range tk.n {
		c := &tk.charges[k]
		if out.lacks&(1<<c.limit) == 0 {
			continue
		}
		in, d, r := v.meterOf(c)
		ready := int64(meter.Never) // when the requests ahead go, the queue is served again
		switch claimed := v.claimed(in); {
		case claimed == 0:
			ready = in.readyAt(d, r, v.now, c.Amount)
		case claimed < everything:
			ready = in.ReadyAt(d, r, v.now, claimed+c.Amount)
		}
		if out.limit < 0 {
			out.limit = int8(c.limit)
		}
		out.again = max(out.again, ready)
	}
	if v.policed != 0 { // once a policy keeps room from it, others may overtake it
		out.again = min(out.again, v.now+lookAgain)
	}
}

// everything is a claim that leaves no room to the requests behind.
const everything = 2 * store.MaxAmount

// claimed returns what requests ahead have claimed of a meter in this pass.
func (v view) claimed(in *inst) int64 {
	if v.pass == 0 || in.pass != v.pass {
		return 0
	}
	return in.claim
}

// heldUp returns the set of classes that a policy holds back on a meter in this pass.
func (v view) heldUp(in *inst) uint8 {
	if v.pass == 0 || in.pass != v.pass {
		return 0
	}
	return in.kept
}
