// Package pool is a pool's state machine: tickets, meters, the queue and the gate
// put together. It applies store operations at a time that it is given, and is the
// same code wherever the state lives. All state is flat records behind
// slabs; see package flat.
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

// Pool is the state of one pool. It is not safe for concurrent use: the store that owns
// it serialises. Where several processes share the state, each has a Pool on it.
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
	callers  callers
	history  history
	space    *flat.Space

	// Derived from the spec.
	spec      store.Spec
	known     int64 // the version of the spec that this is
	defs      [store.MaxLimits]meter.Def
	shared    uint16      // set of limits that take part in the common order
	ownScopes store.Scope // attributes that limits of the caller's own are scoped by
	throttle  pause.Backoff
	overload  pause.Backoff
	unscoped  [store.MaxLimits]unscoped
	policed   uint16 // set of shared limits of which something may be kept for others
	weights   [store.MaxClasses]int64
	safe      [store.MaxClasses]int64 // thousandths of a stock that a class may always take
	lease     int64                   // how long an agent lives that is not heard of; 0: none is alive
	anyStrict bool                    // some limit insists on an answer
	span      [store.MaxLimits]int64  // how long a charge stands once it is bound, at the most

	knownParts int64 // the revision of what is withheld that defs have

	// What the fast path has chosen for the request that it looks at: the sums of its meters, -1 where there is none.
	chosen    [store.MaxLimits]int32
	chosenAt  uint32 // the step
	chosenFor names
	sums      []sums // of the meters that the fast path has charged, to be entered at the end of the step
	lotsDue   int64  // no lot is due before
	toEnter   int    // how many of the tallies of the minute before are still to be looked at
	crew

	batch   []store.Op // being applied, or applied last
	decided []store.ID // waiting tickets decided in this step that no op asked about
}

// once is the state of which there is only one of each.
type once struct {
	now        int64 // time of the latest step: never goes back
	wake       int64 // when time alone may change something for those who wait
	contact    int64 // when somebody last said anything
	awake      int64 // since when there was no long silence
	inFlight   int64
	laneScopes store.Scope             // attributes that lanes are told apart by
	steps      uint32                  // of the fast path
	asked      bool                    // some op of the batch was told to wait
	stirred    bool                    // something happened that may let somebody go
	rival      int32                   // while the line is gone through: who of the highest class waits behind the one looked at
	aliveTill  [store.MaxClasses]int64 // when the last agent of a class will be dead
	scatter    policy.Scatter
	sweep      int32 // the next meter to look at for dropping
	sweepDead  int32 // the next lease
	sweepSess  int32
	claims     uint32
	firstGate  int32
	lastSess   int32  // the session that asked last
	forgotten  uint64 // highest number of the sessions that are no longer remembered
	last429    int64
	header     headerTime
	single     [store.MaxLimits]int32 // the meters of limits without a scope
	scoped     [store.MaxLimits]int32 // how many meters the others have
	crowd      [store.MaxLimits]int32 // the meter of those that have none of their own, see crowd.go
	crowdSize  [store.MaxLimits]int64 // the smallest size that was stated of that one
	other      int32                  // the name that stands for all others
	by         [store.MaxLimits]int32 // the members whose sizes of limits hold
	retired    uint16                 // set of limits that no member has
	written    written                // the spec
	wheel      wheel

	failures    int32                  // sends in a row that the provider did not serve
	unreached   bool                   // some of them had no answer
	unpaid      bool                   // all of them were billing stops
	failure     int32                  // why the last of them failed, a name
	failing     int64                  // when the first was
	failed      int64                  // and the last
	lostAt      int64                  // when the store was last said to have lost its memory; 0: never
	firstMember int32                  // of those that are heard of, the one that was so the longest ago
	lastMember  int32                  // and the one that was so just now
	firstSilent int32                  // of the others
	heardOf     int32                  // how many are
	promised    int64                  // sum of all that members may believe to be theirs
	hushed      int64                  // of those of them that are silent
	nextHush    int64                  // when what is withheld may change; 0: never
	nextFree    int64                  // when some of it may be free again; 0: nothing is withheld
	partsRev    int64                  // of parts
	parts       [store.MaxLimits]int64 // what is withheld of each limit, in 1/meter.Parts
}

// New makes a pool at time now, on the heap.
func New(spec store.Spec, now store.Time) (*Pool, error) {
	p := open(nil)
	return p, p.start(spec, now)
}

// Create makes a pool in a new space.
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

// Attach returns the pool that is in a space.
func Attach(space *flat.Space) (*Pool, error) {
	p := open(space)
	if err := space.Seal(); err != nil {
		return nil, err
	}
	return p, p.Refresh()
}

// Layout identifies how pools are laid out in a space by this version of the code.
func Layout() uint64 {
	mem := make([]byte, 256<<10)
	space, err := flat.Mapped(mem, func(int64) error { return nil })
	if err != nil {
		panic(err)
	}
	open(space)
	return space.Layout()
}

// open lays the pool out.
func open(space *flat.Space) *Pool {
	p := &Pool{once: flat.Single[once](space), space: space}
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
	p.callers.open(space)
	p.history.open(space)
	return p
}

// start sets up a new pool.
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
	if !p.anyKnown() {
		p.gates.At(p.pauseOf(0, 0, 0)).StartRamp()
	}
	return nil
}

// configure derives what can change without touching charges.
func (p *Pool) configure() {
	p.queue.Mode = order.Mode(p.spec.Order)
	p.queue.Weights[emergency] = emergencyWeight
	for i := range p.weights {
		p.weights[i] = 1 // some may still wait in a class that is no more
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

// anyKnown reports whether some limit has a size.
func (p *Pool) anyKnown() bool {
	for _, l := range p.spec.Limits {
		if l.Size > 0 {
			return true
		}
	}
	return false
}

// Apply carries out ops at time now, in order, then lets in whoever can go.
func (p *Pool) Apply(now store.Time, ops []store.Op) {
	p.begin(now, len(ops) > 0)
	p.carryOut(ops)
}

// begin does what time has brought.
func (p *Pool) begin(now store.Time, heard bool) {
	p.now = max(p.now, int64(now))
	if len(p.decided) > 0 {
		p.decided = p.decided[:0]
	}
	if p.now >= p.lotsDue {
		p.seeToLots()
	}
	if p.now >= p.history.second+second {
		p.turnSecond()
	}
	if p.toEnter > 0 {
		p.enterSome(fewTallies)
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

// turnSecond begins another second. After a long silence all tallies are entered: agents may be forgotten in this step.
func (p *Pool) turnSecond() {
	silence := p.now >= p.history.second+2*minute
	if p.history.turn(p.now) {
		p.turnTallies()
	}
	if silence {
		p.enterTallies()
	}
}

// carryOut is the rest of a step.
func (p *Pool) carryOut(ops []store.Op) {
	p.batch = ops
	for i := range ops {
		if ops[i].Kind != store.OpTouch { // which is not about tickets
			p.SpellOut()
			break
		}
	}
	for i := range ops {
		p.apply(i)
	}
	switch {
	case p.queue.Len() == 0:
		p.wake = 0
	case p.stirred || p.wake != 0 && p.now >= p.wake:
		p.serve()
	default: // nobody can go who could not before; but a new one may have a deadline
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

// Serve is Apply with nothing to do: time has passed.
func (p *Pool) Serve(now store.Time) { p.Apply(now, nil) }

// Decided returns the waiting tickets that the last step decided and that none of its
// ops asked about. It is valid until the next step.
func (p *Pool) Decided() []store.ID { return p.decided }

// Wake returns when to call Serve if nothing happens before: 0 if nobody waits for
// time to pass.
func (p *Pool) Wake() store.Time { return store.Time(p.wake) }

func (p *Pool) apply(i int) {
	op := &p.batch[i]
	op.Result = store.Result{ID: op.ID, Now: store.Time(p.now), Reason: store.Reason{Limit: -1}}
	switch op.Kind {
	case store.OpAcquire:
		p.acquire(i)
		return
	case store.OpPoll:
		p.poll(op)
		return
	case store.OpTouch: // which comes every second from everyone, and seldom lets anybody go
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
		refuse(op, store.CodeInvalid, -1, 0)
	}
}

func (p *Pool) concludeAll() {
	left := false
	for i := range p.batch {
		left = p.conclude(&p.batch[i]) || left
	}
	if left {
		p.serve() // what they had claimed is free for others
	}
}

// conclude completes what an op can say only after everyone was served. It reports
// whether a request left the line because it would not wait that long.
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
	if tk.state != stateWaiting { // granted meanwhile, to one who had asked before
		p.decided = slices.DeleteFunc(p.decided, func(id store.ID) bool { return id == op.ID })
		p.poll(op)
		return false
	}
	tk.op = 0
	full := tk.surplus && op.Wait != 0 && p.queue.Len() > p.spec.MaxWaiting
	tk.surplus = false
	asks := op.Kind == store.OpAcquire || op.Kind == store.OpRenew
	if op.Kind == store.OpAcquire && op.Wait < 0 && !full {
		return false // it waits as long as it takes; a poll says why
	}
	r.Reason = p.why(t)
	switch {
	case full:
		r.Reason.Code, r.Reason.Behind = store.CodeFull, r.Reason.Code
	case !asks || op.Wait < 0 || op.Wait > 0 && int64(r.Reason.At) <= tk.deadline:
		return false
	case op.Wait > 0:
		r.Reason.Code, r.Reason.Behind = store.CodeDeadline, r.Reason.Code
	}
	r.State = store.Refused
	p.leaveQueue(tk)
	p.end(t, tk)
	return true
}

func refuse(op *store.Op, code store.Code, limit int, at int64) {
	op.Result.State = store.Refused
	op.Result.Reason = store.Reason{Code: code, Limit: int8(limit), At: store.Time(at)}
}
