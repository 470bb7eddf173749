// Package pool is the state machine of a pool. It decides which requests are granted, charges them to limits, queues
// the others, and handles pauses, leases and members.
//
// A store calls Apply with a batch of operations and the current time. Nothing here reads a clock. The same code runs for
// every store. All state is flat records in slabs, see package flat. Whether a request may go is decided in judge.go.
package pool

import (
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// Pool is the state of one pool. It is not safe for concurrent use: the store that owns it serializes the calls. Where
// several processes share the state, each has a Pool on it. Times are in microseconds.
type Pool struct {
	*once
	names    flat.Names
	queue    order.Queue
	tickets  flat.Slab[ticket]
	ticketIx flat.Index
	insts    flat.Slab[inst]
	instIx   flat.Index
	rings    flat.Slab[meter.Ring]
	stocks   flat.Slab[stock]
	paces    flat.Slab[policy.Pace]
	models   flat.Slab[model]
	leases   flat.Slab[lease]
	members  flat.Slab[member]
	gates    flat.Slab[pauseRec]
	sessions flat.Slab[session]
	sessIx   flat.Index
	answers  flat.Slab[answers]
	callers  callers
	history  history
	space    *flat.Space // of several processes; nil: the heap
	whole    *flat.Space // the same, or the parts on the heap

	// The spec and what is derived from it.
	spec      store.Spec
	known     int64 // version of spec
	defs      [store.MaxLimits]meter.Def
	shared    uint16      // set of limits that agents share: without a scope, or per model or key
	ownScopes store.Scope // scopes of all other limits
	throttle  pause.Backoff
	overload  pause.Backoff
	unscoped  [store.MaxLimits]unscoped
	policed   uint16 // set of shared limits that may keep room for other classes: see keptFrom
	weights   [store.MaxClasses]int64
	safe      [store.MaxClasses]int64 // part of a stock that a class may always take, in thousandths
	lease     int64                   // how long an agent stays live after its last sign of life; 0: no agent is live
	anyStrict bool                    // some limit has a strict guard
	span      [store.MaxLimits]int64  // longest time that a charge stands after its bound

	knownParts int64 // revision of parts that defs have

	replica

	judging

	batch   []store.Op // being applied, or applied last
	decided []store.ID // waiting tickets decided in this step that no op asked about
	next    int32      // waiting ticket that set wake, see Next
	own     *ownUse    // nil: nothing is remembered
}

// once holds the state that a pool has exactly once.
type once struct {
	now        int64 // time of the latest step: never goes back
	wake       int64 // when time alone may let a waiting request go; 0: never
	contact    int64 // time of the latest operation of any session
	awake      int64 // end of the latest long silence, see mostSilence
	inFlight   int64
	laneScopes store.Scope             // scopes that have separate lanes
	asked      bool                    // some op of the batch was told to wait
	stirred    bool                    // something happened that may let a waiting request go
	rival      int32                   // during a pass over the queue: a ticket of the highest class behind the current one, see findRival
	aliveTill  [store.MaxClasses]int64 // until when a class is live
	scatter    policy.Scatter
	sweep      int32 // the meter that was checked last for dropping
	sweepDead  int32 // the lease
	sweepSess  int32 // the session
	claims     uint32
	firstGate  int32  // head of the list of pauses
	lastSess   int32  // the session that asked last
	forgotten  uint64 // highest ticket number of all forgotten sessions
	last429    int64
	header     headerTime
	single     [store.MaxLimits]int32 // meters of limits without a scope
	scoped     [store.MaxLimits]int32 // number of meters of limits with a scope
	crowd      [store.MaxLimits]int32 // meter of all scopes without one of their own, see crowd.go
	crowdSize  [store.MaxLimits]int64 // smallest size that a response stated for a scope of the crowd
	other      int32                  // the name otherName
	by         [store.MaxLimits]int32 // names of the members whose sizes of limits hold
	retired    uint16                 // set of limits that no member has
	written    written                // the spec
	wheel      wheel

	failures    int32                  // consecutive requests that the provider did not serve
	unreached   bool                   // some of them had no response
	unpaid      bool                   // all of them were billing stops
	failure     int32                  // name: why the last of them failed
	unpaidKey   int32                  // name: the key of the last billing stop
	failing     int64                  // time of the first
	failed      int64                  // time of the last
	answered    int32                  // record of the model that was answered for last
	lostAt      int64                  // when the store was last reported to have lost its memory; 0: never
	firstMember int32                  // list of members that report, the oldest report first
	lastMember  int32                  // end of that list
	firstSilent int32                  // list of silent members
	heardOf     int32                  // number of members that report
	promised    int64                  // sum of the shares that members may believe they have, in 1/whole
	hushed      int64                  // part of it that silent members have
	nextHush    int64                  // when the withheld parts may change; 0: never
	nextFree    int64                  // when a withheld part may come back; 0: nothing is withheld
	partsRev    int64                  // revision of parts
	parts       [store.MaxLimits]int64 // withheld part of each limit, in 1/meter.Parts
}

// New creates a pool on the heap at time now.
func New(spec store.Spec, now store.Time) (*Pool, error) {
	p := open(nil)
	return p, p.start(spec, now)
}

// Create creates a pool in a new space, for several processes to share.
func Create(space *flat.Space, spec store.Spec, now store.Time) (*Pool, error) {
	p := open(space)
	if err := space.Seal(); err != nil {
		return nil, err
	}
	if err := p.start(spec, now); err != nil {
		return nil, err
	}
	p.write()
	return p, nil
}

// Attach returns the pool that Create made in a space.
func Attach(space *flat.Space) (*Pool, error) {
	p := open(space)
	if err := space.Seal(); err != nil {
		return nil, err
	}
	return p, p.Refresh()
}

// Layout returns a number that identifies the memory layout of pools in a space. Versions of the code with different
// layouts cannot share a space.
func Layout() uint64 {
	mem := make([]byte, 256<<10)
	space, err := flat.Mapped(mem, func(int64) error { return nil })
	if err != nil {
		panic(err)
	}
	open(space)
	return space.Layout()
}

// open lays out the records of a pool, on the heap if space is nil.
func open(space *flat.Space) *Pool {
	p := &Pool{space: space, whole: space, replica: replica{rules: Rules}}
	if space == nil {
		space = flat.OnHeap()
		p.whole = space
	}
	p.once = flat.Single[once](space)
	p.names.Open(space)
	p.queue.Open(space)
	p.queue.Names = &p.names
	p.tickets.Open(space)
	p.ticketIx.Open(space)
	p.insts.Open(space)
	p.instIx.Open(space)
	p.rings.Open(space)
	p.stocks.Open(space)
	p.paces.Open(space)
	p.models.Open(space)
	p.leases.Open(space)
	p.members.Open(space)
	p.gates.Open(space)
	p.sessions.Open(space)
	p.sessIx.Open(space)
	p.answers.Open(space)
	p.callers.open(space)
	p.history.open(space)
	return p
}

// start sets up a new pool. If no limit has a known size, each scope that the provider may limit begins with a ramp.
func (p *Pool) start(spec store.Spec, now store.Time) error {
	p.spec, p.now = spec, int64(now)
	p.contact, p.awake = p.now, p.now
	p.spec.Restate = false
	p.wheel.tick = p.now / wheelStep
	p.other = p.names.Hold(otherName)
	if err := checkSpec(&spec); err != nil {
		return err
	}
	for i := range spec.Limits {
		if err := p.define(i); err != nil {
			return fmt.Errorf("limit %q: %w", spec.Limits[i].Name, err)
		}
		p.setBy(i, spec.Member)
	}
	p.configure()
	if !p.anyKnown() && !p.rampsScopes() {
		p.startRamp(0, 0, 0)
	}
	return nil
}

// configure applies the settings of the spec that change no charges.
func (p *Pool) configure() {
	p.queue.Mode = order.Mode(p.spec.Order)
	p.queue.Weights[emergency] = emergencyWeight
	for i := range p.weights {
		p.weights[i] = 1 // requests may still wait in a class that was removed
		if i < len(p.spec.Classes) {
			p.weights[i] = p.spec.Classes[i].Weight
		}
		p.queue.Weights[rankOf(i)] = p.weights[i]
	}
	p.configurePolicy()
	p.history.define(p.spec.Limits, p.retired)
	p.throttle = backoff(p.spec.Throttle)
	p.overload = backoff(p.spec.Overload)
}

func backoff(b store.Backoff) pause.Backoff {
	return pause.Backoff{Start: b.Start.Microseconds(), Factor: b.Factor, Cap: b.Cap.Microseconds()}
}

// anyKnown reports whether the spec gives some limit a size.
func (p *Pool) anyKnown() bool {
	for i := range p.spec.Limits {
		if p.spec.Limits[i].Size > 0 {
			return true
		}
	}
	return false
}

// Apply carries out ops at time now, in order, and sets their results. Then it grants every waiting request that can go.
func (p *Pool) Apply(now store.Time, ops []store.Op) {
	p.begin(now, len(ops) > 0)
	p.carryOut(ops)
	if p.hashing {
		p.hashStep(ops)
	}
}

// begin moves the pool to time now: it expires tickets and drops stale pauses. heard says that the step has operations.
func (p *Pool) begin(now store.Time, heard bool) {
	p.now = max(p.now, int64(now))
	if len(p.decided) > 0 {
		p.decided = p.decided[:0]
	}
	if p.now >= p.history.second+second {
		p.history.turn(p.now)
	}
	if heard {
		p.heardSomething()
	}
	if p.header.isDue() {
		p.header.judge()
	}
	if p.now >= p.wheel.turns {
		p.expireTickets()
	}
	if p.nextHush != 0 && p.now >= p.nextHush {
		p.hush()
	}
	if p.firstGate != 0 {
		p.dropStale()
	}
}

// carryOut applies the operations of a step and serves the queue.
func (p *Pool) carryOut(ops []store.Op) {
	p.batch = ops
	for i := range ops {
		p.apply(i)
	}
	switch {
	case p.queue.Len() == 0:
		p.wake = 0
	case p.stirred || p.wake != 0 && p.now >= p.wake:
		p.serve()
	default: // no waiting request can go now, but a new one may have a deadline
		p.wakeAtDue()
	}
	p.stirred = false
	if p.asked || p.firstGate != 0 {
		p.asked = false
		p.concludeAll()
	}
}

// Now returns the time of the latest step.
func (p *Pool) Now() store.Time { return store.Time(p.now) }

// Serve is Apply without operations, for when time has passed.
func (p *Pool) Serve(now store.Time) { p.Apply(now, nil) }

// Decided returns the waiting tickets that the last step granted or ended and that none of its ops asked about. The
// slice is valid until the next step.
func (p *Pool) Decided() []store.ID { return p.decided }

// Wake returns when to call Serve if no operation comes before. It returns 0 if no request waits for time to pass.
func (p *Pool) Wake() store.Time { return store.Time(p.wake) }

func (p *Pool) apply(i int) {
	op := &p.batch[i]
	op.Result = store.Result{ID: op.ID, Now: store.Time(p.now)}
	switch op.Kind {
	case store.OpAcquire:
		p.acquire(i)
		return
	case store.OpPoll:
		p.poll(op)
		return
	case store.OpTouch: // few let a waiting request go
		p.touched(op)
		return
	}
	p.stirred = true
	switch op.Kind {
	case store.OpCancel:
		p.cancel(op)
	case store.OpRenew:
		p.renew(i)
	case store.OpAnswer:
		p.answer(op)
	case store.OpClose:
		p.close(op)
	case store.OpObserve:
		p.observe(op)
	case store.OpPause:
		p.pause(op)
	case store.OpResume:
		p.resume(op)
	case store.OpHeartbeat:
		p.heartbeat(op)
	case store.OpLeave:
		p.leave(op)
	case store.OpLaunch:
		p.launch(op)
	case store.OpForget:
		p.forget(op)
	case store.OpGone:
		p.gone(op)
	default:
		refuse(op, store.CodeInvalid, 0)
	}
}

func (p *Pool) concludeAll() {
	left := false
	for i := range p.batch {
		left = p.conclude(&p.batch[i]) || left
	}
	if left {
		p.serve() // the room they had claimed is free for others
	}
}

// conclude completes the result of an op after the queue was served. It refuses a request that finds the queue full, or
// that would have to wait past its deadline, and reports whether it did.
func (p *Pool) conclude(op *store.Op) bool {
	r := &op.Result
	if p.firstGate != 0 {
		r.Held = p.holding(op.ID)
	}
	if r.State != store.Waiting {
		return false
	}
	t, tk := p.lookup(op)
	if t == 0 {
		return false // another op of the batch has ended it
	}
	if tk.state != stateWaiting { // the op polled an older request, and this step granted it
		p.decided = slices.DeleteFunc(p.decided, func(id store.ID) bool { return id == op.ID })
		p.poll(op)
		return false
	}
	tk.op = 0
	full := tk.surplus && op.Wait != 0 && p.queue.Len() > p.spec.MaxWaiting
	tk.surplus = false
	asks := op.Kind == store.OpAcquire || op.Kind == store.OpRenew
	if op.Kind == store.OpAcquire && op.Wait < 0 && !full {
		return false // it waits without a deadline; a poll says why
	}
	_, reason, least := p.why(t)
	r.Reason = reason
	switch {
	case full:
		r.Reason.Code, r.Reason.Behind = store.CodeFull, r.Reason.Code
	case !asks || op.Wait < 0 || op.Wait > 0 && least <= tk.deadline:
		return false
	case op.Wait > 0:
		r.Reason.Code, r.Reason.Behind = store.CodeDeadline, r.Reason.Code
	}
	r.State = store.Refused
	p.leaveQueue(tk)
	p.end(t, tk)
	return true
}

func refuse(op *store.Op, code store.Code, at int64) {
	op.Result.State = store.Refused
	op.Result.Reason = store.Reason{Code: code, At: store.Time(at)}
}

// refuseTooLarge refuses a request that costs more than a limit can ever hold.
func (p *Pool) refuseTooLarge(op *store.Op, limit int) {
	refuse(op, store.CodeCapacity, 0)
	op.Result.Reason.Limit = p.spec.Limits[limit].Name
}
